// Boxes of objects over an image, and a list of them.
//
//   heddle.boxesOver({href, width, height, name, objects}) -> SVG    objects: [{label, color, score, box: [left, top, right, bottom]}]
//   heddle.boxList(name, objects) -> element                         in the order that they have; boxes in pixels
"use strict";
(() => {
  const {el, svg} = heddle;
  const area = ({box: [left, top, right, bottom]}) => (right - left) * (bottom - top);

  // Larger boxes lie below, so that each can be pointed at.
  heddle.boxesOver = ({href, width, height, name, objects}) => {
    const line = Math.max(width, height) / 220;
    const frame = svg("svg", {viewBox: `0 0 ${width} ${height}`, class: "detections", role: "img",
      "aria-label": `${name}: ${heddle.plural(objects.length, "object")}`, xmlns: "http://www.w3.org/2000/svg"});
    frame.append(svg("image", {href, width, height}));
    for (const {label, color, score, box: [left, top, right, bottom]} of [...objects].sort((a, b) => area(b) - area(a))) {
      const rect = svg("rect", {x: left, y: top, width: right - left, height: bottom - top, stroke: color,
        "stroke-width": line, fill: color, "fill-opacity": 0.08, "data-label": label,
        onmousemove: (event) => heddle.tip(event, `${label} ${score.toFixed(2)}`), onmouseleave: () => heddle.untip()});
      // A line beneath, of the other brightness, so that the box shows on its own colour.
      frame.append(svg("rect", {x: left, y: top, width: right - left, height: bottom - top, class: "halo", stroke: "#fff",
        "stroke-opacity": 0.7, "stroke-width": 2 * line, fill: "none"}), rect);
    }
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
