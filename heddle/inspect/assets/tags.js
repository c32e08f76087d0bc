// The page of heddle classify of a tagger: how many words each class got, the texts with their words marked, and the words of one.
// heddle.data: model, count, labels, texts: [{count: words, words: [[word, label or -1, p]]}]
"use strict";
(() => {
  const {el, data, main} = heddle;
  const items = data.texts, words = (item) => item.words;
  const counts = new Map();
  for (const [, c] of items.flatMap(words)) if (c >= 0) counts.set(c, (counts.get(c) || 0) + 1);
  const order = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  // Most words are of no interest ("O"): the class that most have is not marked.
  const usual = data.labels.includes("O") ? data.labels.indexOf("O") : order.length ? order[0][0] : -1;
  const name = (c) => (c < 0 ? "none" : data.labels[c]);
  const isMarked = ([, c]) => c >= 0 && c !== usual;
  const marked = (list, rest) => el("span", {}, ...list.flatMap((w, i) => [i ? " " : "",
    isMarked(w) ? el("span", {}, el("strong", {class: "marked"}, w[0]), el("span", {class: "faint small"}, ` ${name(w[1])}`)) : w[0]]), rest > 0 ? " …" : "");
  const text = (item) => words(item).map(([word]) => word).join(" ");

  // --- one text ---------------------------------------------------------------------------------

  const box = el("section");
  const draw = (item) => {
    if (!item) { box.replaceChildren(); return; }
    box.replaceChildren(
      el("h2", {}, "Words of this text"), el("p", {class: "panel text", id: "text"}, marked(words(item), item.count - words(item).length)),
      heddle.bars({label: "words", isLong: true, rows: words(item).map(([word, c, p]) =>
        ({name: el("span", {}, word, " ", c === usual ? el("span", {class: "faint"}, name(c)) : el("strong", {}, name(c))), share: p, text: c < 0 ? "–" : heddle.percent(p)}))}));
    box.append(...heddle.heldBack(words(item).length, item.count, "word"));
  };

  // --- all texts ----------------------------------------------------------------------------------

  const list = heddle.textList({label: "texts", items, searched: (item) => `${text(item)}\n${[...new Set(words(item).map(([, c]) => name(c)))].join("\n")}`, onPick: draw, columns: [
    {title: "text", cell: (item) => marked(words(item).slice(0, 30), item.count - 30)},
    {title: "marked", class: "number", cell: (item) => String(words(item).filter(isMarked).length)}]});
  const rows = order.map(([c, n]) => ({name: data.labels[c], share: n / order[0][1], text: n.toLocaleString("en"), title: "the texts with words of this class",
    onPick: () => list.filter((item) => words(item).some(([, own]) => own === c), data.labels[c])}));

  main.append(
    el("p", {class: "faint small mono"}, `${data.model}, ${heddle.plural(data.count, "text")}, ${data.labels.length} class${data.labels.length === 1 ? "" : "es"}`),
    el("p", {class: "faint"}, `The model gives each word a probability for each class; the likeliest is shown.${usual < 0 ? "" : ` Words of another class than ${name(usual)} are marked.`}`));
  if (items.length > 1) {
    main.append(el("h2", {}, "Classes"), el("p", {class: "faint small"}, "How many words each class is the likeliest of. Pick one to list the texts with such words."),
      el("div", {class: "scroll list", style: "max-height: 18rem"}, heddle.bars({label: "words of each class", isLong: true, rows})),
      el("h2", {}, "Texts"), list.element);
  }
  main.append(...heddle.heldBack(items.length, data.count, "text"), box, heddle.exportButtons("words", {json: () => data}));
})();
