// The page of heddle caption: images with their captions; a word that is pointed at shows where the model looked.
// heddle.data: model, count; images: [{path, width, height, shown (heddle.imageOf), rows, columns,
// captions: [{text, score, words: [{text, gate (of 0 to 1; not of every model), weights: packed, a cell each, line by line}]}], best first}]
"use strict";
(() => {
  const {el, data, main} = heddle;

  const drawn = (image) => {
    let word = null, weights = null;
    const cells = image.rows * image.columns;
    const describe = (row, column) => `row ${row + 1}, column ${column + 1}` +
      (weights ? `: ${heddle.percent(weights[row * image.columns + column] / 65535)} of the weight of “${word.text}”` : "");
    const map = heddle.cellMap({image: heddle.imageOf(image.shown), label: `${image.path}: bright where the word looks`, describe});
    const said = el("p", {class: "small", "aria-live": "polite"});
    const draw = () => {
      const values = weights || [], high = weights ? Math.max(...weights) : 0;
      // Without a word the image is as it is: no cell is darker than another.
      map.show({rows: image.rows, columns: image.columns, isVeil: true, high: weights ? high : 1, value: (i) => (weights ? values[i] : 1)});
      const peak = weights ? weights.indexOf(high) : -1;
      said.textContent = weights
        ? `“${word.text}” looked most at row ${Math.floor(peak / image.columns) + 1}, column ${peak % image.columns + 1}: ${heddle.percent(high / 65535)}, where even weights have ${heddle.percent(1 / cells)}.` +
          (word.gate === undefined ? "" : ` By its gate ${heddle.percent(word.gate)} of that counted.`)
        : "Point at a word to see where the model looked before it was written.";
    };
    const sentences = el("div", {class: "captions"});
    const choose = (to, button) => {
      word = to;
      weights = to ? [...heddle.unpack16(to.weights)] : null;
      for (const other of sentences.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button ? "true" : "false");
      draw();
    };
    const sentence = (caption) => el("p", {class: "sentence", "data-caption": caption.text},
      caption.words.length === 0 ? caption.text : caption.words.flatMap((each, i) => {
        const gate = each.gate === undefined ? null : el("span", {class: "gate", "aria-hidden": "true", style: `width: ${100 * each.gate}%`});
        const button = el("button", {type: "button", class: "word", "aria-pressed": "false", onpointerenter: () => choose(each, button),
          onfocus: () => choose(each, button), onclick: () => choose(each, button)}, each.text, gate);
        return i ? [" ", button] : [button];
      }), image.captions.length > 1 ? el("span", {class: "faint small number"}, ` ${caption.score.toFixed(3)}`) : null);
    sentences.append(...image.captions.map(sentence));
    sentences.addEventListener("keydown", (event) => {
      const words = [...sentences.querySelectorAll("button")], step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      const to = words[words.indexOf(document.activeElement) + (step || 0)];
      if (!step || !to) return;
      event.preventDefault();
      to.focus();
    });
    draw();
    const words = image.captions.flatMap((caption) => caption.words);
    return el("section", {class: "captioned"}, el("h2", {}, image.path),
      el("div", {class: "detected-parts"}, map.element, el("div", {}, sentences,
        words.length > 0 ? said : el("p", {class: "faint small"}, "This model looks at the mean of the image, so no word has a map."),
        words.some((each) => each.gate !== undefined) ? el("p", {class: "faint small"}, "The bar under a word is its gate: how much of what was looked at counted.") : null)));
  };

  main.append(
    el("p", {class: "faint small mono"}, `${data.model}, ${heddle.plural(data.count, "image")}`),
    ...heddle.heldBack(data.images.length, data.count, "image"),
    el("div", {id: "images"}, data.images.map(drawn)),
    heddle.exportButtons("captions", {json: () => ({...data, images: data.images.map(({shown, ...rest}) => ({...rest,
      captions: rest.captions.map((caption) => ({...caption, words: caption.words.map(({weights, ...word}) =>
        ({...word, weights: [...heddle.unpack16(weights)].map((x) => Math.round(x / 65535 * 1e5) / 1e5)}))}))}))})}));
})();
