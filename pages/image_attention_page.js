// The attention page of an image: one query's attention over the image, all heads beside each other, roll-out.
"use strict";
(() => {
  const {el, data, main, imageAttention} = heddle;
  const {grids, calls, heads, nameOf} = imageAttention;
  const kMass = 0.6, kOutlier = 3;
  const image = heddle.imageOf(data.pixels);
  // Those whose keys are of the image.
  const callsThere = calls.filter((call) => grids[call.keys].rows && heads.some((head) => head.call === call.index));
  // A detector's surest query; else the first token, or the middle of the image.
  const surest = data.objects.reduce((best, object, i) => (object.score > data.objects[best].score ? i : best), 0);
  const isOfObjects = (grid) => !grid.rows && data.objects.length === grid.tokens.length;
  const firstQuery = (grid) => (isOfObjects(grid) ? surest : grid.tokens.length ? 0 : Math.floor(grid.rows / 2) * grid.columns + Math.floor(grid.columns / 2));
  const last = callsThere[callsThere.length - 1];
  const state = {view: "map", call: last, head: null, query: firstQuery(grids[last.queries]), isMass: false, how: "mean", marksOutliers: false};

  const headsOf = (call) => heads.filter((head) => head.call === call.index);
  const queryGrid = () => (state.view === "rollout" ? grids[data.rollout.queries] : grids[state.call.queries]);
  const keyGrid = () => (state.view === "rollout" ? grids[data.rollout.keys] : grids[state.call.keys]);
  const current = () => (state.view === "rollout" ? imageAttention.rolled(state.how, state.query)
    : state.head === null ? imageAttention.meanRow(state.call, state.query) : imageAttention.row(state.head, state.query));

  // Cells whose last state is much longer than those of most: they hold what is of the whole image, and draw attention that says nothing of their place.
  const cellNorms = data.norms.slice(grids[grids.length - 1].tokens.length);
  const median = [...cellNorms].sort((a, b) => a - b)[Math.floor(cellNorms.length / 2)];
  const outliers = cellNorms.map((norm, cell) => (norm > kOutlier * median ? cell : -1)).filter((cell) => cell >= 0);

  // --- pickers ----------------------------------------------------------------------------------------

  const pickers = el("section", {class: "panel", "aria-label": "which head"});
  const setCall = (call) => {
    const before = grids[state.call.queries];
    const number = state.head && state.head.head;
    state.call = call;
    state.head = state.head && (headsOf(call).find((head) => head.head === number) || headsOf(call)[0]);
    if (grids[call.queries] !== before) state.query = firstQuery(grids[call.queries]);
    drawPickers();
    draw();
  };
  const drawPickers = () => {
    const active = document.activeElement && pickers.contains(document.activeElement) ? document.activeElement.dataset.pick : null;
    const layer = heddle.picker({label: "Layer", items: callsThere.map((call) => ({name: call.title.replace(/^layer | layer/, ""), title: call.title})),
      chosen: callsThere.indexOf(state.call), onChange: (i) => setCall(callsThere[i])});
    const own = headsOf(state.call);
    const head = heddle.picker({label: "Head", items: [{name: "mean", title: "the mean of the layer's heads"}, ...own.map((h) => ({name: String(h.head), title: `head ${h.head}`}))],
      chosen: state.head === null ? 0 : 1 + own.indexOf(state.head), onChange: (i) => { state.head = i === 0 ? null : own[i - 1]; draw(); }});
    layer.buttons.forEach((b, i) => { b.dataset.pick = "layer" + i; });
    head.buttons.forEach((b, i) => { b.dataset.pick = "head" + i; });
    head.element.style.marginTop = ".35rem";
    pickers.replaceChildren(layer.element, head.element);
    const again = active && pickers.querySelector(`[data-pick="layer${layer.chosen}"]`);
    if (again) again.focus();
  };
  const views = [{key: "map", name: "One head"}, {key: "all", name: "All heads"},
    ...(data.rollout ? [{key: "rollout", name: "Roll-out", title: "attention followed through all layers"}] : [])];
  const view = heddle.picker({label: "View", items: views, onChange: (i) => {
    state.view = views[i].key;
    if (state.query >= queryGrid().cells || (state.query < 0 && state.view !== "rollout")) state.query = firstQuery(queryGrid());
    if (state.view === "rollout" && (data.rollout.rows[0] < 0 || !imageAttention.rolled(state.how, state.query))) state.query = data.rollout.rows[0];
    draw();
  }});
  const how = heddle.picker({label: "Heads", items: [{name: "mean", title: "the heads' mean, as Abnar and Zuidema 2020 have it"},
    {name: "max", title: "the largest of the heads, each row then divided by its sum"}], onChange: (i) => { state.how = ["mean", "max"][i]; draw(); }});
  const checkbox = (id, text, onChange) => el("label", {class: "small", for: id}, el("input", {type: "checkbox", id, onchange: (event) => onChange(event.target.checked)}), " " + text);
  const mass = checkbox("mass", `only the cells with ${100 * kMass} % of the weight`, (on) => { state.isMass = on; draw(); });
  const outlierBox = outliers.length ? checkbox("outliers", `mark ${outliers.length} outlier${outliers.length > 1 ? "s" : ""}`, (on) => { state.marksOutliers = on; draw(); }) : null;
  if (outlierBox) outlierBox.title = `cells whose last state is over ${kOutlier} times as long as the median: they hold what is of the whole image`;

  // --- what asks ----------------------------------------------------------------------------------------

  const asks = el("div", {class: "row", role: "group", "aria-label": "what asks"});
  const ask = (query) => { state.query = query; draw(); };
  const drawAsks = () => {
    const grid = queryGrid(), rows = state.view === "rollout" ? data.rollout.rows : null;
    const tokens = [...(rows && rows[0] === -1 ? [-1] : []), ...grid.tokens.keys()];
    const items = tokens.length > 8
      ? [el("select", {"aria-label": "query", onchange: (event) => ask(Number(event.target.value))},
        ...tokens.map((t) => el("option", {value: t, selected: t === state.query}, nameOf(grid, t))))]
      : tokens.map((t) => el("button", {type: "button", "aria-pressed": t === state.query ? "true" : "false", "data-token": t, onclick: () => ask(t)}, nameOf(grid, t)));
    asks.replaceChildren(el("span", {}, "Query: ", el("strong", {id: "query"}, nameOf(grid, state.query))), ...items,
      el("span", {class: "faint small"}, grid.rows ? "Click a cell of the image to see where it looks."
        : isOfObjects(grid) ? "The frame is the box that the query sees. Click the image: the surest box there." : ""));
  };

  // --- the image ----------------------------------------------------------------------------------------

  const describe = (row, column) => {
    const grid = keyGrid(), cell = grid.tokens.length + row * grid.columns + column, shown = current();
    if (!shown) return nameOf(grid, cell);
    const x = shown.weights[cell];
    const isOut = shown.window && !shown.window.includes(cell), isHidden = shown.tint.includes(cell);
    const norm = data.norms[cell] !== undefined && grid.cells === data.norms.length ? `; its last state's length is ${heddle.number(data.norms[cell], 3)}` : "";
    return `${nameOf(grid, cell)}: ${isOut ? "outside of the window" : isHidden ? "hidden by the mask" : x === null ? "too small to be kept" : heddle.percent(x)}${norm}`;
  };
  const pick = (row, column) => {
    const from = keyGrid(), to = queryGrid();
    if (isOfObjects(to)) {
      const x = (column + 0.5) / from.columns, y = (row + 0.5) / from.rows;
      const there = [...data.objects.keys()].filter((i) => { const [x0, y0, x1, y1] = data.objects[i].box; return x0 <= x && x <= x1 && y0 <= y && y <= y1; });
      if (there.length) ask(there.reduce((best, i) => (data.objects[i].score > data.objects[best].score ? i : best)));
    }
    if (!to.rows) return;
    // Of a roll-out through stages: cells are merged two by two, fewer at an odd edge.
    const merged = (at, many, few) => (many > few ? merged(Math.floor(at / 2), Math.ceil(many / 2), few) : at);
    const y = merged(row, from.rows, to.rows), x = merged(column, from.columns, to.columns);
    ask(to.tokens.length + y * to.columns + x);
  };
  const over = heddle.cellMap({image, label: "attention over the image: bright where it looks", onPick: pick, describe});
  const alone = heddle.cellMap({image, label: "attention alone", onPick: pick, describe});
  const said = el("p", {class: "small", "aria-live": "polite"});
  const statistics = el("p", {class: "small"}), legend = el("p", {class: "faint small", hidden: true});
  const maps = el("div", {class: "maps"}, over.element, alone.element);

  const drawMaps = () => {
    const shown = current(), grid = keyGrid(), n = grid.tokens.length;
    maps.hidden = !shown;
    if (!shown) {
      said.textContent = "There is no roll-out of this cell: it is made of the tokens alone where there are many cells.";
      return;
    }
    const cells = shown.weights.slice(n), kept = state.isMass ? imageAttention.mostMass(cells, kMass) : null;
    const high = Math.max(...cells.map((x) => x || 0)), marks = {};
    if (state.marksOutliers && grid.cells === data.norms.length) outliers.forEach((cell) => { marks[cell] = "minus"; });
    const own = state.query - queryGrid().tokens.length;
    if (own >= 0 && queryGrid().cells === grid.cells) marks[own] = "focus";
    const what = {frame: isOfObjects(queryGrid()) ? data.objects[state.query].box : null, rows: grid.rows, columns: grid.columns, high, marks, value: (i) => (kept && !kept.has(i) ? 0 : cells[i]),
      border: shown.window ? shown.window.filter((c) => c >= n).map((c) => c - n) : null, tint: shown.tint.map((c) => c - n),
      others: shown.window ? state.call.windowList.map((w) => [...w.keys].filter((c) => c !== 65535).map((c) => c - n)) : null};
    legend.hidden = !shown.window;
    legend.textContent = "The frame is the window of the query: it sees nothing outside of it. Thin lines are the other windows." +
      (shown.tint.length ? " Red cells came into the window from the other side of the image, by the shift; the mask hides them." : "");
    over.show({...what, isVeil: true});
    alone.show({...what, isVeil: false});
    const total = shown.weights.reduce((sum, x) => sum + (x || 0), 0);
    const best = [...cells.keys()].sort((a, b) => (cells[b] || 0) - (cells[a] || 0)).slice(0, 3).filter((i) => cells[i] > 0);
    const tokens = grid.tokens.map((name, t) => `${name} ${heddle.percent(shown.weights[t] || 0)}`);
    said.textContent = `${nameOf(queryGrid(), state.query)} looks most at ${best.map((i) => `${nameOf(grid, n + i)} (${heddle.percent(cells[i])})`).join(", ")}` +
      (tokens.length ? `; at tokens that are no part of the image: ${tokens.join(", ")}` : "") +
      (total < 0.995 ? `; ${heddle.percent(1 - total)} is too spread to be kept.` : ".") +
      (state.isMass ? ` ${kept.size} of ${cells.length} cells have ${100 * kMass} % of the cells' weight.` : "");
  };
  const describeHead = (head) => `It looks at about ${heddle.number(Math.exp(head.entropy), 2)} cells at a time (entropy ${heddle.number(head.entropy, 3)} nats)` +
    (head.distance === null ? "" : `, ${heddle.number(head.distance, 3)} cells away on average`) + (head.importance === null ? "." : data.measure.startsWith("fall")
      ? `; without it log p of the likeliest class ${head.importance >= 0 ? "falls" : "rises"} by ${Math.abs(head.importance).toFixed(4)}.`
      : `; without it the last hidden states change by ${heddle.percent(head.importance)}.`);

  // --- all heads ------------------------------------------------------------------------------------------

  const overview = el("div", {});
  const thumb = (head) => {
    const call = calls[head.call], grid = grids[call.keys], n = grid.tokens.length;
    const query = call.at.has(state.query) && grids[call.queries] === queryGrid() ? state.query : firstQuery(grids[call.queries]);
    const shown = imageAttention.row(head, query), cells = shown.weights.slice(n), high = Math.max(...cells.map((x) => x || 0));
    const canvas = el("canvas", {width: grid.columns, height: grid.rows, "aria-hidden": "true"}), g = canvas.getContext("2d");
    const ramp = heddle.ramp("cold", "warm"), pixels = g.createImageData(grid.columns, grid.rows);
    cells.forEach((x, i) => pixels.data.set([...ramp(high > 0 ? (x || 0) / high : 0), 255], 4 * i));
    g.putImageData(pixels, 0, 0);
    Object.assign(canvas.style, {imageRendering: "pixelated", aspectRatio: `${image.width} / ${image.height}`});
    return el("button", {type: "button", "data-head": head.index, "aria-label": `${call.title}, head ${head.head}`, style: `grid-column: ${2 + head.head}`,
      title: `${call.title}, head ${head.head}: entropy ${heddle.number(head.entropy, 3)}${head.distance === null ? "" : `, distance ${heddle.number(head.distance, 3)}`}`,
      onclick: () => { state.call = call; state.head = head; state.query = query; state.view = "map"; view.choose(0); drawPickers(); draw(); }}, canvas);
  };
  const drawOverview = () => {
    const most = Math.max(...heads.map((head) => head.head)) + 1;
    overview.replaceChildren(
      el("p", {class: "faint small"}, "What each head does with the query; the stronger the colour, the more attention, each map on a scale of its own. Pick one to see it over the image."),
      el("div", {class: "scroll"}, el("div", {class: "thumbs small", style: `grid-template-columns: max-content repeat(${most}, minmax(2.1rem, 5rem))`},
        el("span", {class: "faint corner"}, "head"), ...Array.from({length: most}, (_, h) => el("span", {class: "faint"}, String(h))),
        ...callsThere.flatMap((call) => [el("span", {class: "faint corner"}, call.title), ...headsOf(call).map(thumb)]))));
  };

  // --- the page ---------------------------------------------------------------------------------------------

  const title = el("h2", {}), body = el("div", {id: "view"}), rollText = el("p", {class: "faint small"},
    "The product over the layers, the last first, of (A + I) / 2 with rows of sum 1: A is the heads' mean or their largest weights, I what goes past attention. " +
    (data.rollout && data.rollout.discard > 0 ? `Of each layer's A the least weights, ${heddle.percent(data.rollout.discard)} of all, count as none. ` : "") +
    "It says which cells of the image a state can have come from.");
  const draw = () => {
    pickers.hidden = state.view !== "map";
    how.element.hidden = rollText.hidden = state.view !== "rollout";
    title.textContent = state.view === "all" ? "All heads" : state.view === "rollout" ? `Roll-out over ${data.rollout.layers} layers`
      : `${state.call.title[0].toUpperCase()}${state.call.title.slice(1)}, ${state.head === null ? "mean of the heads" : `head ${state.head.head}`}`;
    statistics.hidden = state.view !== "map" || state.head === null;
    if (state.head) statistics.textContent = describeHead(state.head);
    mass.hidden = state.view === "all";
    if (outlierBox) outlierBox.hidden = state.view === "all";
    drawAsks();
    if (state.view === "all") drawOverview();
    else drawMaps();
    body.replaceChildren(...(state.view === "all" ? [overview] : [maps, legend, said]));
    exports.hidden = state.view === "all";
  };
  const exported = () => {
    const shown = current();
    return {model: data.model, image: data.image, call: state.view === "rollout" ? null : state.call.name,
      head: state.view === "rollout" || state.head === null ? state.view === "rollout" ? state.how : "mean" : state.head.head,
      query: nameOf(queryGrid(), state.query), rows: keyGrid().rows, columns: keyGrid().columns, tokens: keyGrid().tokens,
      weights: shown ? shown.weights.map((x) => Number((x || 0).toFixed(5))) : null};
  };
  const asSvg = () => {
    const {width, height} = over.canvas;
    return heddle.svg("svg", {viewBox: `0 0 ${width} ${height}`, xmlns: "http://www.w3.org/2000/svg", width, height},
      heddle.svg("image", {href: over.canvas.toDataURL(), width, height}));
  };
  const exports = heddle.exportButtons("attention", {svg: () => `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(asSvg())}\n`, json: exported});

  heddle.onTheme(() => { if (state.view === "all") drawOverview(); });
  const classes = data.classes.length ? [el("h2", {}, "Classes"), el("table", {class: "bars small"}, el("tbody", {},
    ...data.classes.map((c, i) => el("tr", {}, el("td", {}, c.label), el("td", {}, heddle.bar(c.probability, i === 0)), el("td", {class: "number"}, heddle.percent(c.probability))))))] : [];
  const norms = cellNorms.length ? [el("p", {class: "faint small"}, outliers.length
    ? `${outliers.length} of ${cellNorms.length} cells are outliers: their last state is over ${kOutlier} times as long as the median, ${heddle.number(median, 3)}. Such cells hold what is of the whole image, and attention to them says nothing of their place.`
    : `No cell's last state is over ${kOutlier} times as long as the median, ${heddle.number(median, 3)}: none is an outlier that gathers attention for itself.`)] : [];
  main.append(
    el("p", {class: "faint small"}, "A head is one way in which the cells of an image gather what they need from other cells. The attention of a query is shared out among what it looks at: its shares sum to 100 %. On the left the image is bright where the query looks (by the root of the share); the brightest cell has the largest one."),
    el("div", {class: "row"}, view.element, how.element), rollText, pickers, asks, title, statistics,
    el("div", {class: "row"}, mass, outlierBox), body, exports,
    el("div", {class: "columns two"}, el("section", {}, ...classes), el("section", {}, el("h2", {}, "The image"),
      heddle.smallImage(heddle.imageOf(data.pixels), 256, data.image), el("p", {class: "small"}, data.image), ...norms)));
  drawPickers();
  draw();
})();
