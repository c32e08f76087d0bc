// The page of heddle classify: how many texts each class got, the texts, and the classes of one of them.
// heddle.data: model, count, labels, scale (softmax, sigmoid, none), texts: [{text, classes: [[label, p]]}]
"use strict";
(() => {
  const {el, data, main} = heddle;
  const items = data.texts, label = (item) => data.labels[item.classes[0][0]];
  const isShare = data.scale !== "none";
  const shown = (p) => (isShare ? heddle.percent(p) : heddle.number(p));

  // --- one text ---------------------------------------------------------------------------------

  const box = el("section");
  const draw = (item) => {
    if (!item) { box.replaceChildren(); return; }
    const most = Math.max(...item.classes.map(([, p]) => Math.abs(p))) || 1;
    const rest = data.labels.length - item.classes.length;
    box.replaceChildren(
      el("h2", {}, "Classes of this text"), el("p", {class: "panel text", id: "text"}, item.text),
      heddle.bars({label: "classes", isLong: true, rows: item.classes.map(([c, p], i) =>
        ({name: i === 0 ? el("strong", {}, data.labels[c]) : data.labels[c], share: isShare ? p : Math.abs(p) / most, text: shown(p)}))}),
      el("p", {class: "faint small"}, rest > 0
        ? `${rest === 1 ? "The other class has" : `The other ${rest} classes have`} ` +
          (data.scale === "softmax" ? `${heddle.percent(Math.max(0, 1 - item.classes.reduce((sum, [, p]) => sum + p, 0)))} together.` : "less each.") : ""));
  };

  // --- all texts ----------------------------------------------------------------------------------

  const list = heddle.textList({label: "texts", items, searched: (item) => `${item.text}\n${label(item)}`, onPick: draw, columns: [
    {title: "text", cell: (item) => heddle.short(item.text)},
    {title: "class", class: "class", cell: label},
    {title: isShare ? "probability" : "value", class: "number", cell: (item) => shown(item.classes[0][1])}]});
  const counts = new Map();
  for (const item of items) counts.set(item.classes[0][0], (counts.get(item.classes[0][0]) || 0) + 1);
  const rows = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([c, n]) =>
    ({name: data.labels[c], share: n / Math.max(...counts.values()), text: n.toLocaleString("en"), title: "the texts of this class",
      onPick: () => list.filter((item) => item.classes[0][0] === c, data.labels[c])}));

  main.append(
    el("p", {class: "faint small mono"}, `${data.model}, ${heddle.plural(data.count, "text")}, ${data.labels.length} class${data.labels.length === 1 ? "" : "es"}`),
    el("p", {class: "faint"}, data.scale === "softmax" ? "The model gives each class a probability; those of a text sum to 1."
      : data.scale === "sigmoid" ? "The model gives each class a probability of its own: a text may have several classes, or none."
      : "The model gives numbers, not probabilities."));
  if (items.length > 1) {
    main.append(el("h2", {}, "Likeliest class"), el("p", {class: "faint small"}, "How many texts each class is the likeliest of. Pick one to list its texts."),
      el("div", {class: "scroll list", style: "max-height: 18rem"}, heddle.bars({label: "texts of each class", isLong: true, rows})),
      el("h2", {}, "Texts"), list.element);
  }
  main.append(...heddle.heldBack(items.length, data.count, "text"), box, heddle.exportButtons("classes", {json: () => data}));
})();
