// The images in the page of a training run: heddle.reportImages({augmented: [{image, name, label, views: [image]}],
// mistakes: [{image, name, label, answer, probability, loss}]}) gives sections [title, ...elements]; an image is {src, width, height}.
"use strict";
(() => {
  const el = heddle.el;
  // Small ones are shown larger, each pixel a square.
  const drawn = (image, alt) => {
    const scale = Math.max(1, Math.floor(96 / Math.max(image.width, image.height)));
    return el("img", {src: image.src, alt, title: alt, width: image.width * scale, height: image.height * scale, style: "image-rendering: pixelated; border-radius: 3px"});
  };
  const figure = (image, alt, ...lines) => el("figure", {style: "margin: 0; max-width: 7.5rem; overflow-wrap: anywhere"}, drawn(image, alt),
    el("figcaption", {class: "small", style: "line-height: 1.35"}, ...lines));
  const row = (attributes, ...children) => el("div", {...attributes, style: "display: flex; flex-wrap: wrap; gap: 0.75rem; align-items: flex-start; margin: 0.5rem 0"}, ...children);
  const faint = (text) => el("p", {class: "faint"}, text);

  heddle.reportImages = (shown) => {
    const sections = [];
    if (shown.mistakes.length) {
      sections.push(["The worst mistakes", faint("Held-out images that the weights of the last validation gave the least probability to the right label."),
        row({id: "mistakes"}, shown.mistakes.map((m) => figure(m.image, m.name, el("strong", {}, m.answer), ` ${heddle.percent(m.probability)}`, el("br"),
          el("span", {class: "faint"}, `is ${m.label}, loss ${m.loss.toFixed(1)}`))))]);
    }
    if (shown.augmented.length) {
      sections.push(["What it is trained on", faint("Images as they are, first in each row, and as they come augmented; batches are mixed after that."),
        ...shown.augmented.map((a) => row({class: "augmented"}, figure(a.image, a.name, a.label === undefined ? el("span", {class: "faint"}, "no label") : a.label),
          a.views.map((view, i) => figure(view, `${a.name}, augmented, ${i + 1}`))))]);
    }
    return sections;
  };
})();
