// The page of heddle eval of a translator: each line with its reference, by how far they agree.
// heddle.data: model, file, summary, count, lines: [{source, reference, translation, chrf}]
"use strict";
(() => {
  const {el, data, main} = heddle;
  const items = data.lines.map((line, i) => ({...line, i})).sort((a, b) => a.chrf - b.chrf);

  // --- one line ---------------------------------------------------------------------------------

  // Words that the other side does not have, each as often as it lacks them, are marked.
  const words = (text) => text.split(/(\s+)/);
  const plain = (word) => word.toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");
  const marked = (text, other) => {
    const left = new Map();
    for (const word of words(other)) left.set(plain(word), (left.get(plain(word)) || 0) + 1);
    return words(text).map((word) => {
      const count = left.get(plain(word)) || 0;
      left.set(plain(word), count - 1);
      return count > 0 || plain(word) === "" ? word : el("span", {class: "missing"}, word);
    });
  };
  const row = (name, content) => el("tr", {}, el("th", {scope: "row"}, name), el("td", {}, content));
  const drawn = (item) => [el("h2", {}, `Line ${(item.i + 1).toLocaleString("en")}: chrF2 ${item.chrf.toFixed(1)}`),
    el("table", {class: "texts", id: "line"}, el("tbody", {}, row("source", item.source), row("reference", marked(item.reference, item.translation)),
      row("translation", marked(item.translation, item.reference)))),
    el("p", {class: "faint small"}, "Marked: words that the other of the two does not have.")];

  // --- all lines ----------------------------------------------------------------------------------

  const list = heddle.textList({label: "lines", unit: "line", items, searched: (t) => `${t.source}\n${t.reference}\n${t.translation}`, drawn, columns: [
    {title: "translation", cell: (t) => heddle.short(t.translation || "(empty)")}, {title: "reference", class: "wide", cell: (t) => heddle.short(t.reference)},
    {title: "chrF2", class: "number", cell: (t) => t.chrf.toFixed(1)}]});
  const orders = [{name: "worst first", by: (a, b) => a.chrf - b.chrf}, {name: "best first", by: (a, b) => b.chrf - a.chrf}, {name: "as given", by: (a, b) => a.i - b.i}];
  const order = heddle.picker({label: "Order", items: orders, onChange: (k) => list.sort(orders[k].by)});
  const ten = (t) => Math.min(9, Math.floor(t.chrf / 10));
  const counts = Array.from({length: 10}, (_, k) => items.filter((t) => ten(t) === k).length);
  const most = Math.max(...counts, 1);
  const ranges = heddle.bars({label: "lines by chrF2", rows: counts.map((n, k) =>
    ({name: `${10 * k} to ${10 * k + 10}`, share: n / most, text: n.toLocaleString("en"), title: "list these lines", onPick: () => list.filter((t) => ten(t) === k, `chrF2 ${10 * k} to ${10 * k + 10}`)}))});

  main.append(...heddle.evaluation(data),
    el("p", {class: "faint"}, "BLEU is of a whole text; of a single line chrF2 says more: how far its parts of one to six characters are those of the reference, 100 if all are."),
    el("h2", {}, "Lines by chrF2"), el("p", {class: "faint small"}, "Pick a range to list its lines."), ranges, el("h2", {}, "Lines"), order.element, list.element);
  main.append(...heddle.heldBack(items.length, data.count, "line"), list.box, heddle.exportButtons("translations", {json: () => data}));
})();
