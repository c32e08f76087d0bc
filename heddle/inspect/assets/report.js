// The page of training runs. heddle.data: runs [{name, path, updates: {update, seconds, loss, ...}, validations: [{kind,
// update, seconds, loss, metrics: {name: []}}], best, samples: {labels, validations: [{update, samples: [[text]]}]}, task}], and
// of one run its settings [[field, value, help]], of several the differences [{key, values}].
"use strict";
(() => {
  const d = heddle.data, el = heddle.el, runs = d.runs, isOne = runs.length === 1;
  const dashes = {snapshot: false, ema: true, average: true};
  const kindName = {snapshot: "the weights as they are", ema: "their moving average", average: "their average over validations"};
  const duration = (s) => (s < 90 ? `${Math.round(s)} s` : s < 5400 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`);
  const last = (list) => list[list.length - 1];
  const faint = (text) => el("p", {class: "faint"}, text);
  const section = (title, ...children) => heddle.main.append(el("h2", {}, title), ...children.filter(Boolean));
  const scroll = (label, table) => el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": label}, table);
  const row = (cells, tag = "td") => el("tr", {}, ...cells.map((c, i) => el(i === 0 ? "th" : tag,
    {class: i > 0 && typeof c === "number" ? "number" : null, scope: i === 0 && tag === "td" ? "row" : null}, typeof c === "number" ? heddle.number(c) : c)));
  const tableOf = (head, rows) => el("table", {class: "small"}, el("thead", {}, row(head, "th")), el("tbody", {}, ...rows.map((r) => row(r))));

  const metricName = (m) => (m === "bleu" ? "BLEU" : m.replaceAll("_", " "));
  const metricText = (m, value) => (m === "bleu" ? value.toFixed(2) : value.toFixed(4));
  const metricsText = (best) => Object.entries(best.metrics).map(([m, v]) => `, ${metricName(m)} ${metricText(m, v)}`).join("");

  // --- where they stand -------------------------------------------------------------------------
  const ended = (run) => Math.max(0, ...run.updates.update.slice(-1), ...run.validations.map((v) => last(v.update)));
  const took = (run) => Math.max(0, ...run.updates.seconds.slice(-1), ...run.validations.map((v) => last(v.seconds)));
  if (isOne) {
    const run = runs[0], b = run.best;
    heddle.main.append(el("p", {}, `${heddle.number(ended(run))} updates in ${duration(took(run))}. `,
      b ? `The best model so far is in best/: ${kindName[b.kind]}, at update ${heddle.number(b.update)}, with validation loss ${heddle.number(b.loss)} ` +
        `(perplexity ${heddle.number(Math.exp(b.loss))})${metricsText(b)}.`
        : "No validation yet."),
      faint("This page is written anew as the run goes on: load it again to see what came since."));
  } else {
    section("The runs", scroll("runs", tableOf(["run", "updates", "time", "best", "at update", "validation loss", "scores"],
      runs.map((run) => [run.name, ended(run), duration(took(run)), ...(run.best
        ? [run.best.kind, run.best.update, run.best.loss, metricsText(run.best).slice(2) || "–"] : ["–", "–", "–", "–"])]))));
    section("Where their settings differ", d.differences.length
      ? scroll("settings", tableOf(["field", ...runs.map((r) => r.name)], d.differences.map((f) => [f.key, ...f.values])))
      : faint("Nowhere."));
  }

  // --- curves -----------------------------------------------------------------------------------
  let byTime = false;
  const charts = [];
  const xs = (part) => (byTime ? part.seconds.map((s) => s / 60) : part.update);
  const chart = (title, series, options) => {
    const make = () => series().filter((s) => s.y.some((y) => y !== null && Number.isFinite(y)));
    const c = heddle.lineChart({title, xTitle: "update", series: make(), height: 300, ...options});
    charts.push(() => c.redraw({series: make(), xTitle: byTime ? "minutes" : "update"}));
    return c.element;
  };
  const name = (run, what) => (isOne ? what : what ? `${run.name}, ${what}` : run.name);
  const color = (r, k) => heddle.seriesColor(isOne ? k : r);
  const updates = (field, label, isDashed = false) => () => runs.map((run, r) => ({name: name(run, label), x: xs(run.updates), y: run.updates[field],
    color: color(r, 0), dashed: isDashed}));
  const validations = (field, label) => () => runs.flatMap((run, r) => run.validations
    .filter((v) => isOne || v.kind === "snapshot").map((v) => [v, field === "loss" ? v.loss : v.metrics[field]]).filter(([, y]) => y)
    .map(([v, y], k) => ({name: name(run, isOne ? `${label}, ${v.kind}` : ""), x: xs(v), y, color: color(r, k + 1), dashed: isOne && dashes[v.kind]})));

  const axis = heddle.picker({label: "Along", items: [{name: "updates"}, {name: "time", title: "minutes of training, over all resumes"}],
    onChange: (i) => { byTime = i === 1; charts.forEach((redraw) => redraw()); }});
  const metrics = [...new Set(runs.flatMap((run) => run.validations.flatMap((v) => Object.keys(v.metrics))))];
  section("Loss", faint("Nats a token (a word or a piece of one) or a label: lower is better. " + (isOne
    ? "While the validation loss falls along with the training loss the model learns; when it rises again the model learns its text by heart."
    : "Of held-out text, the weights as they are.")),
    axis.element,
    isOne ? chart("loss", () => [...updates("nll", "training")(), ...validations("loss", "validation")()], {yTitle: "nats a token"})
      : chart("validation loss", validations("loss"), {yTitle: "nats a token"}),
    isOne ? null : el("h3", {}, "of training"),
    isOne ? null : chart("training loss", updates("nll", ""), {yTitle: "nats a token"}));
  for (const m of metrics) {
    if (m === "bleu") section("BLEU of held-out translations", faint("0 to 100, higher is better."), chart("BLEU", validations("bleu", "validation"), {yTitle: "BLEU"}));
    else section(`Validation ${metricName(m)}`, faint("0 to 1, higher is better."), chart(metricName(m), validations(m, "validation"), {yTitle: metricName(m)}));
  }

  // --- samples ----------------------------------------------------------------------------------
  const samplesOf = (run) => {
    const s = run.samples, body = el("tbody", {});
    if (!s) return null;
    const slider = el("input", {type: "range", min: 0, max: s.validations.length - 1, value: s.validations.length - 1, "aria-label": "validation",
      style: "flex: 1; min-width: 8rem; max-width: 30rem"});
    const at = el("span", {class: "number"});
    const show = () => {
      const v = s.validations[Number(slider.value)];
      at.textContent = `update ${heddle.number(v.update)}`;
      slider.setAttribute("aria-valuetext", at.textContent);
      const line = "border-bottom: 2px solid var(--line)";
      body.replaceChildren(...v.samples.flatMap((texts) => texts.map((text, i) => {
        const border = i === texts.length - 1 ? line : "", isRight = i > 1 && text === texts[1];
        return el("tr", {}, el("th", {scope: "row", style: border}, s.labels[i]),
          el("td", {class: i === 1 && texts.length > 2 ? "faint" : null, style: `${border};white-space: pre-wrap;${isRight ? "color: var(--head2)" : ""}`}, text || "(nothing)"));
      })));
    };
    slider.addEventListener("input", show);
    show();
    return el("div", {"data-samples": run.name}, isOne ? null : el("h3", {}, run.name),
      el("div", {class: "row"}, el("span", {class: "faint"}, "after"), slider, at), el("table", {}, body));
  };
  const samples = runs.map(samplesOf).filter(Boolean);
  if (samples.length) {
    section(runs.every((run) => run.task === "translation") ? "Held-out sentences, translated at each validation" : "Held-out samples at each validation",
      faint("Move the slider to see how the model got there. Green: as it should be."), ...samples);
  }

  // --- the optimisation -------------------------------------------------------------------------
  const panel = (title, about, c) => el("div", {}, el("h3", {}, title), faint(about), c);
  section("The optimisation", el("div", {class: "columns two"},
    panel("Learning rate", "How far an update goes.", chart("learning rate", updates("learning_rate", ""), {height: 230})),
    panel("Norm of the gradient", "Sudden peaks: lower the rate, warm up longer, or clip.", chart("gradient norm", updates("gradient_norm", ""), {height: 230, yZero: true})),
    panel("Speed", "Tokens a second (of translations, of the target).", chart("speed", updates("tokens_per_second", ""), {height: 230, yZero: true})),
    panel("Loss with label smoothing", "What is minimised, in nats a token.", chart("smoothed loss", updates("loss", ""), {height: 230}))));
  if (isOne) {
    section("Settings", el("details", {}, el("summary", {}, `${d.settings.length} fields`),
      scroll("settings", tableOf(["field", "value", ""], d.settings.map(([k, v, help]) => [k, v, el("span", {class: "faint"}, help)])))));
  }
  heddle.main.append(heddle.exportButtons(isOne ? runs[0].name : "runs", {json: () => d}));
})();
