// An image with its captions; a word that is pointed at, or focused, shows where the model looked.
//
//   heddle.captioned({image: canvas or <img>, name, rows, columns,
//     captions: [{text, score, words: [{text, gate (of 0 to 1; not of every model), weights() => [shares, a cell each, line by line]}]}], best first})
//     -> {elements: [that of the image, that of its captions], forget() once they are shown no more}
"use strict";
(() => {
  const {el} = heddle;
  heddle.captioned = ({image, name, rows, columns, captions}) => {
    let word = null, weights = null;
    const cells = rows * columns;
    const describe = (row, column) => `row ${row + 1}, column ${column + 1}` +
      (weights ? `: ${heddle.percent(weights[row * columns + column])} of the weight of “${word.text}”` : "");
    const map = heddle.cellMap({image, label: `${name}: bright where the word looks`, describe});
    const said = el("p", {class: "small", "aria-live": "polite"});
    const draw = () => {
      const values = weights || [], high = weights ? Math.max(...weights) : 0;
      // Without a word the image is as it is: no cell is darker than another.
      map.show({rows, columns, isVeil: true, high: weights ? high : 1, value: (i) => (weights ? values[i] : 1)});
      const peak = weights ? weights.indexOf(high) : -1;
      said.textContent = weights
        ? `“${word.text}” looked most at row ${Math.floor(peak / columns) + 1}, column ${peak % columns + 1}: ${heddle.percent(high)}, where even weights have ${heddle.percent(1 / cells)}.` +
          (word.gate === undefined ? "" : ` By its gate ${heddle.percent(word.gate)} of that counted.`)
        : "Point at a word to see where the model looked before it was written.";
    };
    const sentences = el("div", {class: "captions"});
    const choose = (to, button) => {
      word = to;
      weights = to.weights();
      for (const other of sentences.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button ? "true" : "false");
      draw();
    };
    const sentence = (caption) => el("p", {class: "sentence", "data-caption": caption.text},
      caption.words.length === 0 ? caption.text : caption.words.flatMap((each, i) => {
        const gate = each.gate === undefined ? null : el("span", {class: "gate", "aria-hidden": "true", style: `width: ${100 * each.gate}%`});
        const button = el("button", {type: "button", class: "word", "aria-pressed": "false", onpointerenter: () => choose(each, button),
          onfocus: () => choose(each, button), onclick: () => choose(each, button)}, each.text, gate);
        return i ? [" ", button] : [button];
      }), captions.length > 1 ? el("span", {class: "faint small number"}, ` ${caption.score.toFixed(3)}`) : null);
    sentences.append(...captions.map(sentence));
    sentences.addEventListener("keydown", (event) => {
      const words = [...sentences.querySelectorAll("button")], step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      const to = words[words.indexOf(document.activeElement) + (step || 0)];
      if (!step || !to) return;
      event.preventDefault();
      to.focus();
    });
    draw();
    const words = captions.flatMap((caption) => caption.words);
    const elements = [map.element, el("div", {}, sentences,
      words.length > 0 ? said : captions.some((caption) => caption.text) ? el("p", {class: "faint small"}, "This model looks at the mean of the image, so no word has a map.") : null,
      words.some((each) => each.gate !== undefined) ? el("p", {class: "faint small"}, "The bar under a word is its gate: how much of what was looked at counted.") : null)];
    return {elements, forget: map.forget};
  };
})();
