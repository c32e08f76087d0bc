// The page of one attention call: one query followed from score to weight, then its matrices one after the other, with an index.
"use strict";
(() => {
  const {el, data, main} = heddle;
  const {queries, keys, steps} = data;
  const stepOf = (key) => steps.find((s) => s.key === key);
  const shape = (step) => `${step.values.length} × ${step.values[0].length}`;
  const number = (x, digits = 4) => (x === null ? "−∞" : heddle.number(x, digits));

  // --- what a model remembers -----------------------------------------------------------------------

  // The keys of a memory are one key until they are asked for: of the scores the largest is shown, of the weights the sum.
  const remembered = keys.findIndex((key) => key !== "(memory)");
  let isFolded = remembered > 1;
  const fold = (step, values) => {
    if (step.key === "weights") return values.reduce((sum, x) => sum + x, 0);
    if (step.key === "k" || step.key === "v") return values.reduce((sum, x) => sum + x, 0) / values.length;
    return values.reduce((most, x) => (x === null || (most !== null && most > x) ? most : x), null);
  };
  const how = (step) => (step.key === "weights" ? "sum" : step.key === "k" || step.key === "v" ? "mean" : "largest");
  const isOfKeys = (labels) => labels.length === keys.length && labels[0] === "(memory)";
  const foldedLabels = (labels) => (isFolded && isOfKeys(labels) ? labels.slice(remembered - 1) : labels);
  // The step as it is shown: {rows, cols, values}.
  const seenOf = (step) => {
    let values = step.values;
    if (isFolded && isOfKeys(step.cols)) values = values.map((row) => [fold(step, row.slice(0, remembered)), ...row.slice(remembered)]);
    if (isFolded && isOfKeys(step.rows)) {
      values = [values[0].map((_, c) => fold(step, values.slice(0, remembered).map((row) => row[c]))), ...values.slice(remembered)];
    }
    return {rows: foldedLabels(step.rows), cols: foldedLabels(step.cols), values};
  };
  const folding = remembered > 1 ? el("label", {class: "small"}, el("input", {type: "checkbox", id: "fold", checked: true, onchange: (event) => {
    isFolded = event.target.checked;
    follow();
    redraw();
  }}), ` the memory's ${remembered} positions as one (largest score, sum of the weights, mean of keys and values)`) : null;

  // --- one query followed -------------------------------------------------------------------------------

  let chosen = 0;
  const followed = el("div", {class: keys.length > 48 ? "scroll list" : "scroll", tabindex: 0, role: "region", "aria-label": "the chosen query, key by key"});
  const sum = el("p", {class: "small"});
  const follow = () => {
    const [scores, scaled, masked, weights] = ["scores", "scaled", "masked", "weights"].map((key) => seenOf(stepOf(key)).values[chosen]);
    const whole = stepOf("masked").values[chosen];
    const high = whole.reduce((a, b) => (b === null ? a : Math.max(a, b)), -Infinity);
    const total = whole.reduce((a, b) => (b === null ? a : a + Math.exp(b - high)), 0);
    followed.replaceChildren(el("table", {},
      el("thead", {}, el("tr", {}, ...["key", "score", `÷ ${number(data.divisor)}`, "masked", "exp", "÷ sum = weight", ""].map((t, i) =>
        el("th", {class: i > 0 && i < 6 ? "number" : undefined}, t)))),
      el("tbody", {}, ...foldedLabels(keys).map((key, j) => el("tr", {},
        el("td", {}, key), el("td", {class: "number"}, number(scores[j])), el("td", {class: "number"}, number(scaled[j])),
        el("td", {class: "number"}, number(masked[j])),
        el("td", {class: "number"}, masked[j] === null ? "0" : number(Math.exp(masked[j] - high))),
        el("td", {class: "number"}, number(weights[j])),
        el("td", {style: "width: 30%; min-width: 6rem"}, heddle.bar(weights[j])))))));
    const result = stepOf("sum");
    sum.textContent = `exp is of the masked score less the largest of the row, ${number(high === -Infinity ? null : high)}; ` +
      `the sum of ${isFolded ? "all of them" : "the column"} is ${number(total)}.` +
      (result ? ` Result: (${result.values[chosen].slice(0, 6).map((x) => number(x)).join(", ")}${result.values[chosen].length > 6 ? ", …" : ""}).` : "");
  };
  const select = el("select", {"aria-label": "query", onchange: (event) => { chosen = Number(event.target.value); follow(); }},
    ...queries.map((q, i) => el("option", {value: i}, `${i + 1}. ${q}`)));

  // --- the matrices -----------------------------------------------------------------------------------

  const maps = new Map();
  // One query over the cells of an image: its row as the image's rows, but for the tokens before them.
  const isOverImage = (step) => Boolean(data.grid) && queries.length === 1 && step.values.length === 1 && step.cols.length === keys.length;
  const imageOptionsOf = (step) => {
    const grid = data.grid, values = step.values[0], at = (r, c) => grid.tokens.length + r * grid.columns + c, isShare = step.key === "weights";
    const high = values.reduce((a, b) => (b === null ? a : Math.max(a, Math.abs(b))), 0) || 1;
    return {rows: grid.rows, cols: grid.columns, low: 0, high, diverging: !isShare, cell: 52, values: true, rowTitle: "row", colTitle: "column",
      value: (r, c) => (values[at(r, c)] === null ? NaN : values[at(r, c)]),
      describe: (r, c, x) => `${keys[at(r, c)]}\n${Number.isNaN(x) ? "−∞: hidden" : number(x, 6)}`, label: step.name};
  };
  const tokensOf = (step) => (isOverImage(step) && data.grid.tokens.length
    ? el("p", {class: "small"}, data.grid.tokens.map((name, t) => `${name}: ${number(step.values[0][t])}`).join("; ")) : null);
  const optionsOf = (step) => {
    if (isOverImage(step)) return imageOptionsOf(step);
    const {rows, cols, values} = seenOf(step), isShare = step.key === "weights", isMask = step.key === "mask";
    const high = values.flat().reduce((a, b) => (b === null ? a : Math.max(a, Math.abs(b))), 0) || 1;
    const label = (labels, k) => (labels.length ? labels[k] : String(k));
    const memory = (labels, k) => (isFolded && k === 0 && labels[0] === "(memory)" ? `, ${how(step)} of ${remembered}` : "");
    return {
      rows: values.length, cols: values[0].length, low: 0, high: isShare ? 1 : high, diverging: !isShare,
      cell: values[0].length <= 16 ? 52 : 34, values: true,
      value: (r, c) => (values[r][c] === null ? NaN : values[r][c]),
      color: isMask ? (r, c, x) => heddle.ramp(Number.isNaN(x) ? "hidden" : "cold", Number.isNaN(x) ? "hidden" : "warm")(0.35) : undefined,
      rowLabel: (r) => label(rows, r), colLabel: (c) => label(cols, c),
      rowTitle: isOfKeys(step.cols) || step.cols.length === keys.length ? "query" : undefined,
      colTitle: isOfKeys(step.cols) || step.cols.length === keys.length ? "key" : undefined,
      describe: (r, c, x) => `${label(rows, r)}, ${cols.length ? label(cols, c) : "column " + c}${memory(rows, r) || memory(cols, c)}\n` +
        (Number.isNaN(x) ? "−∞: hidden" : number(x, 6)),
      onPick: (r) => { if (step.rows.length === queries.length && !["k", "v", "r"].includes(step.key)) { chosen = r; select.value = r; follow(); } },
      label: step.name,
    };
  };
  const redraw = () => steps.forEach((step) => maps.get(step).redraw(optionsOf(step)));
  const section = (step, i) => {
    maps.set(step, heddle.heatMap(optionsOf(step)));
    return el("section", {"data-step": step.key, id: "step-" + step.key},
      el("h2", {}, `${i + 1}. ${step.name} `, el("span", {class: "faint small mono"}, shape(step))),
      el("p", {}, el("span", {class: "mono"}, step.formula)), el("p", {class: "faint"}, step.text), tokensOf(step), maps.get(step).element);
  };

  // --- the index, and what is saved -----------------------------------------------------------------------

  const plain = (step) => ({name: step.name, formula: step.formula, rows: step.rows, cols: step.cols, values: step.values});
  const which = el("select", {"aria-label": "what to save"}, el("option", {value: ""}, "all steps"),
    ...steps.map((step, i) => el("option", {value: step.key}, `${i + 1}. ${step.name}`)));
  const save = (type, text) => heddle.save(`${which.value || "explanation"}.${type}`, type === "svg" ? "image/svg+xml" : "application/json", text);
  const asSvg = el("button", {type: "button", "data-export": "svg", disabled: true, title: "one step at a time",
    onclick: () => save("svg", maps.get(stepOf(which.value)).svg())}, "as SVG");
  which.addEventListener("change", () => { asSvg.disabled = !which.value; });
  const asJson = el("button", {type: "button", "data-export": "json",
    onclick: () => save("json", JSON.stringify(which.value ? plain(stepOf(which.value)) : steps.map(plain), null, 1) + "\n")}, "as JSON");
  const index = el("nav", {class: "panel index small", "aria-label": "steps"},
    el("ol", {}, ...steps.map((step) => el("li", {}, el("a", {href: "#step-" + step.key}, step.name)))),
    el("div", {class: "row"}, el("label", {}, "Save ", which), asSvg, asJson));

  main.append(
    ...(data.note ? [el("p", {class: "faint"}, data.note)] : []),
    el("p", {class: "faint small"}, "Attention answers questions: each query is compared with every key, and gets the values of the keys mixed by how well they fit. Blue is above 0, red below; point at a cell for its number."),
    el("div", {class: "indexed"}, index, el("div", {},
      el("section", {class: "panel"}, el("h2", {style: "margin-top: 0"}, "One query followed"), el("div", {class: "row"}, "Query", select, folding), followed, sum),
      ...steps.map(section))));
  follow();
})();
