// The page of one attention call: its matrices one after the other, and one query followed through them.
"use strict";
(() => {
  const {el, data, main} = heddle;
  const {queries, keys, steps} = data;
  const stepOf = (key) => steps.find((s) => s.key === key);
  const isShare = (step) => step.key === "weights";
  const shape = (step) => `${step.values.length} × ${step.values[0].length}`;
  const number = (x, digits = 4) => (x === null ? "−∞" : heddle.number(x, digits));

  // --- one query followed -------------------------------------------------------------------------------

  let chosen = queries.length - 1;
  const followed = el("div", {class: "scroll", tabindex: 0, "aria-label": "the chosen query, key by key"});
  const sum = el("p", {class: "small"});
  const follow = () => {
    const scores = stepOf("scores").values[chosen], scaled = stepOf("scaled").values[chosen];
    const masked = stepOf("masked").values[chosen], weights = stepOf("weights").values[chosen];
    const high = masked.reduce((a, b) => (b === null ? a : Math.max(a, b)), -Infinity);
    const total = masked.reduce((a, b) => (b === null ? a : a + Math.exp(b - high)), 0);
    followed.replaceChildren(el("table", {},
      el("thead", {}, el("tr", {}, ...["key", "score", `÷ ${number(data.divisor)}`, "masked", "exp", "÷ sum = weight", ""].map((t, i) =>
        el("th", {class: i > 0 && i < 6 ? "number" : undefined}, t)))),
      el("tbody", {}, ...keys.map((key, j) => el("tr", {},
        el("td", {}, key), el("td", {class: "number"}, number(scores[j])), el("td", {class: "number"}, number(scaled[j])),
        el("td", {class: "number"}, number(masked[j])),
        el("td", {class: "number"}, masked[j] === null ? "0" : number(Math.exp(masked[j] - high))),
        el("td", {class: "number"}, number(weights[j])),
        el("td", {style: "width: 30%; min-width: 6rem"}, heddle.bar(weights[j])))))));
    const result = stepOf("sum");
    sum.textContent = `exp is of the masked score less the largest of the row, ${number(high === -Infinity ? null : high)}; ` +
      `the sum of the column is ${number(total)}.` +
      (result ? ` Result: (${result.values[chosen].slice(0, 6).map((x) => number(x)).join(", ")}${result.values[chosen].length > 6 ? ", …" : ""}).` : "");
  };
  const select = el("select", {"aria-label": "query", onchange: (event) => { chosen = Number(event.target.value); follow(); maps.forEach((m) => m.redraw({})); }},
    ...queries.map((q, i) => el("option", {value: i, selected: i === chosen}, `${i + 1}. ${q}`)));

  // --- the matrices -----------------------------------------------------------------------------------

  const maps = [];
  const section = (step, i) => {
    const rows = step.values, high = rows.flat().reduce((a, b) => (b === null ? a : Math.max(a, Math.abs(b))), 0) || 1;
    const label = (labels, k) => (labels.length ? labels[k] : String(k));
    const isMask = step.key === "mask";
    const map = heddle.heatMap({
      rows: rows.length, cols: rows[0].length, low: 0, high: isShare(step) ? 1 : high, diverging: !isShare(step),
      cell: rows[0].length <= 16 ? 52 : 34, values: true,
      value: (r, c) => (rows[r][c] === null ? NaN : rows[r][c]),
      color: isMask ? (r, c, x) => heddle.ramp(Number.isNaN(x) ? "hidden" : "cold", Number.isNaN(x) ? "hidden" : "warm")(0.35) : undefined,
      rowLabel: (r) => label(step.rows, r), colLabel: (c) => label(step.cols, c),
      describe: (r, c, x) => `${label(step.rows, r)}, ${step.cols.length ? label(step.cols, c) : "column " + c}\n${Number.isNaN(x) ? "−∞: hidden" : number(x, 6)}`,
      onPick: (r) => { if (step.rows.length === queries.length && !["k", "v", "r"].includes(step.key)) { chosen = r; select.value = r; follow(); } },
      label: step.name,
    });
    maps.push(map);
    return el("section", {"data-step": step.key},
      el("h2", {}, `${i + 1}. ${step.name} `, el("span", {class: "faint small mono"}, shape(step))),
      el("p", {}, el("span", {class: "mono"}, step.formula)), el("p", {class: "faint"}, step.text), map.element,
      heddle.exportButtons(step.key, {svg: () => map.svg(), json: () => ({name: step.name, formula: step.formula, rows: step.rows, cols: step.cols, values: step.values})}));
  };

  main.append(
    ...(data.note ? [el("p", {class: "faint"}, data.note)] : []),
    el("p", {class: "faint small"}, "Attention answers questions: each query is compared with every key, and gets the values of the keys mixed by how well they fit. Blue is above 0, red below; point at a cell for its number."),
    el("section", {class: "panel"}, el("h2", {style: "margin-top: 0"}, "One query followed"), el("div", {class: "row"}, "Query", select), followed, sum),
    ...steps.map(section));
  follow();
})();
