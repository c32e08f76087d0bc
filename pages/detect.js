// The page of heddle detect: images with the boxes of their objects over them.
// heddle.data: model, count, labels, threshold; images: [{path, width, height, png (base64),
// boxes: [[label, score, left, top, right, bottom]], surest first, in pixels}]
"use strict";
(() => {
  const {el, data, main} = heddle;
  let threshold = data.threshold;

  // --- one image ----------------------------------------------------------------------------------

  const drawn = (image) => {
    const objects = image.boxes.filter(([, score]) => score >= threshold).map(([label, score, ...box]) =>
      ({label: data.labels[label], color: heddle.seriesColor(label), score, box}));
    return el("section", {class: "detected"}, el("h2", {}, image.path),
      el("p", {class: "faint small"}, `${image.width} × ${image.height} pixels, ${heddle.plural(objects.length, "object")}`),
      el("div", {class: "detected-parts"},
        heddle.boxesOver({href: `data:image/png;base64,${image.png}`, width: image.width, height: image.height, name: image.path, objects}),
        heddle.boxList(image.path, objects)));
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
