// The page of heddle embed: the cosine of all pairs of texts as a heat map, and the nearest texts of one.
// heddle.data: model, count, width, texts, cosines: (cosine + 1) / 2, 16 bits each, row by row
"use strict";
(() => {
  const {el, data, main} = heddle;
  const n = data.texts.length, packed = heddle.unpack16(data.cosines);
  const cosine = (i, j) => packed[i * n + j] / 65535 * 2 - 1;
  const nearest = (i) => data.texts.map((_, j) => j).filter((j) => j !== i).sort((a, b) => cosine(i, b) - cosine(i, a) || a - b);
  const shown = (x) => (Math.abs(x) < 5e-4 ? "0.000" : x.toFixed(3).replace("-", "−"));
  const items = data.texts.map((text, i) => ({text, i}));

  // From the first text on, always the nearest one that is left.
  const chain = () => {
    const left = new Set(data.texts.map((_, i) => i)), order = [];
    for (let at = 0; left.size; ) {
      order.push(at);
      left.delete(at);
      let next = -1;
      for (const j of left) if (next < 0 || cosine(at, j) > cosine(at, next)) next = j;
      at = next;
    }
    return order;
  };
  let order = data.texts.map((_, i) => i);

  const drawn = (item) => [el("h2", {}, "Nearest to this text"), el("p", {class: "panel text", id: "text"}, item.text || "(empty)"),
    heddle.bars({label: "nearest texts", isLong: true, rows: nearest(item.i).slice(0, 20).map((j) =>
      ({name: heddle.short(data.texts[j] || "(empty)"), share: Math.max(0, cosine(item.i, j)), text: shown(cosine(item.i, j)), title: "its nearest", onPick: () => list.pick(items[j])}))}),
    n > 21 ? el("p", {class: "faint small"}, `The 20 nearest of ${n - 1}.`) : ""];
  const list = heddle.textList({label: "texts", items, searched: (item) => item.text, drawn, columns: [
    {title: "text", cell: (item) => heddle.short(item.text || "(empty)")},
    {title: "#", class: "number", cell: (item) => String(item.i + 1)},
    {title: "nearest", class: "number", cell: (item) => (n > 1 ? shown(cosine(item.i, nearest(item.i)[0])) : "–")}]});

  main.append(
    el("p", {class: "faint small mono"}, `${data.model}, ${heddle.plural(data.count, "text")}, vectors of ${data.width}`),
    el("p", {class: "faint"}, "Each text is a vector. The cosine of two of them is 1 where they point the same way, 0 where they have nothing in common: texts that mean the same should be near 1."));
  main.append(...heddle.heldBack(n, data.count, "text"));
  if (n < 2) {
    main.append(el("p", {}, "There is one text alone, so nothing to compare it with."));
    return;
  }
  const map = heddle.heatMap({rows: n, cols: n, diverging: true, high: 1, cell: n <= 12 ? 52 : 34, values: true, label: "cosine of texts",
    value: (i, j) => cosine(order[i], order[j]), number: (i) => order[i] + 1, rowLabel: (i) => data.texts[order[i]] || "(empty)", colLabel: (j) => data.texts[order[j]] || "(empty)",
    describe: (i, j, x) => `${heddle.short(data.texts[order[i]])}\n${heddle.short(data.texts[order[j]])}\ncosine ${shown(x)}`,
    onPick: (i) => { list.filter(() => true, ""); list.pick(items[order[i]]); }});
  const sorted = heddle.picker({label: "Order", items: [{name: "as given"}, {name: "alike together", title: "from the first text on, always the nearest that is left"}],
    onChange: (k) => { order = k ? chain() : data.texts.map((_, i) => i); map.redraw({}); }});
  main.append(el("h2", {}, "All pairs"), n > 2 ? sorted.element : "",
    el("p", {class: "faint small"}, "Blue is above 0, red below. Pick a row to see what is nearest to its text."), map.element,
    heddle.exportButtons("similarity", {svg: () => map.svg(), json: () => ({texts: data.texts,
      cosines: data.texts.map((_, i) => data.texts.map((_, j) => cosine(i, j)))})}),
    el("h2", {}, "Texts"), el("div", {class: "columns two"}, list.element, list.box));
})();
