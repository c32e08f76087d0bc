// The page of training runs. heddle.data: runs [{name, path, task, tokens, objective, max_updates, done, seconds, finished, updates: {update, seconds, loss, ...},
// validations: [{kind, update, seconds, loss, metrics: {name: []}}], best, samples: {labels, validations: [{update, samples: [[text]]}]},
// findings (of a detector): {update, class_loss, blind_class_loss, distance_loss, giou_loss, class_error, query_overlap, most_objects, queries, warnings: [text]}}];
// ranks: [{update, ranks: [{host, compute_seconds, waiting_seconds, wire_seconds}]}];
// of one run its settings [[field, value, help]], images (report_images.js) where it has such, and, while it goes on, live {written, every}; of several the differences [{key, values}].
"use strict";
(() => {
  const d = heddle.data, el = heddle.el, runs = d.runs, isOne = runs.length === 1, kept = heddle.kept;
  const kindName = {snapshot: "the weights as they are", ema: "their moving average", average: "their average over validations"};
  const curveName = {snapshot: "validation", ema: "validation, moving average of weights", average: "validation, averaged weights"};
  const duration = (s) => (s < 90 ? `${Math.round(s)} s` : s < 5400 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`);
  const faint = (text) => el("p", {class: "faint"}, text);
  const section = (title, ...children) => heddle.main.append(el("h2", {}, title), ...children.filter(Boolean));
  const scroll = (label, table) => el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": label}, table);
  const cell = (c, tag, attributes) => el(tag, {class: typeof c === "number" ? "number" : null, ...attributes}, typeof c === "number" ? heddle.number(c) : c);
  const tableOf = (head, rows, kind, style) => el("table", {class: `small ${kind}`, style},
    el("thead", {}, el("tr", {}, head.map((c, i) => el("th", {scope: "col", class: typeof rows[0][i] === "number" ? "number" : null}, c)))),
    el("tbody", {}, rows.map((r) => el("tr", {}, r.map((c, i) => (i === 0 ? cell(c, "th", {scope: "row"}) : cell(c, "td", {"data-title": head[i]})))))));

  const metricName = (m) => (m === "bleu" ? "BLEU" : m.replaceAll("_", " "));
  const metricText = (m, value) => (m === "bleu" ? value.toFixed(2) : value.toFixed(4));
  // Half the interval that holds 95 % of what resampled held-out lines give.
  const spreadText = (m, width) => (width ? ` ± ${metricText(m, width)}` : "");
  const metricsText = (best) => Object.entries(best.metrics).map(([m, v]) => `, ${metricName(m)} ${metricText(m, v)}${spreadText(m, best.half_widths?.[m])}`).join("");
  // What a loss is the mean of.
  const units = [...new Set(runs.map((run) => ({sequence_classification: "text", token_classification: "labelled token", image_classification: "image",
    object_detection: "image"}[run.task] ||
    (run.tokens === "char" ? "character" : "token"))))];
  const per = `per ${units.length === 1 ? units[0] : "token"}`;
  const hasPerplexity = units.every((unit) => unit === "token" || unit === "character");
  // A detector's loss is of boxes too.
  const isNats = runs.every((run) => run.task !== "object_detection"), inNats = isNats ? ", in nats" : "", lossUnit = isNats ? `nats ${per}` : `loss ${per}`;

  // --- where they stand -------------------------------------------------------------------------
  if (isOne) {
    const run = runs[0], b = run.best, isLeft = run.max_updates > run.done, isEnd = run.finished && !d.live;
    if (d.live) heddle.main.append(heddle.live(d.live));
    heddle.main.append(el("p", {}, `${heddle.number(run.done)}${isLeft ? ` of ${heddle.number(run.max_updates)}` : ""} updates in ${duration(run.seconds)}. `,
      b ? `The best model${isEnd ? "" : " so far"} is in best/: ${kindName[b.kind]}, at update ${heddle.number(b.update)}, with validation loss ${heddle.number(b.loss)}` +
        `${hasPerplexity ? ` (perplexity ${heddle.number(Math.exp(b.loss))})` : ""}${metricsText(b)}.`
        : "No validation yet."));
  } else {
    section("The runs", scroll("runs", tableOf(["run", "updates", "time", "best", "at update", "validation loss", "scores"],
      runs.map((run) => [el("span", {title: run.path}, run.name), run.done, duration(run.seconds), ...(run.best
        ? [run.best.kind, run.best.update, run.best.loss, metricsText(run.best).slice(2) || "–"] : ["–", "–", "–", "–"])]), "runs")));
    section("Where their settings differ", d.differences.length
      ? scroll("settings", tableOf(["field", ...runs.map((r) => r.name)], d.differences.map((f) => [f.key, ...f.values]), "differences", `min-width: ${15 + 9 * runs.length}rem`))
      : faint("Nowhere."));
  }

  // --- curves -----------------------------------------------------------------------------------
  const charts = [];
  // A few points need no smoothing; TensorBoard begins at 0.6.
  const smoothed = () => (kept.smoothing !== undefined ? kept.smoothing : runs.some((run) => run.updates.update.length >= 50) ? 0.6 : 0);
  const xs = (part) => (kept.byTime ? part.seconds.map((s) => s / 60) : part.update);
  const along = () => ({xTitle: kept.byTime ? "minutes" : "update"});
  const chart = (title, series, options) => {
    const {hasZero, ...rest} = options || {};
    const make = () => ({series: series().filter((s) => s.y.some((y) => y !== null && Number.isFinite(y))), ...along(),
      smoothing: smoothed(), yLog: !hasZero && Boolean(kept.isLog), yZero: Boolean(rest.yZero) && !kept.isLog});
    if (!make().series.length) return el("figure", {class: "chart"}, el("figcaption", {}, title), faint("No data yet."));
    const hidden = kept.hidden || (kept.hidden = {});
    const c = heddle.lineChart({title, caption: title, height: 300, ...rest, ...make(), hidden: hidden[title] || [], onHide: (names) => { hidden[title] = names; }});
    charts.push(() => c.redraw(make()));
    return c.element;
  };
  const redraw = () => charts.forEach((draw) => draw());
  const name = (run, what) => (isOne ? what : run.name);
  const color = (r, k) => heddle.seriesColor(isOne ? k : r);
  const updates = (field, label, isNoisy = true) => () => runs.map((run, r) => ({name: name(run, label), x: xs(run.updates), y: run.updates[field],
    color: color(r, 0), noisy: isNoisy}));
  const validations = (field) => () => runs.flatMap((run, r) => run.validations
    .filter((v) => isOne || v.kind === "snapshot").map((v) => [v, field === "loss" ? v.loss : v.metrics[field]]).filter(([, y]) => y)
    .map(([v, y], k) => ({name: name(run, curveName[v.kind]), x: xs(v), y, color: color(r, k + 1), dashed: isOne && v.kind !== "snapshot"})));

  const axis = heddle.picker({label: "Horizontal", items: [{name: "updates"}, {name: "time", title: "minutes of training, over all resumes"}],
    chosen: kept.byTime ? 1 : 0, onChange: (i) => { kept.byTime = i === 1; redraw(); }});
  const scale = heddle.picker({label: "Vertical", items: [{name: "linear"}, {name: "logarithmic", title: "equal factors are equally far apart"}],
    chosen: kept.isLog ? 1 : 0, onChange: (i) => { kept.isLog = i === 1; redraw(); }});
  const weight = el("output", {class: "number"}, smoothed().toFixed(2));
  const smoothing = el("label", {class: "picker", title: "weight of the past in an exponential moving average, as in TensorBoard; the curve as it is stays behind it, faint"},
    el("span", {class: "label"}, "Smoothing"), el("input", {type: "range", min: 0, max: 0.99, step: 0.01, value: smoothed(), id: "smoothing", oninput: (event) => {
      kept.smoothing = Number(event.target.value);
      weight.textContent = kept.smoothing.toFixed(2);
      redraw();
    }}), weight);

  const metrics = [...new Set(runs.flatMap((run) => run.validations.flatMap((v) => Object.keys(v.metrics))))];
  const nats = {yTitle: lossUnit};
  section("Loss", faint(isOne
    ? "While the validation loss falls along with the training loss the model learns; when it rises again the model learns its data by heart. Lower is better."
    : "Validation is of held-out data, with the weights as they are. Lower is better."),
    el("div", {class: "row controls"}, axis.element, scale.element, smoothing),
    isOne ? chart(`Training and validation loss ${per}${inNats}`, () => [...updates("nll", "training")(), ...validations("loss")()], nats)
      : chart(`Validation loss ${per}${inNats}`, validations("loss"), nats),
    isOne ? null : chart(`Training loss ${per}${inNats}`, updates("nll"), nats));
  if (metrics.length) section("Scores of held-out data", ...metrics.map((m) => (m === "bleu"
    ? chart("BLEU of the validation's translations, 0 to 100; higher is better", validations("bleu"), {yTitle: "BLEU", hasZero: true, yMost: 100})
    : chart(`Validation ${metricName(m)}, 0 to 1; higher is better`, validations(m), {yTitle: metricName(m), hasZero: true, yMost: 1}))));

  // --- what is wrong with a detector ------------------------------------------------------------
  const percent = (x) => `${(100 * x).toFixed(1)} %`;
  const findingsOf = (f) => scroll("findings", tableOf(["of held-out images", "value", "what it says"], [
    ["class loss", heddle.number(f.class_loss), f.blind_class_loss === undefined ? "" : `A model that does not look at its images has ${heddle.number(f.blind_class_loss)} or more.`],
    ["class error", percent(f.class_error), "Queries that have an object and see another class, or none."],
    ["distance of boxes", heddle.number(f.distance_loss), "Sum of the four differences, as shares of the image."],
    ["1 − GIoU of boxes", heddle.number(f.giou_loss), "From 0, the same box, to 2."],
    ["overlap of queries", percent(f.query_overlap), "What the boxes of two queries share. Near 100 % all see one and the same box."],
    ["most objects of an image", heddle.number(f.most_objects), `The model has ${heddle.number(f.queries)} queries, and finds no more objects.`],
  ], "findings", "min-width: 34rem"));
  if (isOne && runs[0].findings) {
    const f = runs[0].findings;
    section("Doctor", faint(`What tells a detector that learns from one that does not: of the weights as they are, at update ${heddle.number(f.update)}.`),
      f.warnings.length ? el("ul", {id: "warnings"}, f.warnings.map((text) => el("li", {class: "warning"}, text))) : el("p", {id: "warnings"}, "Nothing to warn of."),
      findingsOf(f));
  }

  // --- samples ----------------------------------------------------------------------------------
  const samplesOf = (run, r) => {
    const s = run.samples, body = el("tbody", {}), most = s ? s.validations.length - 1 : 0;
    if (!s) return null;
    const shown = kept.samples || (kept.samples = {}), was = s.validations.findIndex((v) => v.update === shown[r]);
    const slider = el("input", {type: "range", min: 0, max: most, value: was < 0 ? most : was, "aria-label": "validation"});
    const at = el("span", {class: "number"});
    const show = () => {
      const v = s.validations[Number(slider.value)];
      at.textContent = `update ${heddle.number(v.update)}`;
      slider.setAttribute("aria-valuetext", at.textContent);
      body.replaceChildren(...v.samples.flatMap((texts) => texts.map((text, i) =>
        el("tr", {class: i === texts.length - 1 ? "last" : null}, el("th", {scope: "row"}, s.labels[i]),
          el("td", {class: i > 1 && text === texts[1] ? "right" : i === 1 && texts.length > 2 ? "faint" : null}, text || "(nothing)")))));
    };
    slider.addEventListener("input", () => {
      // At the last one the page follows the run.
      shown[r] = Number(slider.value) === most ? undefined : s.validations[Number(slider.value)].update;
      show();
    });
    show();
    return el("div", {"data-samples": run.name}, isOne ? null : el("h3", {}, run.name),
      most > 0 ? el("div", {class: "row"}, el("span", {class: "faint"}, "after"), slider, at) : null, el("table", {class: "samples"}, body));
  };
  const samples = runs.map(samplesOf).filter(Boolean);
  if (samples.length) {
    section(runs.every((run) => run.task === "translation") ? "Held-out sentences, translated at each validation" : "Held-out samples at each validation",
      faint(`${runs.some((run) => run.samples && run.samples.validations.length > 1) ? "Move the slider to see how the model got there. " : ""}Green: equal to the reference.`),
      ...samples);
  }

  if (d.images) heddle.reportImages(d.images).forEach((s) => section(...s));

  // --- the optimisation -------------------------------------------------------------------------
  const small = {height: 230};
  // What is minimised is the loss itself unless something is added to it.
  const counted = [...new Set(runs.map((run) => run.counted))].join(" or ");
  const hasMore = runs.some((run) => run.updates.loss.some((x, i) => Math.abs(x - run.updates.nll[i]) > 1e-5 * Math.abs(x)));
  const objectives = [...new Set(runs.map((run) => run.objective).filter(Boolean))];
  const panel = (about, c) => el("div", {}, c, el("p", {class: "faint small"}, about));
  section("Optimisation", el("div", {class: "columns two"},
    panel("How far an update goes.", chart("Learning rate", updates("learning_rate", "learning rate", false), small)),
    panel("Sudden peaks: lower the rate, warm up longer, or clip.", chart("Norm of the gradient", updates("gradient_norm", "gradient norm"), {...small, yZero: true})),
    panel(runs.some((run) => run.task === "translation") ? "Of translations: tokens of the target."
      : `${counted[0].toUpperCase()}${counted.slice(1)} that were read, validation aside.`,
      chart(`Speed, in ${counted} per second`, updates("per_second", `${counted} per second`), {...small, yZero: true})),
    hasMore ? panel("What an update lowers.", chart(`Training loss with ${objectives.length === 1 ? objectives[0] : "all that is added to it"}, ${isNats ? "in nats " : ""}${per}`,
      updates("loss", "objective"), small)) : null));
  // --- where the time of each rank went ---------------------------------------------------------
  if (isOne && runs[0].ranks.length) {
    const share = (one, key) => percent(one[key] / (one.compute_seconds + one.waiting_seconds + one.wire_seconds || 1));
    section("Ranks", faint("Of the thread that trains, since the run was begun or resumed; validations and saved states aside. What is on the wire while it computes counts as computing."),
      scroll("ranks", tableOf(["until update", "rank", "machine", "computing", "waiting for others", "on the wire"], runs[0].ranks.flatMap((logged) =>
        logged.ranks.map((one, rank) => [logged.update, rank, one.host, ...["compute_seconds", "waiting_seconds", "wire_seconds"].map((key) =>
          `${duration(one[key])}, ${share(one, key)}`)])), "ranks", "min-width: 40rem")));
  }
  if (isOne) {
    const details = el("details", {open: kept.settings, ontoggle: () => { kept.settings = details.open; }}, el("summary", {}, `${d.settings.length} fields`),
      el("table", {class: "small settings"}, el("tbody", {}, d.settings.map(([k, v, help]) => el("tr", {},
        el("th", {scope: "row"}, k, el("span", {class: "help"}, help)), el("td", {}, v === "" ? "–" : v))))));
    section("Settings", details);
  }
  heddle.main.append(heddle.exportButtons(isOne ? runs[0].name : "runs", {json: () => d}));
  heddle.restoreView();
})();
