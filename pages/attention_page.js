// The attention page: what is picked, the pickers, and the views of it.
"use strict";
(() => {
  const {el, attention, data, main} = heddle;
  const first = attention.heads[data.shown];
  const state = {kind: first.kind, layer: first.layer, chosen: [first], view: "lines", unit: "words", isOverlay: false};
  const most = 6;  // heads that may lie over each other

  const layersOf = (kind) => [...new Set(attention.heads.filter((h) => h.kind === kind).map((h) => h.layer))];
  const headsOf = (kind, layer) => attention.heads.filter((h) => h.kind === kind && h.layer === layer);
  // The first colour is the accent of a single head; laid over each other each has its own.
  const colors = () => state.chosen.map((head, i) => heddle.seriesColor(i));

  // --- pickers ----------------------------------------------------------------------------------------

  const pickers = el("section", {class: "panel", "aria-label": "which head"});
  const legend = el("div", {class: "row small", "aria-label": "colours of the heads"});
  const overlay = el("input", {type: "checkbox", id: "overlay", onchange: (event) => {
    state.isOverlay = event.target.checked;
    if (!state.isOverlay) state.chosen = state.chosen.slice(-1);
    drawPickers();
    draw();
  }});
  const pick = (head) => {
    state.kind = head.kind;
    state.layer = head.layer;
    if (!state.isOverlay || state.chosen[0].kind !== head.kind) state.chosen = [head];
    else if (!state.chosen.includes(head)) state.chosen = [...state.chosen, head].slice(-most);
    drawPickers();
    draw();
  };
  const toggle = (head) => {
    if (!state.isOverlay) { pick(head); return; }
    const without = state.chosen.filter((h) => h !== head);
    if (without.length === state.chosen.length) { pick(head); return; }
    if (without.length > 0) state.chosen = without;
    drawPickers();
    draw();
  };
  const drawPickers = () => {
    const active = document.activeElement && pickers.contains(document.activeElement) ? document.activeElement.dataset.pick : null;
    const kindsThere = attention.kinds.map((kind, k) => k).filter((k) => attention.heads.some((h) => h.kind === k));
    const kind = heddle.picker({label: "Attention", items: kindsThere.map((k) => ({name: attention.kinds[k].title, title: attention.kinds[k].text})),
      chosen: kindsThere.indexOf(state.kind), onChange: (i) => {
        const k = kindsThere[i], layers = layersOf(k), layer = layers.includes(state.layer) ? state.layer : layers[layers.length - 1];
        state.isOverlay = overlay.checked = false;
        pick(headsOf(k, layer).find((h) => h.head === state.chosen[0].head) || headsOf(k, layer)[0]);
      }});
    const layers = layersOf(state.kind);
    const layer = heddle.picker({label: "Layer", items: layers.map((l) => ({name: String(l), title: `layer ${l}`})), chosen: layers.indexOf(state.layer),
      onChange: (i) => {
        const inLayer = headsOf(state.kind, layers[i]);
        pick(inLayer.find((h) => h.head === state.chosen[state.chosen.length - 1].head) || inLayer[0]);
      }});
    const heads = headsOf(state.kind, state.layer);
    const buttons = heads.map((head, i) => el("button", {type: "button", "aria-pressed": state.chosen.includes(head) ? "true" : "false",
      "data-pick": "head" + i, title: `head ${head.head} of layer ${head.layer}`,
      style: state.isOverlay && state.chosen.includes(head) ? `background: ${colors()[state.chosen.indexOf(head)]}` : "",
      onclick: () => toggle(head),
      onkeydown: (event) => {
        const step = heddle.arrowStep(event.key);
        if (!step) return;
        event.preventDefault();
        const to = (i + step + heads.length) % heads.length;
        if (!state.isOverlay) pick(heads[to]);
        const button = pickers.querySelector(`[data-pick="head${to}"]`);
        if (button) button.focus();
      }}, String(head.head)));
    [[kind, "kind"], [layer, "layer"]].forEach(([p, name]) => p.buttons.forEach((b, i) => { b.dataset.pick = name + i; }));
    pickers.replaceChildren(
      kind.element, el("p", {class: "faint small"}, attention.kinds[state.kind].text), layer.element,
      el("div", {class: "picker", role: "group", "aria-label": "Head", style: "margin-top: .35rem"}, el("span", {class: "label", "aria-hidden": "true"}, "Head"), ...buttons,
        el("label", {class: "small", for: "overlay"}, overlay, " several, in colours")), legend);
    if (active) {
      const again = pickers.querySelector(`[data-pick="${active.replace(/\d+$/, "")}${active.startsWith("kind") ? kind.chosen : active.startsWith("layer") ? layer.chosen : /\d+$/.exec(active)[0]}"]`);
      if (again) again.focus();
    }
  };

  // --- views ------------------------------------------------------------------------------------------

  const lines = heddle.attentionLines(), matrix = heddle.attentionMatrix(), overview = heddle.attentionOverview((head) => {
    pick(head);
    view.choose(0);
    state.view = "lines";
    draw();
  });
  const views = [{key: "lines", name: "Lines"}, {key: "matrix", name: "Matrix"}, {key: "all", name: "All heads"}];
  const view = heddle.picker({label: "View", items: views, onChange: (i) => { state.view = views[i].key; draw(); }});
  const unit = heddle.picker({label: "Units", items: [{name: "words"}, {name: "tokens", title: "the tokens that the model reads; one that continues a word begins with +"}],
    onChange: (i) => { state.unit = ["words", "tokens"][i]; draw(); }});
  const statistics = el("p", {class: "small"});
  const body = el("div", {id: "view"});
  const title = el("h2", {});
  const table = heddle.attentionTable((head) => { pick(head); if (state.view === "all") { view.choose(0); state.view = "lines"; draw(); } });

  const describe = (head) => {
    const spread = Math.exp(head.entropy);
    return `${state.chosen.length > 1 ? head.name + ": a" : "A"} word looks at about ${heddle.number(spread, 2)} token${spread < 1.05 ? "" : "s"} (entropy ${heddle.number(head.entropy, 3)} nats), ` +
      `${heddle.number(head.distance, 3)} tokens away on average` +
      (head.importance === null ? "." : data.measure.startsWith("rise")
        ? `; without it the loss ${head.importance >= 0 ? "rises" : "falls"} by ${Math.abs(head.importance).toFixed(4)} nats per token.`
        : `; without it the last hidden states change by ${heddle.percent(head.importance)}.`);
  };

  const draw = () => {
    const what = {heads: state.chosen, colors: colors(), unit: state.unit};
    title.textContent = state.view === "all" ? `${attention.kinds[state.kind].title}: all heads`
      : state.chosen.length === 1 ? state.chosen[0].name : `${state.chosen.length} heads`;
    statistics.replaceChildren(...state.chosen.map((head) => el("span", {style: "display: block"}, describe(head))));
    statistics.hidden = state.view === "all";
    legend.replaceChildren(...(state.isOverlay ? state.chosen.map((head, i) => el("span", {},
      el("span", {class: "swatch", style: `background: ${colors()[i]}`}), head.name)) : []));
    legend.hidden = !state.isOverlay;
    exports.hidden = state.view === "all";
    unit.element.hidden = state.view === "all" || attention.sides.every((s) => s.tokens.length === s.words.length);
    const current = {lines, matrix, all: overview}[state.view];
    if (body.firstChild !== current.element) body.replaceChildren(current.element);
    if (state.view === "all") overview.show({kind: state.kind, chosen: state.chosen});
    else current.show(what);
    table.show({chosen: state.chosen});
  };

  // --- which head shows it -------------------------------------------------------------------------------

  const textsOf = (which) => [...new Set(attention.kinds.flatMap((kind) => attention.sides[kind[which]].words.map((w) => w.text)))];
  const finder = () => {
    const from = textsOf("queries"), to = textsOf("keys");
    if (from.length > 600 || to.length > 600) return el("span", {});
    const select = (name, words, chosen) => el("select", {"aria-label": name}, el("option", {value: ""}, "any word"),
      ...words.map((w) => el("option", {value: w, selected: chosen !== null && w === chosen}, w)));
    const a = select("from", from, data.from), b = select("to", to, data.to);
    const change = () => {
      if (!a.value || !b.value) return;
      table.show({from: a.value, to: b.value});
      pick(table.best());
      lines.hold(a.value);
    };
    a.addEventListener("change", change);
    b.addEventListener("change", change);
    return el("div", {class: "row"}, "Which head looks from", a, "to", b, "?");
  };

  // --- the page ------------------------------------------------------------------------------------------

  const exported = () => ({
    model: data.model, texts: data.texts, unit: state.unit,
    heads: state.chosen.map((head) => {
      const rows = attention.queries(head, state.unit), cols = attention.keys(head, state.unit);
      const number = (x) => (x === null || Number.isNaN(x) ? 0 : Number(x.toFixed(5)));
      const isWhole = head.isWhole && rows.length * cols.length < 4e6;
      return {kind: head.kindInfo.name, layer: head.layer, head: head.head, entropy: head.entropy, distance: head.distance, importance: head.importance,
        queries: rows.map((u) => u.text), keys: cols.map((u) => u.text),
        weights: isWhole ? rows.map((a) => cols.map((b) => number(attention.weight(head, a, b)))) : null};
    }),
  });
  const exports = heddle.exportButtons("attention", {svg: () => (state.view === "matrix" ? matrix.svg() : lines.svg()), json: exported});

  main.append(
    ...data.texts.map((text, i) => el("p", {}, el("span", {class: "faint"}, data.texts.length > 1 ? ["Source: ", "Target: "][i] : "Text: "),
      text.length > 600 ? text.slice(0, 600) + "…" : text)),
    el("p", {class: "faint small"}, "A head is one way in which words gather what they need from other words. The attention of a word is shared out among the words it looks at: its shares sum to 100 %."),
    el("div", {class: "columns two"},
      el("div", {}, pickers, el("div", {class: "row"}, view.element, unit.element), title, statistics, body, exports),
      el("section", {}, el("h2", {}, "Heads compared"), finder(), table.element,
        el("p", {class: "faint small"}, (attention.heads.some((h) => h.importance !== null)
          ? "Importance: " + data.measure + " when the head's output is replaced by zeros. " : "") +
          "Entropy: how far attention is spread. Distance: how far away, in tokens, the words are that it looks at. Layers and heads are counted from 0."))));
  table.show({from: data.from || "", to: data.to || ""});
  drawPickers();
  draw();
  if (data.from) lines.hold(data.from);
})();
