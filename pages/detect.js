// The page of heddle detect: images with the boxes of their objects over them.
// heddle.data: model, count, labels, threshold; images: [{path, width, height, png (base64),
// boxes: [[label, score, left, top, right, bottom]], surest first, in pixels}]
"use strict";
(() => {
  const {el, svg, data, main} = heddle;
  const kColors = 8;
  const color = (label) => `var(--head${label % kColors})`;
  let threshold = data.threshold;
  const shown = (image) => image.boxes.filter(([, score]) => score >= threshold);
  const name = ([label, score]) => `${data.labels[label]} ${score.toFixed(2)}`;
  const area = ([, , left, top, right, bottom]) => (right - left) * (bottom - top);

  // --- one image ----------------------------------------------------------------------------------

  // Larger boxes lie below, so that each can be pointed at.
  const drawn = (image) => {
    const {width, height} = image, line = Math.max(width, height) / 220;
    const boxes = [...shown(image)].sort((a, b) => area(b) - area(a));
    const frame = svg("svg", {viewBox: `0 0 ${width} ${height}`, class: "detections", role: "img",
      "aria-label": `${image.path}: ${heddle.plural(boxes.length, "object")}`, xmlns: "http://www.w3.org/2000/svg"});
    frame.append(svg("image", {href: `data:image/png;base64,${image.png}`, width, height}));
    for (const box of boxes) {
      const [label, , left, top, right, bottom] = box;
      const rect = svg("rect", {x: left, y: top, width: right - left, height: bottom - top, stroke: color(label),
        "stroke-width": line, fill: color(label), "fill-opacity": 0.08, "data-label": data.labels[label],
        onmousemove: (event) => heddle.tip(event, name(box)), onmouseleave: () => heddle.untip()});
      // A line beneath, of the other brightness, so that the box shows on its own colour.
      frame.append(svg("rect", {x: left, y: top, width: right - left, height: bottom - top, class: "halo", stroke: "#fff",
        "stroke-opacity": 0.7, "stroke-width": 2 * line, fill: "none"}), rect);
    }
    const rows = shown(image).map((box) => el("tr", {},
      el("td", {}, el("span", {class: "swatch", style: `background: ${color(box[0])}`}), " ", data.labels[box[0]]),
      el("td", {class: "number"}, box[1].toFixed(3)),
      el("td", {class: "number"}, box.slice(2).map((x) => x.toFixed(0)).join(", "))));
    const table = el("table", {class: "list", "aria-label": `objects of ${image.path}`},
      el("thead", {}, el("tr", {}, el("th", {}, "class"), el("th", {class: "number"}, "score"),
        el("th", {class: "number"}, "left, top, right, bottom"))), el("tbody", {}, rows));
    return el("section", {class: "detected"}, el("h2", {}, image.path),
      el("p", {class: "faint small"}, `${width} × ${height} pixels, ${heddle.plural(rows.length, "object")}`),
      el("div", {class: "detected-parts"}, frame, rows.length ? el("div", {class: "scroll list"}, table) : el("p", {class: "faint"}, "Nothing is sure enough.")));
  };

  // --- the page -----------------------------------------------------------------------------------

  const list = el("div", {id: "images"});
  const show = () => list.replaceChildren(...data.images.map(drawn));
  const value = el("output", {class: "number", id: "threshold-value"});
  const slider = el("input", {type: "range", min: 0, max: 1, step: 0.01, value: threshold, id: "threshold",
    "aria-label": "least score", oninput: () => { threshold = Number(slider.value); value.textContent = threshold.toFixed(2); show(); }});
  value.textContent = threshold.toFixed(2);
  main.append(
    el("p", {class: "faint small mono"}, `${data.model}, ${heddle.plural(data.count, "image")}, ${data.labels.length} class${data.labels.length === 1 ? "" : "es"}`),
    el("p", {class: "faint"}, "Each query of the model sees one object or none. A score is the probability of its class."),
    el("div", {class: "row"}, el("label", {for: "threshold"}, "Least score"), slider, value),
    ...heddle.heldBack(data.images.length, data.count, "image"), list,
    heddle.exportButtons("objects", {json: () => ({...data, images: data.images.map(({png, ...rest}) => rest)})}));
  show();
})();
