// Words in two columns, joined by lines as strong as the attention between them.
//
//   heddle.attentionLines() -> {element, show({heads, colors, unit}), svg()}
"use strict";
(() => {
  const {el, svg, attention} = heddle;
  const kRow = 26, kWindow = 48;  // height of a word; words that are shown at once
  const kFaint = 0.03;            // lines below are left out until a word is chosen

  const widthOf = (text, size) => heddle.textWidth(text, size, 700);
  // A column as wide as its words need, in smaller letters where there is little room; longer words are cut.
  const columnOf = (units, wide) => {
    const widest = (size) => units.reduce((most, unit) => Math.max(most, widthOf(unit.text, size)), 0) + 14;
    const most = 0.42 * wide, size = [15, 13, 12].find((s) => widest(s) <= most) || 12;
    return {size, column: Math.max(0.34 * wide, Math.min(most, widest(size)))};
  };
  const labelOf = (unit, p) => heddle.cut(unit.text, p.x1 - 14, p.size, 700);

  heddle.attentionLines = () => {
    const picture = svg("svg", {role: "group", "aria-label": "words joined by lines"});
    const slider = el("input", {type: "range", min: 0, max: 1000, value: 0, "aria-label": "which part of the text is shown", style: "width: min(28rem, 100%)"});
    const place = el("span", {class: "faint small"});
    const sliding = el("div", {class: "row", hidden: true}, slider, place);
    const seen = el("p", {class: "small", "aria-live": "polite", style: "min-height: 3em"});
    const element = el("div", {class: "chart"}, sliding, picture, seen);
    let shown = null, chosen = null, pinned = null, wide = 640;

    // The units of a side that are in view: {units, first}.
    const part = (units) => {
      const most = Math.max(0, units.length - kWindow);
      const first = Math.round(most * slider.value / 1000);
      return {units: units.slice(first, first + kWindow), first};
    };
    const y = (i) => 40 + (i + 0.5) * kRow;
    const hint = () => (chosen === null && pinned === null
      ? "Point at a word, or move to it with Tab and the arrow keys, to see where it looks; click to hold it." : "");

    // What is drawn of the chosen word: bars beside the words of the other side, and a sentence.
    const beside = (p) => {
      const c = pinned || chosen;
      if (!c) { seen.textContent = hint(); return; }
      const isQuery = c.side === 0, others = isQuery ? p.right : p.left;
      const own = (isQuery ? p.left : p.right).units[c.at];
      if (!own) return;
      const x0 = isQuery ? p.x2 + 6 : p.x1 - 6, room = isQuery ? wide - x0 : x0;
      const sums = [];
      others.units.forEach((other, k) => {
        let top = 0;
        shown.heads.forEach((head, h) => {
          const w = isQuery ? attention.weight(head, own, other) : attention.weight(head, other, own);
          if (!(w > 0.0005)) return;
          top = Math.max(top, w);
          const width = Math.max(1, w * room), height = (kRow - 6) / shown.heads.length;
          picture.prepend(svg("rect", {x: isQuery ? x0 : x0 - width, y: y(k) - kRow / 2 + 3 + h * height, width, height,
            fill: shown.colors[h], opacity: 0.25, rx: 2}));
        });
        sums.push({text: other.text, top, k});
        if (top < 0.01 || widthOf(labelOf(other, p), p.size) > room - 52) return;  // its bar alone says it
        picture.append(svg("text", {x: isQuery ? wide - 2 : 2, y: y(k) + 5, "font-size": 13, "text-anchor": isQuery ? "end" : "start", class: "faint-text"},
          Math.round(100 * top) + " %"));
      });
      const best = sums.filter((s) => s.top > 0).sort((a, b) => b.top - a.top).slice(0, 4);
      const list = best.map((s) => `“${s.text}” ${heddle.percent(s.top)}`).join(", ");
      seen.textContent = isQuery ? `“${own.text}” looks at ${list || "nothing in view"}.`
        : `“${own.text}” is looked at most by ${list || "nothing in view"}.`;
    };

    const drawLines = (p) => {
      const c = pinned || chosen, lines = [];
      shown.heads.forEach((head, h) => {
        p.left.units.forEach((a, i) => {
          if (c && c.side === 0 && c.at !== i) return;
          p.right.units.forEach((b, j) => {
            if (c && c.side === 1 && c.at !== j) return;
            const w = attention.weight(head, a, b);
            if (w > (c ? 0.005 : kFaint)) lines.push({w, i, j, h});
          });
        });
      });
      lines.sort((a, b) => a.w - b.w);
      // Of one word the strongest line is drawn full, however its attention is spread.
      const full = c && lines.length ? lines[lines.length - 1].w : 1;
      for (const line of lines.slice(-2500)) {
        const shift = (line.h - (shown.heads.length - 1) / 2) * 2.5;
        const y1 = y(line.i) + shift, y2 = y(line.j) + shift, middle = (p.x1 + p.x2) / 2;
        picture.append(svg("path", {d: `M${p.x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${p.x2} ${y2}`, fill: "none",
          stroke: shown.colors[line.h], "stroke-width": (1 + 3 * line.w / full).toFixed(1), opacity: Math.min(1, 0.1 + 0.9 * line.w / full).toFixed(2),
          "data-weight": line.w.toFixed(4)}));
      }
    };

    const word = (unit, side, at, p) => {
      const x = side === 0 ? p.x1 - 8 : p.x2 + 8;
      const c = pinned || chosen, isChosen = c && c.side === side && c.at === at;
      const g = svg("g", {tabindex: at === 0 && side === 0 && !c || isChosen ? 0 : -1, role: "button", "data-side": side, "data-at": at,
        "aria-label": `${unit.text}, ${side === 0 ? "looks" : "is looked at"}`, style: "cursor: pointer; outline-offset: -2px"},
        svg("rect", {x: side === 0 ? 0 : p.x2, y: y(at) - kRow / 2, width: side === 0 ? p.x1 : wide - p.x2, height: kRow, fill: "transparent"}),
        svg("text", {x, y: y(at) + 5, "font-size": p.size, "text-anchor": side === 0 ? "end" : "start",
          "font-weight": isChosen ? 700 : 400}, labelOf(unit, p)), labelOf(unit, p) === unit.text ? null : svg("title", {}, unit.text));
      g.addEventListener("pointerenter", () => choose({side, at}));
      g.addEventListener("focus", () => { if (g.matches(":focus-visible")) choose({side, at}); });
      g.addEventListener("click", () => {
        pinned = pinned && pinned.side === side && pinned.at === at ? null : {side, at};
        chosen = {side, at};
        draw();
      });
      g.addEventListener("keydown", (event) => {
        const count = (side === 0 ? p.left : p.right).units.length;
        const to = {ArrowDown: [side, Math.min(count - 1, at + 1)], ArrowUp: [side, Math.max(0, at - 1)],
          ArrowRight: [1, Math.min(at, p.right.units.length - 1)], ArrowLeft: [0, Math.min(at, p.left.units.length - 1)]}[event.key];
        if (to) {
          pinned = null;
          choose({side: to[0], at: to[1]});
          picture.querySelector(`[data-side="${to[0]}"][data-at="${to[1]}"]`).focus();
        } else if (event.key === "Enter" || event.key === " ") g.dispatchEvent(new MouseEvent("click"));
        else return;
        event.preventDefault();
      });
      return g;
    };

    const draw = () => {
      if (!shown) return;
      const head = shown.heads[0];
      const left = part(attention.queries(head, shown.unit)), right = part(attention.keys(head, shown.unit));
      const {size, column} = columnOf([...left.units, ...right.units], wide);
      const p = {left, right, size, x1: column, x2: wide - column};
      const height = y(Math.max(left.units.length, right.units.length)) + 4;
      const focused = document.activeElement && picture.contains(document.activeElement) ? document.activeElement.dataset : null;
      picture.setAttribute("viewBox", `0 0 ${wide} ${height}`);
      picture.replaceChildren();
      drawLines(p);
      const titleOf = (x, anchor, text) => picture.append(svg("text", {x, y: 20, "font-size": 13, "text-anchor": anchor, class: "faint-text"}, text));
      const [query, key] = attention.axes(head);
      titleOf(p.x1 - 8, "end", query);
      titleOf(p.x2 + 8, "start", key);
      left.units.forEach((unit, i) => picture.append(word(unit, 0, i, p)));
      right.units.forEach((unit, j) => picture.append(word(unit, 1, j, p)));
      beside(p);
      if (focused && focused.side !== undefined) {
        const again = picture.querySelector(`[data-side="${focused.side}"][data-at="${focused.at}"]`);
        if (again) again.focus({preventScroll: true});
      }
      const count = attention.queries(head, shown.unit).length;
      sliding.hidden = Math.max(count, attention.keys(head, shown.unit).length) <= kWindow;
      place.textContent = `${left.first + 1}–${left.first + left.units.length} of ${count}`;
    };
    const choose = (c) => {
      if (pinned || (chosen && c && chosen.side === c.side && chosen.at === c.at)) return;
      chosen = c;
      draw();
    };
    picture.addEventListener("pointerleave", () => choose(null));
    slider.addEventListener("input", () => { chosen = pinned = null; draw(); });

    const fit = () => {
      const room = Math.max(300, Math.min(760, element.clientWidth || wide));
      if (room === wide) return;
      wide = room;
      draw();
    };
    new ResizeObserver(() => setTimeout(fit)).observe(element);
    const show = (what) => {
      if (shown && (shown.unit !== what.unit || shown.heads[0].kind !== what.heads[0].kind)) chosen = pinned = null;
      shown = what;
      wide = Math.max(300, Math.min(760, element.clientWidth || wide));
      draw();
    };
    // Holds the first word of that text on the left.
    const hold = (text) => {
      const units = attention.queries(shown.heads[0], shown.unit);
      const at = units.findIndex((u) => u.text.toLowerCase() === text.toLowerCase());
      if (at < 0) return;
      slider.value = units.length > kWindow ? Math.round(1000 * Math.min(1, at / (units.length - kWindow))) : 0;
      pinned = {side: 0, at: at - part(units).first};
      draw();
    };
    return {element, show, hold, svg: () => picture};
  };
})();
