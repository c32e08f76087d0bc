// The page of an analysis. heddle.data: what `heddle analyze --json` prints (inspect/analysis.h), with layers: the table of
// kinds of layers and, where it was asked for, the times measured on this machine; prediction: null, or that for several ranks, with its title.
"use strict";
(() => {
  const d = heddle.data, el = heddle.el, L = d.layers;
  const isPair = d.target_length !== undefined;
  const scaled = (x, base, units, space = " ") => {
    let unit = 0;
    while (x >= base && unit < units.length - 1) { x /= base; ++unit; }
    return (unit === 0 && Number.isInteger(x) ? String(x) : x.toPrecision(x >= 999.5 ? 4 : 3)) + space + units[unit];
  };
  const bytes = (x) => scaled(x, 1024, ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
  const count = (x) => scaled(x, 1000, ["", "thousand", "million", "billion", "trillion"]);
  const flops = (x) => scaled(x, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP"]);
  // On axes: short, and round in powers of ten.
  const short = (unit) => (x) => scaled(Number(x.toPrecision(3)), 1000, ["", "k", "M", "G", "T", "P", "E", "Z"].map((p) => p + unit)).replace(/\.0+(?= )/, "");
  const faint = (...text) => el("p", {class: "faint"}, ...text);
  const section = (title, ...children) => heddle.main.append(el("h2", {}, title), ...children.filter(Boolean));
  const scroll = (label, ...children) => el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": label}, ...children);
  const shape = (s) => s.map((n) => n.toLocaleString("en")).join(" × ");

  // --- in short ---------------------------------------------------------------------------------
  const tile = (value, what) => el("div", {class: "panel"}, el("div", {style: "font-size: 1.2rem; font-weight: 600; white-space: nowrap"}, value), el("div", {class: "faint small"}, what));
  const what = d.image ? `${d.batch === 1 ? "one image" : d.batch + " images"} of ${shape(d.image)} pixels, ${d.length.toLocaleString("en")} states each${isPair ? `, ${d.target_length.toLocaleString("en")} tokens of a caption` : ""}`
    : `${d.batch === 1 ? "one sequence" : d.batch + " sequences"} of ${d.length.toLocaleString("en")} ${isPair ? `tokens in, ${d.target_length.toLocaleString("en")} out` : "positions"}` +
    (d.window ? `, self-attention in blocks of ${d.window}` : "");
  heddle.main.append(faint(`${d.model_type}, for ${what}. All by a dry run, which counts and computes nothing${L.kinds.some((k) => k.measured) ? " but the curve at the end" : ""}.`),
    el("div", {style: "display: grid; gap: .75rem; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); margin: .75rem 0"},
      tile(count(d.parameters), "parameters"), tile(bytes(d.bytes.weights.f32), `of weights in f32, ${bytes(d.bytes.weights.bf16)} in bf16`),
      tile(flops(d.flops.forward), "for one forward pass"), tile(heddle.percent(d.flops.attention / d.flops.forward), "of it in attention's own products")));

  // --- bars -------------------------------------------------------------------------------------
  // One row a bar: label, length by share, value.
  const bars = (label, rows, text) => {
    const most = Math.max(...rows.map((r) => r.value), 1);
    return el("div", {role: "list", "aria-label": label}, ...rows.map((r) => el("div", {role: "listitem", style: "margin: .4rem 0"},
      el("div", {class: "row", style: "margin: 0; justify-content: space-between"}, el("span", {style: "overflow-wrap: anywhere; min-width: 0"}, r.name), el("span", {class: "number"}, text(r.value, r))),
      el("div", {style: "background: var(--panel); border-radius: .25rem; height: .8rem; overflow: hidden", "aria-hidden": "true"},
        el("div", {style: `background: ${r.color || "var(--accent)"}; height: 100%; width: ${Math.max(r.value > 0 ? 0.3 : 0, 100 * r.value / most)}%`})),
      r.note ? el("div", {class: "faint small"}, r.note) : null)));
  };
  const parts = [];
  for (const s of d.steps) {
    let p = parts.find((q) => q.name === s.part);
    if (!p) parts.push(p = {name: s.part, layers: s.layers, parameters: 0, flops: 0});
    p.parameters += s.parameters;
    p.flops += s.flops;
    p.layers = Math.max(p.layers, s.layers);
  }
  const partOf = (s) => parts.find((p) => p.name === s.part);
  const label = (p) => (p.layers > 1 ? `${p.name}.* (${p.layers})` : p.name);
  const share = (x, all) => ` · ${heddle.percent(x / all)}`;
  section("Where parameters and FLOPs are", el("div", {class: "columns two"},
    el("div", {}, el("h3", {}, "Parameters"), bars("parameters", parts.filter((p) => p.parameters).map((p) => ({name: label(p), value: p.parameters})),
      (x) => x.toLocaleString("en") + share(x, d.parameters))),
    el("div", {}, el("h3", {}, "FLOPs of a forward pass"), bars("FLOPs", parts.filter((p) => p.flops).map((p) => ({name: label(p), value: p.flops})),
      (x) => flops(x) + share(x, d.flops.forward)))));

  // --- steps ------------------------------------------------------------------------------------
  const dear = Math.max(...d.steps.map((s) => s.flops), 1);
  const body = el("tbody", {}), nowrap = "white-space: nowrap";  // a phone scrolls the table sideways
  const each = (sum, s) => Math.floor(sum / s.layers);
  let part = "";
  for (const s of d.steps) {
    if (s.part !== part) body.append(el("tr", {}, el("th", {colspan: 6, scope: "rowgroup"}, label(partOf(s)) + (partOf(s).layers > 1 ? ", each:" : ""))));
    part = s.part;
    body.append(el("tr", {}, el("td", {style: "min-width: 11rem"}, s.name, el("div", {class: "faint small"}, s.matrices ? `by matrices of weights, ${shape(s.matrices)}` : ""), s.layers < partOf(s).layers ? el("div", {class: "faint small"}, s.layers === 1 ? "in one of them" : `in ${s.layers} of them`) : null),
      el("td", {class: "number", style: nowrap}, shape(s.in)), el("td", {}, s.out.length ? "→" : ""), el("td", {class: "number", style: nowrap}, shape(s.out)),
      el("td", {class: "number"}, s.parameters ? each(s.parameters, s).toLocaleString("en") : ""),
      el("td", {class: "number", style: `${nowrap}; background: linear-gradient(to left, color-mix(in srgb, var(--accent) 35%, transparent) ${100 * s.flops / dear}%, transparent 0)`},
        s.flops ? flops(each(s.flops, s)) : "")));
  }
  section("Step by step", faint("The shape of what comes in and goes out of each step, for the whole batch: rows are tokens; steps have the names of their layers in the checkpoint and of the operation; attention's matrices are heads × queries × keys. FLOPs are those of products, two for each multiplication and addition."),
    scroll("steps", el("table", {class: "small"}, el("thead", {}, el("tr", {}, ...["step", "in", "", "out", "parameters", "FLOPs"].map((t, i) => el("th", {scope: "col", class: i ? "number" : null}, t)))), body)));

  // --- FLOPs ------------------------------------------------------------------------------------
  const work = [{name: "forward", value: d.flops.forward}, {name: "training, plain attention", value: d.flops.training, note: "the backward pass has two products for each of the forward pass"}];
  if (d.attention.has_flash) work.push({name: "training, flash attention", value: d.flops.training_flash, note: "computes the scores again instead of storing them: a little more work, far less memory"});
  if (d.flops.decoding) work.push({name: "writing token by token, with a cache of keys and values", value: d.flops.decoding});
  if (d.flops.decoding_uncached) {
    work.push({name: "the same without the cache", value: d.flops.decoding_uncached, color: "var(--head1)",
      note: `all tokens so far are computed again for each new one: ${heddle.number(d.flops.decoding_uncached / d.flops.decoding, 3)} times the work`});
  }
  section("Work", bars("work", work, flops));

  // --- ranks ------------------------------------------------------------------------------------
  if (d.prediction) {
    const p = d.prediction, ms = (s) => `${(1000 * s).toFixed(2)} ms`;
    const row = (u) => el("tr", {}, el("th", {scope: "row", class: "number"}, String(u.ranks)), ...[ms(u.compute_seconds), ms(u.exchange_seconds), ms(u.wire_seconds), ms(u.hidden_seconds), ms(u.seconds),
      heddle.percent(u.efficiency), `${(u.bytes_sent / 1e6).toFixed(1)} MB`].map((t) => el("td", {class: "number"}, t)));
    section("Several ranks", faint(`${p.title[0].toUpperCase()}${p.title.slice(1)}.`),
      scroll("ranks", el("table", {class: "small"}, el("thead", {}, el("tr", {}, ...["ranks", "compute", "exchange", "wire", "of it hidden", "update", "efficiency", "sent by each"].map((t) => el("th", {scope: "col", class: "number"}, t)))),
        el("tbody", {}, ...p.updates.map(row)))),
      el("p", {class: "faint small"}, p.formula), el("p", {class: "faint small"}, p.meaning));
  }

  // --- memory -----------------------------------------------------------------------------------
  const memory = el("div", {});
  const showMemory = (type) => {
    const m = d.attention, b = (x) => x[type];
    const train = [{name: "weights", value: b(d.bytes.weights)}, {name: "gradients, both moments of Adam" + (type === "bf16" ? ", f32 masters" : ""), value: b(d.bytes.optimizer)},
      {name: "activations kept for the backward pass", value: b(d.bytes.kept), note: `with --recompute ${bytes(b(d.bytes.recomputed))}: only what enters each layer`},
      {name: "attention matrices, plain", value: b(m.all), color: "var(--head1)", note: `${m.matrices.toLocaleString("en")} matrices of up to ${m.entries.toLocaleString("en")} entries, ${bytes(b(m.head))} each` + (m.has_flash ? "" : "; these scores have no flash attention")}];
    if (m.has_flash) train.push({name: "attention matrices, flash", value: b(m.flash), color: "var(--head2)", note: "one number a row in place of the matrix; this is what heddle does"});
    const use = [{name: "weights", value: b(d.bytes.weights)}, {name: "activations at once", value: b(d.bytes.at_once)}];
    if (b(d.bytes.cache)) {
      use.push({name: "cache of keys and values", value: b(d.bytes.cache), note: `${bytes(b(d.bytes.cache_token))} per token that is written` +
        (b(d.bytes.cache_source) ? `, ${bytes(b(d.bytes.cache_source))} per token of the source` : "")});
    }
    use.push({name: "attention matrices, plain", value: b(m.one_layer), color: "var(--head1)", note: "those of one layer, then of the next"});
    if (m.has_flash) use.push({name: "attention matrices, flash", value: 0, color: "var(--head2)", note: "tiles that stay in the processor's cache"});
    memory.replaceChildren(el("div", {class: "columns two"}, el("div", {}, el("h3", {}, "Training"), bars("training", train, bytes)), el("div", {}, el("h3", {}, "Inference"), bars("inference", use, bytes))));
  };
  showMemory("f32");
  section("Memory", heddle.picker({label: "Numbers in", items: [{name: "f32", title: "4 bytes"}, {name: "bf16", title: "2 bytes"}], onChange: (i) => showMemory(i ? "bf16" : "f32")}).element, memory);

  // --- length -----------------------------------------------------------------------------------
  const sizes = d.sizes || [];
  if (sizes.length > 1) {
    const pixels = sizes.map((s) => s.image[0] * s.image[1]);
    const row = (s, i) => el("tr", {}, el("th", {scope: "row"}, shape(s.image)), ...[s.states.toLocaleString("en"), flops(s.forward), flops(s.attention), heddle.number(s.forward / d.batch / pixels[i]), heddle.number(s.attention / d.batch / pixels[i]), bytes(s.kept_bf16)]
      .map((t) => el("td", {class: "number"}, t)));
    section("When images grow", faint("The same model made for images of each size. What has as many FLOPs a pixel at every size is linear in the image's area; attention in which every cell sees every other one is not."),
      scroll("sizes", el("table", {class: "small"}, el("thead", {}, el("tr", {}, ...["image", "states", "FLOPs forward", "of it attention", "FLOPs a pixel", "of it attention", "kept in training, bf16"].map((t, i) => el("th", {scope: "col", class: i ? "number" : null}, t)))), el("tbody", {}, ...sizes.map(row)))),
      heddle.lineChart({title: "FLOPs", xTitle: "side of the image, pixels", xLog: true, yLog: true, yText: short(""), height: 300, series: [
        {name: "attention", x: sizes.map((s) => s.image[0]), y: sizes.map((s) => s.attention), color: "var(--head1)"}, {name: "all other steps", x: sizes.map((s) => s.image[0]), y: sizes.map((s) => s.forward - s.attention), color: "var(--head0)"}]}).element);
  }
  if (!d.window && !d.image) {
    const ns = [];
    for (let n = 64; n <= Math.max(65536, 4 * d.length); n *= 2) ns.push(n);
    const times = ns.map((n) => n / d.length), linear = d.flops.forward - d.flops.attention;
    section("When sequences grow", faint("Twice the length doubles every step but attention's own products and its matrices, which grow fourfold." + (d.attention.has_flash ? " Flash attention stores no matrix." : "")),
      el("div", {class: "columns two"},
        el("div", {}, el("h3", {}, "FLOPs of a forward pass"), heddle.lineChart({title: "FLOPs", xTitle: "length", xLog: true, yLog: true, yText: short(""), height: 300, series: [
          {name: "attention", x: ns, y: times.map((t) => d.flops.attention * t * t), color: "var(--head1)"}, {name: "all other steps", x: ns, y: times.map((t) => linear * t), color: "var(--head0)"}]}).element),
        el("div", {}, el("h3", {}, "Memory of attention in training, f32"), heddle.lineChart({title: "bytes", xTitle: "length", xLog: true, yLog: true, yText: short("B"), height: 300, series: [
          {name: "plain", x: ns, y: times.map((t) => d.attention.all.f32 * t * t), color: "var(--head1)"}, ...(d.attention.has_flash ? [{name: "flash", x: ns, y: times.map((t) => d.attention.flash.f32 * t), color: "var(--head2)"}] : [])]}).element)));
  }

  // --- kinds of layers --------------------------------------------------------------------------
  const formula = (text) => text.replace("n^2 d", "n² d").replace("d^2", "d²").replace("log_k n", "log_k(n)");
  const cell = (text, value) => (text === "1" ? "1" : `${formula(text)} = ${value >= 1e4 ? count(value) : heddle.number(value, 3)}`);
  const table = el("table", {class: "small"}, el("thead", {}, el("tr", {}, ...["layer", "operations", "steps one after the other", "longest path between two positions"].map((t) => el("th", {scope: "col"}, t)))),
    el("tbody", {}, ...L.kinds.map((k) => el("tr", {}, el("th", {scope: "row"}, k.layer), el("td", {}, cell(k.operations, k.operation_count)), el("td", {}, cell(k.sequential, k.sequential_count)), el("td", {}, cell(k.path, k.path_count))))));
  const value = {"recurrent": (n) => n * L.d * L.d, "convolutional": (n) => L.kernel * n * L.d * L.d, "self-attention": (n) => n * n * L.d, "restricted self-attention": (n) => Math.min(L.reach, n) * n * L.d};
  const ns = [];
  for (let n = 16; n <= Math.max(16384, 2 * L.n); n *= 2) ns.push(n);
  const measured = L.kinds.filter((k) => k.measured);
  section("Other kinds of layers", faint(`One layer over n = ${L.n.toLocaleString("en")} positions of width d = ${L.d.toLocaleString("en")}; the convolution sees k = ${L.kernel} positions, restricted attention r = ${L.reach}. `,
    `Self-attention is the only one that joins any two positions in one step; it takes fewer operations than recurrence while n is below d${L.n < L.d ? ", as here" : ", which it is not here"}.`),
    scroll("layers", table),
    el("div", {class: measured.length ? "columns two" : "columns"},
      el("div", {}, el("h3", {}, "Operations, by the formulas"), heddle.lineChart({title: "operations", xTitle: "positions n", xLog: true, yLog: true, height: 320, yText: short(""),
        series: L.kinds.map((k) => ({name: k.layer, x: ns, y: ns.map(value[k.layer])}))}).element),
      measured.length ? el("div", {}, el("h3", {}, "Milliseconds, measured on this machine"), heddle.lineChart({title: "milliseconds", xTitle: "positions n", xLog: true, yLog: true, height: 320, yText: (x) => heddle.number(x, 3),
        series: measured.map((k) => ({name: k.layer, x: k.measured.map((p) => p.n), y: k.measured.map((p) => p.milliseconds)}))}).element) : null),
    measured.length ? faint("What the table counts and no more: no projections, no feed-forward layer. Recurrence needs n small products one after the other, which is why it lies above what its operations say. ",
      ...(L.crossings || []).map((c) => `Self-attention is slower than the ${c.layer} layer from n = ${c.n.toLocaleString("en")} by the formulas, ${c.measured === null ? "at no length timed here" : `from ${Math.round(c.measured).toLocaleString("en")} measured here`}. `))
      : faint("heddle analyze --measure times such layers on this machine and adds the curve."));
  heddle.main.append(heddle.exportButtons("analysis", {json: () => d}));
})();
