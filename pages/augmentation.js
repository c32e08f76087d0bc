// The page of heddle augment: sections of images, each image with its caption.
"use strict";
(() => {
  const {el, data, main} = heddle;
  const figure = (image, most) => el("figure", {}, heddle.smallImage(heddle.imageOf(image), most, image.caption), el("figcaption", {}, image.caption));
  main.append(
    el("p", {class: "faint"}, `${data.name}, as a model of ${data.size[0]} × ${data.size[1]} pixels would be trained on it. Draws are those of seed ${data.seed}; a training run draws anew for each image and epoch.`),
    el("div", {class: "images"}, figure(data.original, 224), data.second ? figure(data.second, 224) : null),
    ...data.sections.map((section) => el("section", {"data-section": section.title},
      el("h2", {}, section.title), el("p", {class: "faint small"}, section.text),
      el("div", {class: "images"}, ...section.images.map((image) => figure(image, 112))))));
})();
