// The page of heddle caption: images with their captions; a word that is pointed at shows where the model looked.
// heddle.data: model, count; images: [{path, width, height, shown (heddle.imageOf), rows, columns,
// captions: [{text, score, words: [{text, gate (of 0 to 1; not of every model), weights: packed, a cell each, line by line}]}], best first}]
"use strict";
(() => {
  const {el, data, main} = heddle;

  const shares = (packed) => [...heddle.unpack16(packed)].map((x) => x / 65535);
  // The captions with their weights by `as`.
  const withWeights = (image, as) => image.captions.map((caption) => ({...caption,
    words: caption.words.map(({weights, ...word}) => ({...word, weights: as(weights)}))}));

  const drawn = (image) => el("section", {class: "captioned"}, el("h2", {}, image.path),
    el("div", {class: "detected-parts"}, heddle.captioned({image: heddle.imageOf(image.shown), name: image.path,
      rows: image.rows, columns: image.columns, captions: withWeights(image, (packed) => () => shares(packed))}).elements));

  main.append(
    el("p", {class: "faint small mono"}, `${data.model}, ${heddle.plural(data.count, "image")}`),
    ...heddle.heldBack(data.images.length, data.count, "image"),
    el("div", {id: "images"}, data.images.map(drawn)),
    heddle.exportButtons("captions", {json: () => ({...data, images: data.images.map(({shown, ...rest}) => ({...rest,
      captions: withWeights(rest, (packed) => shares(packed).map((x) => Math.round(x * 1e5) / 1e5))}))})}));
})();
