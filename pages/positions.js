// The page of a table of positions. heddle.data: kind, about, positions, columns, names, and values (row
// by row), or packed and most (16 bits each), or the frequencies of rotary angles; of biases in windows: window and rows.
"use strict";
(() => {
  const d = heddle.data, el = heddle.el, rows = d.positions, cols = d.columns;
  const isRotary = d.kind === "rotary", isNamed = ["sinusoidal", "axes"].includes(d.kind), isWindow = d.window > 0;
  const rowName = (i) => (isWindow ? d.rows[i] : String(i));
  const packed = d.packed ? heddle.unpack16(d.packed) : null;
  const value = d.frequencies ? (i, j) => i * d.frequencies[j]
    : packed ? (i, j) => (packed[i * cols + j] / 65535 * 2 - 1) * d.most
    : (i, j) => d.values[i * cols + j];
  let most = 0;
  if (packed) most = d.most;
  else if (!isRotary) for (const x of d.values) most = Math.max(most, Math.abs(x));
  // Position i as numbers between -1 and 1 (learned: of any size), whose products measure how alike they are.
  const parts = isRotary ? [(i, j) => Math.cos(value(i, j)), (i, j) => Math.sin(value(i, j))] : [value];

  const says = {
    sinusoidal: ["A token's vector says what it is, not where it stands. So a row of this table is added to it: row 0 to the " +
      "first token, row 1 to the second, and so on.",
      "Every column is a wave along the positions, as fast as its frequency: the first ones change from token to token, " +
      "the last ones hardly at all, like the hands of a clock. Sine and cosine of one frequency make a pair."],
    learned: ["Row 0 is added to the vector of the first token, row 1 to the second, and so on. The model learned these numbers in " +
      "training; nothing says what a column means, and there is no row beyond the last one: longer texts are refused."],
    grid: ["A row is added to the vector of each cell of an image, line by line, after those of class tokens, if there are any. The model " +
      "learned these numbers in training; nothing says what a column means. Images of other sizes get vectors in between."],
    axes: ["A row is added to the vector of each cell of an image, line by line; class tokens get none. The first half of it (x) is learned of the " +
      "cell's column, the second (y) of its row: cells of one column have the first half in common, cells of one line the second.",
      "The model learned these numbers in training; nothing says what a column means. Images of other sizes get vectors in between, axis by axis."],
    rotary: ["Nothing is added to the tokens. Instead each pair of columns of every query and key is turned like the hand of a clock, by the angle " +
      "that stands here for its position. The product of a query and a key then depends on how far apart they are, not on where they stand.",
      "The first pairs turn fast and tell neighbours apart, the last ones turn slowly and tell far from near."],
    none: ["Nothing is added to the tokens: the same tokens in another order give the same vectors in that order. Attention alone sees a bag of words.",
      "A decoder still knows something of order, because a token sees only what came before it."],
    recurrence: ["Nothing is added to the tokens. They are read one after the other, and each changes the state that the next one is read " +
      "from: in another order the same tokens leave another state."],
    bias: ["Nothing is added to the tokens. Instead each head adds a number to the score of a query and a key, by how far apart the two stand and " +
      "which comes first: the model learned one for each bucket of distances. heddle explain shows them pair by pair."],
    window: ["Nothing is added to the patches of the image. Instead each head adds a number to the score of a query and a key of its window, by how many " +
      "lines down and columns right the key is from the query: the model learned one for each of these ways. heddle attention shows the windows over an image."],
  }[d.kind];
  heddle.main.append(...says.map((text) => el("p", {}, text)),
    el("p", {class: "faint small mono"}, `${d.kind}, ${rows} ${isWindow ? "ways to a key" : "positions"}, ${isWindow ? `${cols} heads` : `${isRotary ? 2 * cols : cols} wide`}: ${d.about}`));

  const section = (title, about, ...children) => 
    heddle.main.append(el("h2", {}, title), ...[about && el("p", {class: "faint"}, about), ...children].filter(Boolean));
  const scale = (text) => el("p", {class: "faint small"}, text);

  if (isWindow && rows === d.rows.length && rows === (2 * d.window - 1) ** 2) {
    section("Each head around its query", "The query is in the middle; blue keys gain, red ones lose. Pick a head to see it large.",
      heddle.windowBias({window: d.window, names: d.names, rows: d.rows, value}));
  }

  // --- the table --------------------------------------------------------------------------------
  const turn = 2 * Math.PI;
  const shown = isRotary
    ? [{name: "cosine", value: (i, j) => Math.cos(value(i, j)), most: 1},
       {name: "sine", value: (i, j) => Math.sin(value(i, j)), most: 1},
       {name: "angle", value: (i, j) => (value(i, j) % turn) / turn, most: 1}]
    : [{name: "value", value, most: most || 1}];
  let part = 0;
  const map = heddle.heatMap({
    rows, cols, label: "table of positions", diverging: true, high: shown[0].most, cell: 22,
    value: (i, j) => shown[part].value(i, j), block: (i0, i1, j0, j1) => shown[part].value(i0, j0),
    rowLabel: rowName, colLabel: (j) => (isRotary ? j : d.names[j]),
    rowTitle: isWindow ? "lines and columns to the key" : "position", colTitle: isRotary ? "pair of columns" : isWindow ? "layer and head" : "column",
    values: cols <= 12,
    describe: (i, j) => isRotary
      ? `position ${i}, ${d.names[j]}\nangle ${heddle.number(value(i, j))} radians = ${heddle.number(value(i, j) / turn)} turns\n` +
        `cosine ${heddle.number(Math.cos(value(i, j)))}, sine ${heddle.number(Math.sin(value(i, j)))}`
      : isWindow ? heddle.windowBias.describe(d.names[j], d.rows[i], value(i, j))
      : `position ${i}, column ${j}${isNamed ? ` (${d.names[j]})` : ""}\n${heddle.number(value(i, j))}`,
  });
  const pick = isRotary && heddle.picker({label: "Show", items: [{name: "cosine"}, {name: "sine"}, {name: "angle", title: "share of a turn"}],
    onChange: (i) => { part = i; map.redraw({}); }});
  section("The table", `${isWindow ? "One row a way to a key, one column a head." : "One row a position, one column a number of the vector."} ` +
    "Point at a cell, or use the arrow keys, to read it.",
    pick ? pick.element : null,
    scale(most === 0 && !isRotary ? "All zero." : `Colours: ${heddle.number(-shown[0].most)} red, 0 plain, ${heddle.number(shown[0].most)} blue.`),
    map.element,
    heddle.exportButtons("positions", {svg: () => map.svg(), json: () => ({kind: d.kind, ...(isWindow && {window: d.window, rows: d.rows}), columns: d.names,
      values: Array.from({length: rows}, (_, i) => Array.from({length: cols}, (_, j) => value(i, j)))})}));
  if (["none", "bias", "window", "recurrence"].includes(d.kind)) return;

  // --- waves ------------------------------------------------------------------------------------
  if (rows > 1) {
    const sines = d.names.map((_, j) => j).filter((j) => d.kind !== "sinusoidal" || d.names[j].startsWith("sin"));
    const some = [...new Set([0, 1, 2, 3, 4, 5].map((k) => sines[Math.round(k * (sines.length - 1) / 5)]))];
    const to = Math.min(rows, 2000);
    section("Columns as waves", isRotary ? "The cosine of some pairs along the positions." : "Some columns of the table, read downwards.",
      heddle.lineChart({title: "columns", xTitle: "position", yTitle: isRotary ? "cosine" : "value",
        series: some.map((j) => ({name: isRotary || isNamed ? d.names[j] : "column " + j,
          x: Array.from({length: to}, (_, i) => i), y: Array.from({length: to}, (_, i) => parts[0](i, j))}))}).element);
  }

  // --- cosine similarity ----------------------------------------------------------------
  // Cosine of the angle between two rows; of at most 160 positions, evenly spread.
  const kMost = 160, step = Math.ceil(rows / kMost), count = Math.ceil(rows / step);
  const vectors = Array.from({length: count}, (_, a) => {
    const v = [];
    for (const f of parts) for (let j = 0; j < cols; ++j) v.push(f(a * step, j));
    const norm = Math.hypot(...v) || 1;
    return v.map((x) => x / norm);
  });
  const dots = vectors.map((a) => vectors.map((b) => a.reduce((sum, x, k) => sum + x * b[k], 0)));
  if (count > 1) {
    const like = heddle.heatMap({rows: count, cols: count, label: "cosine similarity of positions", diverging: true, high: 1, cell: 22,
      value: (i, j) => dots[i][j], rowLabel: (i) => i * step, colLabel: (j) => j * step, rowTitle: "position", colTitle: "position",
      describe: (i, j) => `positions ${i * step} and ${j * step}, ${Math.abs(i - j) * step} apart\ncosine similarity ${heddle.number(dots[i][j])}`});
    section("Cosine similarity of positions",
      isRotary ? "The product of a query and a key of all ones, turned to their positions, at most 1: it depends on their distance alone."
        : d.kind === "sinusoidal" ? "The cosine of two rows, at most 1: it depends on their distance alone, so that “three tokens back” looks the same everywhere."
        : d.kind === "axes" ? "The cosine of two rows, at most 1. Cells of one line have half of their vectors in common, so do those of one column: squares along the diagonal, and lines beside it."
        : "The cosine of two rows, at most 1. A band along the diagonal: the model found out which positions are neighbours.",
      step > 1 ? scale(`Every ${step}th position.`) : null, like.element);
  }

  // --- numbers ----------------------------------------------------------------------------------
  const r = Math.min(rows, 16), c = Math.min(cols, 16);
  const table = el("table", {class: "small"},
    el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "position"), ...d.names.slice(0, c).map((n) => el("th", {class: "number", scope: "col"}, n)))),
    el("tbody", {}, ...Array.from({length: r}, (_, i) => el("tr", {}, el("th", {scope: "row"}, String(i)),
      ...Array.from({length: c}, (_, j) => el("td", {class: "number"}, value(i, j).toFixed(4).replace("-", "−")))))));
  section("The numbers", isRotary ? "Angles in radians." : null, el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "numbers"}, table),
    r < rows || c < cols ? scale(`The first ${r} of ${rows} rows and ${c} of ${cols} columns; “Save as JSON” has all, so has heddle positions --json.`) : null);
})();
