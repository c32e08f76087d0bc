// Boxes of objects over an image, and a list of them.
//
//   heddle.boxesOver({href, width, height, name, objects, says}) -> SVG
//     objects: [{label, color, score, box: [left, top, right, bottom]}], and where it is wanted: tag, what is written at the box
//     if there is room; isDashed; weight, times the width of its line. says: what is read aloud, else how many there are
//   heddle.boxList(name, objects) -> element                         in the order that they have; boxes in pixels
"use strict";
(() => {
  const {el, svg} = heddle;
  const area = ({box: [left, top, right, bottom]}) => (right - left) * (bottom - top);

  // At the corners of boxes, inside of the image and over no other one; the heaviest lines' first.
  const kFont = 12, kHeight = kFont + 3;
  const tagsOf = (objects, width, height) => {
    const taken = [], clamp = (x, most) => Math.max(0, Math.min(most, x));
    for (const {tag, color, box: [left, top, right, bottom]} of [...objects].sort((a, b) => (b.weight || 1) - (a.weight || 1))) {
      const wide = tag ? Math.ceil(heddle.textWidth(tag, kFont, 600)) + 6 : 0;
      if (!tag || wide > width || kHeight > height) continue;
      const spot = [[left, top - kHeight], [left, bottom], [right - wide, top - kHeight], [right - wide, bottom], [left, top], [right - wide, bottom - kHeight]]
        .map(([x, y]) => [clamp(x, width - wide), clamp(y, height - kHeight)])
        .find(([x, y]) => taken.every((t) => x >= t.x + t.wide || t.x >= x + wide || y >= t.y + kHeight || t.y >= y + kHeight));
      if (spot) taken.push({x: spot[0], y: spot[1], wide, tag, color});
    }
    return taken.map(({x, y, wide, tag, color}) => svg("g", {class: "tag", style: "pointer-events: none"},
      svg("rect", {x, y, width: wide, height: kHeight, fill: color, rx: 2}),
      svg("text", {x: x + 3, y: y + kFont, "font-size": kFont, "font-weight": 600, style: "fill: var(--paper)"}, tag)));
  };

  // Larger boxes lie below, so that each can be pointed at.
  heddle.boxesOver = ({href, width, height, name, objects, says}) => {
    const frame = svg("svg", {viewBox: `0 0 ${width} ${height}`, class: "detections", role: "img",
      "aria-label": `${name}: ${says || heddle.plural(objects.length, "object")}`, xmlns: "http://www.w3.org/2000/svg"});
    frame.append(svg("image", {href, width, height}));
    for (const {label, color, score, box: [left, top, right, bottom], isDashed, weight = 1} of [...objects].sort((a, b) => area(b) - area(a))) {
      const line = weight * Math.max(width, height) / 220;
      const rect = svg("rect", {x: left, y: top, width: right - left, height: bottom - top, stroke: color,
        "stroke-width": line, "stroke-dasharray": isDashed ? `${4 * line} ${3 * line}` : null, fill: color, "fill-opacity": 0.08, "data-label": label,
        onmousemove: (event) => heddle.tip(event, score === undefined ? label : `${label} ${score.toFixed(2)}`), onmouseleave: () => heddle.untip()});
      // A line beneath, of the other brightness, so that the box shows on its own colour.
      frame.append(svg("rect", {x: left, y: top, width: right - left, height: bottom - top, class: "halo", stroke: "#fff",
        "stroke-opacity": 0.7, "stroke-width": 2 * line, fill: "none"}), rect);
    }
    frame.append(...tagsOf(objects, width, height));
    return frame;
  };

  heddle.boxList = (name, objects) => {
    if (!objects.length) return el("p", {class: "faint"}, "Nothing is sure enough.");
    const rows = objects.map(({label, color, score, box}) => el("tr", {},
      el("td", {}, el("span", {class: "swatch", style: `background: ${color}`}), " ", label),
      el("td", {class: "number"}, score.toFixed(3)),
      el("td", {class: "number"}, box.map((x) => x.toFixed(0)).join(", "))));
    return el("div", {class: "scroll list"}, el("table", {class: "list", "aria-label": `objects of ${name}`},
      el("thead", {}, el("tr", {}, el("th", {}, "class"), el("th", {class: "number"}, "score"),
        el("th", {class: "number"}, "left, top, right, bottom"))), el("tbody", {}, rows)));
  };
})();
