// Images that the program put into the page, and maps over them.
//
//   heddle.imageOf({height, width, pixels}) -> a canvas of that size with the image on it, to be drawn or shown
//   heddle.smallImage(image, most, label)   -> the same for a reader: no side longer than `most` pixels on the page
//   heddle.cellMap({image, label, onPick(row, column), describe(row, column) => text})
//     -> {element, canvas, forget() once it is shown no more, show({rows, columns, value(i) => number or null, high, isVeil, marks, border, tint})}
//        a map of cells over the image (isVeil), or alone; `marks` are cells that get a frame, {cell: colour name};
//        `frame` a box in shares of the image: [left, top, right, bottom]; `border` cells of a window, whose edge is drawn, `others` those of other windows; `tint` cells that the query may not see
"use strict";
(() => {
  const {el} = heddle;

  heddle.imageOf = (json) => {
    const canvas = el("canvas", {width: json.width, height: json.height});
    const g = canvas.getContext("2d"), image = g.createImageData(json.width, json.height);
    const bytes = atob(json.pixels);
    for (let i = 0, at = 0; i < bytes.length; i += 3, at += 4) {
      image.data[at] = bytes.charCodeAt(i);
      image.data[at + 1] = bytes.charCodeAt(i + 1);
      image.data[at + 2] = bytes.charCodeAt(i + 2);
      image.data[at + 3] = 255;
    }
    g.putImageData(image, 0, 0);
    return canvas;
  };

  // Small images get larger, pixel by pixel.
  heddle.smallImage = (image, most, label) => {
    const scale = most / Math.max(image.width, image.height);
    image.setAttribute("role", "img");
    image.setAttribute("aria-label", label);
    Object.assign(image.style, {width: `${Math.round(image.width * scale)}px`, maxWidth: "100%",
      aspectRatio: `${image.width} / ${image.height}`, imageRendering: scale > 2 ? "pixelated" : "auto", display: "block"});
    return image;
  };

  const kWidest = 512;

  heddle.cellMap = ({image, label, onPick, describe}) => {
    const scale = kWidest / Math.max(image.width, image.height);
    const canvas = el("canvas", {width: Math.round(image.width * scale), height: Math.round(image.height * scale),
      tabindex: 0, role: "img", "aria-label": label, class: "cells"});
    const seen = el("div", {class: "seen faint small", "aria-live": "polite"});
    const element = el("div", {class: "cell-map"}, canvas, seen);
    let what = null, cursor = null;

    const box = (cell) => {
      const row = Math.floor(cell / what.columns), column = cell % what.columns;
      const x0 = Math.round(column * canvas.width / what.columns), x1 = Math.round((column + 1) * canvas.width / what.columns);
      const y0 = Math.round(row * canvas.height / what.rows), y1 = Math.round((row + 1) * canvas.height / what.rows);
      return [x0, y0, x1 - x0, y1 - y0];
    };
    const edge = (g, cells, color, width) => {
      const has = new Set(cells);
      g.strokeStyle = heddle.color(color);
      g.lineWidth = width;
      g.beginPath();
      for (const cell of cells) {
        const [x, y, w, h] = box(cell), column = cell % what.columns;
        const sides = [[cell - what.columns, x, y, x + w, y], [cell + what.columns, x, y + h, x + w, y + h],
          [column > 0 ? cell - 1 : -1, x, y, x, y + h], [column + 1 < what.columns ? cell + 1 : -1, x + w, y, x + w, y + h]];
        for (const [other, x0, y0, x1, y1] of sides) {
          if (has.has(other)) continue;
          g.moveTo(x0, y0);
          g.lineTo(x1, y1);
        }
      }
      g.stroke();
    };
    const draw = () => {
      if (!what) return;
      const g = canvas.getContext("2d"), ramp = heddle.ramp("cold", "warm");
      const inside = what.border ? new Set(what.border) : null, tinted = new Set(what.tint || []);
      g.imageSmoothingEnabled = scale <= 2;
      g.drawImage(image, 0, 0, canvas.width, canvas.height);
      for (let cell = 0; cell < what.rows * what.columns; ++cell) {
        const value = what.value(cell), share = what.high > 0 ? Math.min(1, (value || 0) / what.high) : 0;
        const isOut = inside !== null && !inside.has(cell);
        g.fillStyle = what.isVeil ? `rgba(0, 0, 0, ${isOut ? 0.85 : 0.78 * (1 - Math.sqrt(share))})`
          : `rgb(${isOut ? heddle.ramp("hidden", "hidden")(0) : ramp(share)})`;
        g.fillRect(...box(cell));
        if (!tinted.has(cell)) continue;
        g.fillStyle = "rgba(200, 40, 20, 0.45)";
        g.fillRect(...box(cell));
      }
      for (const cells of what.others || []) edge(g, cells, "faint", 1);
      if (what.border) edge(g, what.border, "focus", 3);
      for (const [cell, color] of Object.entries(what.marks || {})) {
        const [x, y, w, h] = box(Number(cell));
        g.strokeStyle = heddle.color(color);
        g.lineWidth = 3;
        g.strokeRect(x + 1.5, y + 1.5, w - 3, h - 3);
      }
      if (what.frame) {
        const [x0, y0, x1, y1] = what.frame.map((share, i) => share * (i % 2 ? canvas.height : canvas.width));
        g.strokeStyle = heddle.color("focus");
        g.lineWidth = 3;
        g.strokeRect(x0, y0, x1 - x0, y1 - y0);
      }
    };
    const cellAt = (event) => {
      const at = canvas.getBoundingClientRect();
      const row = Math.floor((event.clientY - at.top) / at.height * what.rows), column = Math.floor((event.clientX - at.left) / at.width * what.columns);
      return row < 0 || column < 0 || row >= what.rows || column >= what.columns ? null : {row, column};
    };
    const point = (cell, at) => {
      cursor = cell;
      const text = describe(cell.row, cell.column);
      seen.textContent = text;
      if (at) heddle.tip(at, text);
    };
    canvas.addEventListener("pointermove", (event) => { const cell = cellAt(event); if (cell) point(cell, event); });
    canvas.addEventListener("pointerleave", () => heddle.untip());
    canvas.addEventListener("click", (event) => { const cell = cellAt(event); if (cell && onPick) onPick(cell.row, cell.column); });
    canvas.addEventListener("keydown", (event) => {
      const move = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
      if (move) {
        const from = cursor || {row: 0, column: 0}, clamp = (x, most) => Math.max(0, Math.min(most - 1, x));
        point(cursor ? {row: clamp(from.row + move[0], what.rows), column: clamp(from.column + move[1], what.columns)} : from);
      } else if (event.key === "Enter" && cursor && onPick) onPick(cursor.row, cursor.column);
      else return;
      event.preventDefault();
    });
    const forget = heddle.onTheme(draw);
    const show = (next) => { what = next; cursor = null; draw(); };
    return {element, canvas, show, forget};
  };
})();
