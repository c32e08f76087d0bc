// A matrix as a heat map on one canvas: any size, values on hover, a cursor moved by arrow keys, zoom.
//
//   heddle.heatMap({
//     rows, cols, value: (i, j) => number (null: not known, NaN: hidden by a mask),
//     rowLabel: (i) => text, colLabel: (j) => text, rowTitle, colTitle, label,
//     low, high,          the values of the two ends of the colours; diverging: from -high to high
//     diverging: false,
//     block: (i0, i1, j0, j1) => number   what a pixel shows that covers many cells; else the
//                                         largest of a few of them
//     color: (i, j, value) => [r, g, b]   instead of the ramp
//     cellText: (i, j) => text            what `values` writes, in place of the number
//     describe: (i, j, value) => text     of tooltip and screen reader
//     onPick: (i, j) => ..., cell: largest side of a cell in pixels (34), values: write numbers into cells
//   }) -> {element, redraw(changes), svg(), view}
//
// Drawing costs a look at each pixel at most, never at each cell: 4,096 x 4,096 takes no longer than 600 x 600.
"use strict";
(() => {
  const widthOf = (text, size) => Math.ceil(heddle.textWidth(text, size));

  // As WCAG 2 defines it; black and white are equally readable on 0.18.
  const luminance = (rgb) => rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);

  heddle.heatMap = (options) => {
    let o = Object.assign({low: 0, high: 1, diverging: false, cell: 34, label: "matrix"}, options);
    const canvas = heddle.el("canvas", {tabindex: 0, role: "img"});
    const seen = heddle.el("div", {class: "seen faint small", "aria-live": "polite"});
    const tools = heddle.el("div", {class: "tools"});
    const range = heddle.el("span", {class: "faint small"});
    const element = heddle.el("div", {class: "heat"}, canvas, tools, seen);
    const view = {row: 0, col: 0, rows: o.rows, cols: o.cols};  // the part that is shown
    let cursor = null, place = null, drag = null;

    const rowLabel = (i) => (o.rowLabel ? String(o.rowLabel(i)) : String(i));
    const colLabel = (j) => (o.colLabel ? String(o.colLabel(j)) : String(j));
    const describe = (i, j) => {
      const x = o.value(i, j);
      if (o.describe) return o.describe(i, j, x);
      return `${rowLabel(i)} → ${colLabel(j)}: ` +
        (x === null ? "too small to be kept" : Number.isNaN(x) ? "hidden" : heddle.number(x));
    };

    // Where things lie on a canvas of the width that there is. Labels of columns stand straight where they fit, else
    // slanted, upright where there is little room; of long ones in narrow cells only some are written.
    const lay = () => {
      const room = Math.max(160, Math.floor(element.clientWidth || 640));
      const widest = (count, from, label) => {
        let width = 0;
        for (let i = 0; i < Math.min(count, 200); ++i) width = Math.max(width, widthOf(label(from + i)));
        return width;
      };
      const every = (side, least) => [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((n) => n * side >= least) || Math.ceil(least / side);
      const title = o.rowTitle ? 18 : 0, colWidth = widest(view.cols, view.col, colLabel), colMost = Math.min(colWidth, o.number ? 170 : 120);
      const numberWidth = o.number ? widthOf(String(Math.max(o.rows, o.cols))) : 0;
      let rowMost = Math.min(o.number ? 360 : 150, room * 0.36), colText = colLabel, rowText = rowLabel;
      let left = Math.min(widest(view.rows, view.row, rowLabel), rowMost) + 8 + title;
      const cellOf = (margin) => {
        const side = Math.min(o.cell, (room - left - margin) / view.cols);
        return side >= 4 ? Math.floor(side) : side;
      };
      let w = cellOf(2), angle = 0, margin = 2;
      if (colWidth + 6 > w && colWidth > 40) angle = room < 520 ? 90 : 45;
      if (angle === 45) margin = Math.ceil(colMost * 0.71 + 8);
      else if (angle === 0 && colWidth > w) margin = Math.ceil((colWidth - w) / 2 + 2);
      w = cellOf(margin);
      let gap = angle === 45 ? 20 : angle === 90 ? 13 : colWidth + 8;
      if (o.number && angle && (colWidth > colMost || w < gap)) {
        // Numbers above the columns, and the same before the names of rows; alone where not every row has room for its name.
        angle = 0;
        colText = (j) => String(o.number(j));
        gap = numberWidth + 6;
        rowText = (i) => `${o.number(i)}  ${rowLabel(i)}`;
        left = Math.min(widest(view.rows, view.row, rowText), rowMost) + 8 + title;
        w = cellOf(2);
        if (w < 8) {
          rowText = colText;
          left = (rowMost = numberWidth) + 8 + title;
          w = cellOf(2);
        }
      }
      // Cells are squares, but of few rows higher: each has its label.
      const height = Math.min(view.rows <= 16 ? Math.max(w, 14) : w, Math.max(560, room * 0.75) / view.rows);
      let h = height >= 4 ? Math.floor(height) : height;
      if (o.number && w >= 8) h = Math.max(h, 14);
      const top = (angle === 90 ? colMost + 8 : angle === 45 ? colMost * 0.71 + 16 : 22) + (o.colTitle ? 18 : 0);
      const needed = Math.max(left + w * view.cols + margin, left + (o.colTitle ? widthOf(o.colTitle) + 4 : 0));
      return {room, left, top, w, h, angle, rowMost, rowText, colText, colMost: angle ? colMost : Math.max(w - 4, colText === colLabel ? colWidth : numberWidth + 2),
        colEvery: every(w, gap), rowEvery: every(h, 13),
        width: Math.ceil(Math.min(room, needed)), height: Math.ceil(Math.max(top + h * view.rows + 2, o.rowTitle ? widthOf(o.rowTitle) + 4 : 0))};
    };

    // What is written around the cells: {text, x, y, size, align, angle, isFaint}.
    const labelsOf = (p) => {
      const labels = [], size = (side) => Math.max(11, Math.min(13, Math.floor(side) - 1));
      const rowSize = size(p.h), colSize = size(p.w);
      for (let i = 0; i < view.rows; i += p.rowEvery) {
        labels.push({text: heddle.cut(p.rowText(view.row + i), p.rowMost, rowSize), x: p.left - 6, y: p.top + (i + 0.5) * p.h, size: rowSize, align: "right", angle: 0});
      }
      for (let j = 0; j < view.cols; j += p.colEvery) {
        labels.push({text: heddle.cut(p.colText(view.col + j), p.colMost, colSize), x: p.left + (j + 0.5) * p.w, y: p.top - (p.angle ? 6 : 10), size: colSize,
          align: p.angle ? "left" : "center", angle: -p.angle});
      }
      const faint = {size: 12, isFaint: true}, half = o.rowTitle ? widthOf(o.rowTitle, 12) / 2 + 1 : 0;
      if (o.colTitle) labels.push({text: o.colTitle, x: p.left, y: 9, align: "left", angle: 0, ...faint});
      if (o.rowTitle) {
        labels.push({text: o.rowTitle, x: 9, y: Math.max(half, Math.min(p.top + p.h * view.rows / 2, p.height - half)), align: "center", angle: -90, ...faint});
      }
      return labels;
    };

    const painter = () => {
      if (o.color) return o.color;
      const plus = heddle.ramp("cold", "warm"), minus = heddle.ramp("cold", "minus");
      const none = heddle.ramp("hidden", "hidden")(0);
      return (i, j, x) => {
        if (x === null) return plus(0);
        if (Number.isNaN(x)) return none;
        if (o.diverging) return x < 0 ? minus(-x / o.high) : plus(x / o.high);
        return plus((x - o.low) / (o.high - o.low || 1));
      };
    };

    // One value for the cells of a pixel: the largest of at most 3 x 3 of them.
    const sample = (i0, i1, j0, j1) => {
      if (o.block && (i1 - i0 > 1 || j1 - j0 > 1)) return o.block(i0, i1, j0, j1);
      let best = null;
      const di = Math.max(1, Math.floor((i1 - i0) / 3)), dj = Math.max(1, Math.floor((j1 - j0) / 3));
      for (let i = i0; i < i1; i += di) {
        for (let j = j0; j < j1; j += dj) {
          const x = o.value(i, j);
          if (best === null || Number.isNaN(best) || Math.abs(x) > Math.abs(best)) best = x;
        }
      }
      return best;
    };

    const drawPixels = (g, p, scale) => {
      const w = Math.max(1, Math.round(p.w * view.cols * scale)), h = Math.max(1, Math.round(p.h * view.rows * scale));
      const image = g.createImageData(w, h), paint = painter();
      for (let y = 0; y < h; ++y) {
        const i0 = view.row + Math.floor(y * view.rows / h);
        const i1 = Math.max(i0 + 1, view.row + Math.floor((y + 1) * view.rows / h));
        for (let x = 0; x < w; ++x) {
          const j0 = view.col + Math.floor(x * view.cols / w);
          const j1 = Math.max(j0 + 1, view.col + Math.floor((x + 1) * view.cols / w));
          const rgb = paint(i0, j0, sample(i0, i1, j0, j1)), at = 4 * (y * w + x);
          image.data[at] = rgb[0];
          image.data[at + 1] = rgb[1];
          image.data[at + 2] = rgb[2];
          image.data[at + 3] = 255;
        }
      }
      g.putImageData(image, Math.round(p.left * scale), Math.round(p.top * scale));
    };

    // What numbers are written as: with as many digits as all of them have room for; "" where they have none.
    const textsOf = (g, p) => {
      if (!o.values || p.w < 26 || p.h < 13) return () => "";
      if (o.cellText) return o.cellText;
      const ways = [(x) => heddle.number(x, 2), (x) => heddle.number(x, 1), (x) => x.toFixed(1).replace(/^-0.0$/, "0.0").replace("-", "−"),
        (x) => x.toFixed(0).replace(/^-0$/, "0").replace("-", "−")].slice(p.w >= 44 ? 0 : 2);
      const way = ways.find((one) => {
        for (let k = 0; k < view.rows * view.cols; ++k) {
          const x = o.value(view.row + Math.floor(k / view.cols), view.col + k % view.cols);
          if (x !== null && !Number.isNaN(x) && g.measureText(one(x)).width > p.w - 2) return false;
        }
        return true;
      });
      return (i, j) => { const x = o.value(i, j); return !way || x === null ? "" : Number.isNaN(x) ? "−∞" : way(x); };
    };

    const drawCells = (g, p) => {
      const paint = painter();
      g.font = heddle.font(11);
      const textOf = textsOf(g, p);
      const gap = Math.min(p.w, p.h) >= 8 ? 1 : 0;
      for (let i = 0; i < view.rows; ++i) {
        for (let j = 0; j < view.cols; ++j) {
          const x = o.value(view.row + i, view.col + j), rgb = paint(view.row + i, view.col + j, x);
          g.fillStyle = `rgb(${rgb})`;
          g.fillRect(p.left + j * p.w, p.top + i * p.h, p.w - gap, p.h - gap);
          const text = x === null ? "" : textOf(view.row + i, view.col + j);
          if (!text || g.measureText(text).width > p.w - 2) continue;
          g.fillStyle = luminance(rgb) > 0.18 ? "#000" : "#fff";
          g.textAlign = "center";
          g.textBaseline = "middle";
          g.fillText(text, p.left + (j + 0.5) * p.w, p.top + (i + 0.5) * p.h);
        }
      }
    };

    const drawLabels = (g, p) => {
      g.textBaseline = "middle";
      for (const label of labelsOf(p)) {
        g.save();
        g.fillStyle = heddle.color(label.isFaint ? "faint" : "ink");
        g.translate(label.x, label.y);
        g.rotate(label.angle * Math.PI / 180);
        g.textAlign = label.align;
        g.font = heddle.font(label.size);
        g.fillText(label.text, 0, 0);
        g.restore();
      }
    };

    const draw = () => {
      const p = place = lay(), scale = window.devicePixelRatio || 1;
      canvas.width = Math.round(p.width * scale);
      canvas.height = Math.round(p.height * scale);
      canvas.style.width = p.width + "px";
      canvas.style.height = p.height + "px";
      const g = canvas.getContext("2d");
      if (Math.min(p.w, p.h) < 4) drawPixels(g, p, scale);
      g.scale(scale, scale);
      if (Math.min(p.w, p.h) >= 4) drawCells(g, p);
      drawLabels(g, p);
      if (cursor && inside(cursor)) {
        g.strokeStyle = heddle.color("mark");
        g.lineWidth = 2;
        g.strokeRect(p.left + (cursor.j - view.col) * p.w - 1, p.top + (cursor.i - view.row) * p.h - 1,
          Math.max(p.w, 4) + 1, Math.max(p.h, 4) + 1);
      }
      canvas.setAttribute("aria-label",
        `${o.label}, ${o.rows} rows${o.rowTitle ? `: ${o.rowTitle}` : ""}, ${o.cols} columns${o.colTitle ? `: ${o.colTitle}` : ""}; arrow keys move from cell to cell`);
      range.textContent = view.rows < o.rows || view.cols < o.cols
        ? `rows ${view.row + 1}–${view.row + view.rows} of ${o.rows}, columns ${view.col + 1}–${view.col + view.cols} of ${o.cols}`
        : "";
      out.disabled = all.disabled = view.rows >= o.rows && view.cols >= o.cols;
      tools.hidden = o.rows <= 24 && o.cols <= 24;
    };
    const inside = (c) => c.i >= view.row && c.i < view.row + view.rows && c.j >= view.col && c.j < view.col + view.cols;

    const clamp = (x, low, high) => Math.max(low, Math.min(high, x));
    const show = (row, col, rows, cols) => {
      view.rows = clamp(Math.round(rows), Math.min(4, o.rows), o.rows);
      view.cols = clamp(Math.round(cols), Math.min(4, o.cols), o.cols);
      view.row = clamp(Math.round(row), 0, o.rows - view.rows);
      view.col = clamp(Math.round(col), 0, o.cols - view.cols);
      draw();
    };
    const zoom = (factor, at) => {
      const c = at || (cursor && inside(cursor) ? cursor : {i: view.row + view.rows / 2, j: view.col + view.cols / 2});
      const u = (c.i - view.row) / view.rows, v = (c.j - view.col) / view.cols;
      const rows = Math.min(o.rows, view.rows * factor), cols = Math.min(o.cols, view.cols * factor);
      show(c.i - u * rows, c.j - v * cols, rows, cols);
    };
    const tool = (text, title, action) => {
      const button = heddle.el("button", {type: "button", title, onclick: action}, text);
      tools.append(button);
      return button;
    };
    tool("+", "closer (key +)", () => zoom(0.5));
    const out = tool("−", "farther (key −)", () => zoom(2));
    const all = tool("all", "the whole matrix (key 0)", () => show(0, 0, o.rows, o.cols));
    tools.append(range);

    const cellAt = (event) => {
      if (!place) return null;
      const box = canvas.getBoundingClientRect();
      const i = view.row + Math.floor((event.clientY - box.top - place.top) / place.h);
      const j = view.col + Math.floor((event.clientX - box.left - place.left) / place.w);
      return inside({i, j}) ? {i, j} : null;
    };
    const point = (cell, at) => {
      cursor = cell;
      draw();
      if (!cell) { heddle.untip(); return; }
      const text = describe(cell.i, cell.j);
      seen.textContent = text.replace(/\n/g, "; ");
      heddle.tip(at, text);
    };
    canvas.addEventListener("pointermove", (event) => {
      if (drag) {
        show(drag.row - (event.clientY - drag.y) / place.h, drag.col - (event.clientX - drag.x) / place.w, view.rows, view.cols);
        return;
      }
      const cell = cellAt(event);
      const same = cell && cursor && cell.i === cursor.i && cell.j === cursor.j;
      if (!same || !cell) point(cell, event);
    });
    canvas.addEventListener("pointerleave", () => { heddle.untip(); });
    canvas.addEventListener("pointerdown", (event) => {
      if (view.rows < o.rows || view.cols < o.cols) {
        drag = {x: event.clientX, y: event.clientY, row: view.row, col: view.col};
      }
    });
    window.addEventListener("pointerup", () => { drag = null; });
    canvas.addEventListener("click", (event) => {
      const cell = cellAt(event);
      if (cell && o.onPick) o.onPick(cell.i, cell.j);
    });
    canvas.addEventListener("dblclick", (event) => {
      if (!tools.hidden && cellAt(event)) zoom(0.5, cellAt(event));
    });
    canvas.addEventListener("keydown", (event) => {
      if (!place) return;
      const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
      const move = moves[event.key];
      if (move) {
        const from = cursor || {i: view.row, j: view.col};
        const cell = cursor ? {i: clamp(from.i + move[0], 0, o.rows - 1), j: clamp(from.j + move[1], 0, o.cols - 1)} : from;
        if (!inside(cell)) show(cell.i - view.rows / 2, cell.j - view.cols / 2, view.rows, view.cols);
        const box = canvas.getBoundingClientRect();
        point(cell, {x: box.left + place.left + (cell.j - view.col + 1) * place.w,
          y: box.top + place.top + (cell.i - view.row + 1) * place.h});
      } else if (event.key === "Enter" && cursor && o.onPick) o.onPick(cursor.i, cursor.j);
      else if (event.key === "+") zoom(0.5);
      else if (event.key === "-") zoom(2);
      else if (event.key === "0") show(0, 0, o.rows, o.cols);
      else return;
      event.preventDefault();
    });

    // The matrix as SVG: a rectangle a cell if there are few of them, else the picture.
    const svg = () => {
      const p = place, root = heddle.svg("svg", {viewBox: `0 0 ${p.width} ${p.height}`, xmlns: "http://www.w3.org/2000/svg"});
      if (view.rows * view.cols > 10000) {
        root.append(heddle.svg("image", {href: canvas.toDataURL(), width: p.width, height: p.height}));
      } else {
        const paint = painter();
        for (let i = 0; i < view.rows; ++i) {
          for (let j = 0; j < view.cols; ++j) {
            const x = o.value(view.row + i, view.col + j);
            root.append(heddle.svg("rect", {x: p.left + j * p.w, y: p.top + i * p.h, width: p.w - 1, height: p.h - 1,
              fill: `rgb(${paint(view.row + i, view.col + j, x)})`}, heddle.svg("title", {}, describe(view.row + i, view.col + j))));
          }
        }
        for (const label of labelsOf(p)) {
          root.append(heddle.svg("text", {x: label.x, y: label.y, "font-size": label.size, fill: heddle.color(label.isFaint ? "faint" : "ink"), "dominant-baseline": "middle",
            "text-anchor": {right: "end", left: "start", center: "middle"}[label.align],
            transform: label.angle ? `rotate(${label.angle} ${label.x} ${label.y})` : undefined}, label.text));
        }
      }
      root.setAttribute("width", p.width);
      root.setAttribute("height", p.height);
      root.setAttribute("font-family", "sans-serif");
      return '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(root) + "\n";
    };

    // Draws again, with other values or options.
    const redraw = (changes) => {
      const old = o;
      o = Object.assign({}, o, changes);
      if (o.rows !== old.rows || o.cols !== old.cols) {
        cursor = null;
        seen.textContent = "";
        Object.assign(view, {row: 0, col: 0, rows: o.rows, cols: o.cols});
      }
      if (element.isConnected) draw();
    };
    heddle.onTheme(() => { if (element.isConnected) draw(); });
    let width = 0;
    const fit = () => {
      if (element.clientWidth === width || !element.clientWidth) return;
      width = element.clientWidth;
      draw();
    };
    // Not at once: a change of size inside the observer would call it again.
    new ResizeObserver(() => setTimeout(fit)).observe(element);
    setTimeout(fit);
    return {element, redraw, svg, view};
  };
})();
