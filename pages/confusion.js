// The page of heddle eval --data: which classes are taken for which, how well each is found, what was wrong.
// heddle.data: model, file, summary, labels, unit, cells: [[truth, answer, count]],
// wrong: [{text: [before, part, after], truth, answer, truth_p, answer_p}]
"use strict";
(() => {
  const {el, data, main} = heddle;
  const all = data.labels.map((name, c) => ({c, name, right: 0, truths: 0, answers: 0}));
  const counts = new Map();
  for (const [t, a, count] of data.cells) {
    counts.set(t * all.length + a, count);
    all[t].truths += count;
    all[a].answers += count;
    if (t === a) all[t].right += count;
  }
  const share = (x, of) => (of > 0 ? x / of : null);
  for (const k of all) Object.assign(k, {precision: share(k.right, k.answers), recall: share(k.right, k.truths), f1: share(2 * k.right, k.truths + k.answers)});
  const used = all.filter((k) => k.truths + k.answers > 0);
  const count = (i, j) => counts.get(used[i].c * all.length + used[j].c) || 0;
  const wrongCount = used.reduce((sum, k) => sum + k.truths - k.right, 0);

  // --- what was wrong ------------------------------------------------------------------------------

  const drawn = (item) => [el("p", {class: "panel text", id: "text"}, heddle.inContext(item.text)), heddle.bars({label: "answer and truth", isLong: true, rows: [
    {name: el("span", {}, "answer: ", el("strong", {}, data.labels[item.answer])), share: item.answer_p, text: heddle.percent(item.answer_p)},
    {name: el("span", {}, "truth: ", el("strong", {}, data.labels[item.truth])), share: item.truth_p, text: heddle.percent(item.truth_p)}]})];
  const list = heddle.textList({label: `wrong ${data.unit}s`, unit: data.unit, items: data.wrong, drawn,
    searched: (q) => `${q.text.join("")}\n${data.labels[q.truth]}\n${data.labels[q.answer]}`, columns: [
      {title: data.unit, cell: (q) => heddle.inContext(q.text, 160)},
      {title: "truth", class: "class", cell: (q) => data.labels[q.truth]}, {title: "answer", class: "class", cell: (q) => data.labels[q.answer]},
      {title: "p(answer)", class: "number", cell: (q) => heddle.percent(q.answer_p)}]});
  const wrongs = el("section", {}, el("h2", {}, `Wrong ${data.unit}s`), list.element);

  // --- the matrix ------------------------------------------------------------------------------------

  // Right is positive, wrong negative; the root, so that a few percent can be seen.
  const map = heddle.heatMap({rows: used.length, cols: used.length, diverging: true, high: 1, cell: 46, values: true, label: "confusion matrix",
    rowTitle: "true class", colTitle: "predicted class", rowLabel: (i) => used[i].name, colLabel: (j) => used[j].name, number: (i) => i + 1,
    value: (i, j) => { const s = Math.sqrt(share(count(i, j), used[i].truths) || 0); return i === j ? s : s && -s; },
    cellText: (i, j) => (count(i, j) ? String(count(i, j)) : ""),
    describe: (i, j) => `${used[i].name}${i === j ? "" : ` taken for ${used[j].name}`}\n${count(i, j).toLocaleString("en")} of ${heddle.plural(used[i].truths, data.unit)}` +
      (used[i].truths ? ` (${heddle.percent(count(i, j) / used[i].truths)})` : ""),
    onPick: (i, j) => {
      const t = used[i].c, a = used[j].c;
      if (i === j) list.filter((q) => q.truth === t, `truth ${used[i].name}`);
      else list.filter((q) => q.truth === t && q.answer === a, `${used[i].name} taken for ${used[j].name}`);
    }});

  // --- the classes -------------------------------------------------------------------------------------

  const orders = [
    {name: "worst first", by: (a, b) => a.f1 - b.f1 || b.truths - a.truths}, {name: "largest first", by: (a, b) => b.truths - a.truths || a.c - b.c},
    {name: "by name", by: (a, b) => (a.name < b.name ? -1 : 1)}];
  const body = heddle.roving(el("tbody"));
  const fill = (by) => body.replaceChildren(...[...used].sort(by).map((k, i) => {
    const pick = () => list.filter((q) => q.truth === k.c || q.answer === k.c, `truth or answer ${k.name}`);
    return el("tr", {tabindex: i === 0 ? 0 : -1, title: `the wrong ${data.unit}s of this class`, onclick: pick, onkeydown: (event) => { if (event.key === "Enter") pick(); }},
      el("td", {class: "name"}, k.name), el("td", {class: "number", "data-title": "#"}, String(used.indexOf(k) + 1)), el("td", {class: "number", "data-title": data.unit + "s"}, k.truths.toLocaleString("en")),
      ...["precision", "recall", "f1"].map((m) => el("td", {class: "number", "data-title": m.replace("f1", "F1")}, k[m] === null ? "–" : k[m].toFixed(3))), el("td", {class: "wide", style: "width: 25%"}, heddle.bar(k.f1 || 0)));
  }));
  const order = heddle.picker({label: "Order", items: orders, onChange: (i) => fill(orders[i].by)});
  fill(orders[0].by);

  main.append(...heddle.evaluation(data),
    el("p", {class: "faint small"}, `A row is a true class, a column a predicted one; blue is right, red wrong, the stronger the larger the share of the row. Numbers are those of the list of classes below. Pick a cell to list its wrong ${data.unit}s.`),
    map.element, heddle.exportButtons("confusion", {svg: () => map.svg(), json: () => data}));
  if (used.length < all.length) main.append(el("p", {class: "faint small"}, `${heddle.plural(all.length - used.length, "class").replace(/classs$/, "classes")} of the model's ${all.length} neither occur nor are given.`));
  main.append(el("h2", {}, "Classes"),
    el("p", {class: "faint small"}, "Precision: of the answers that name the class, how many are right. Recall: of what is of the class, how much is found. F1: their harmonic mean; macro F1 is the mean of this column."),
    order.element, el("div", {class: "scroll list"}, el("table", {class: "texts", "aria-label": "classes"},
      el("thead", {}, el("tr", {}, ["class", "#", data.unit + "s", "precision", "recall", "F1", ""].map((t, i) => el("th", {scope: "col", class: t ? (i ? "number" : null) : "wide"}, t)))), body)));
  if (data.wrong.length) {
    main.append(wrongs, list.box, ...heddle.heldBack(data.wrong.length, wrongCount, `wrong ${data.unit}`));
  } else main.append(el("p", {}, "No answer was wrong."));
})();
