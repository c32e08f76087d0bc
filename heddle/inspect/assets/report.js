// The page of training runs. heddle.data: runs [{name, path, updates: {update, seconds, loss, ...}, validations: [{kind,
// update, seconds, loss, bleu}], best, samples, source, target}], and of one run its settings [[field, value, help]], of
// several the differences [{key, values}].
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

  // --- where they stand -------------------------------------------------------------------------
  const ended = (run) => Math.max(0, ...run.updates.update.slice(-1), ...run.validations.map((v) => last(v.update)));
  const took = (run) => Math.max(0, ...run.updates.seconds.slice(-1), ...run.validations.map((v) => last(v.seconds)));
  if (isOne) {
    const run = runs[0], b = run.best;
    heddle.main.append(el("p", {}, `${heddle.number(ended(run))} updates in ${duration(took(run))}. `,
      b ? `The best model so far is in best/: ${kindName[b.kind]}, at update ${heddle.number(b.update)}, with validation loss ${heddle.number(b.loss)} ` +
        `(perplexity ${heddle.number(Math.exp(b.loss))})${b.bleu === undefined ? "" : `, BLEU ${b.bleu.toFixed(2)}`}.`
        : "No validation yet."),
      faint("This page is written anew as the run goes on: load it again to see what came since."));
  } else {
    section("The runs", scroll("runs", tableOf(["run", "updates", "time", "best", "at update", "validation loss", "BLEU"],
      runs.map((run) => [run.name, ended(run), duration(took(run)), ...(run.best
        ? [run.best.kind, run.best.update, run.best.loss, run.best.bleu === undefined ? "–" : run.best.bleu.toFixed(2)] : ["–", "–", "–", "–"])]))));
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
    .filter((v) => isOne || v.kind === "snapshot").filter((v) => v[field])
    .map((v, k) => ({name: name(run, isOne ? `${label}, ${v.kind}` : ""), x: xs(v), y: v[field], color: color(r, k + 1), dashed: isOne && dashes[v.kind]})));

  const axis = heddle.picker({label: "Along", items: [{name: "updates"}, {name: "time", title: "minutes of training, over all resumes"}],
    onChange: (i) => { byTime = i === 1; charts.forEach((redraw) => redraw()); }});
  const hasBleu = runs.some((run) => run.validations.some((v) => v.bleu));
  section("Loss", faint("Nats a token (a word or a piece of one): lower is better. " + (isOne
    ? "While the validation loss falls along with the training loss the model learns; when it rises again the model learns its text by heart."
    : "Of held-out text, the weights as they are.")),
    axis.element,
    isOne ? chart("loss", () => [...updates("nll", "training")(), ...validations("loss", "validation")()], {yTitle: "nats a token"})
      : chart("validation loss", validations("loss"), {yTitle: "nats a token"}),
    isOne ? null : el("h3", {}, "of training"),
    isOne ? null : chart("training loss", updates("nll", ""), {yTitle: "nats a token"}));
  if (hasBleu) section("BLEU of held-out translations", faint("0 to 100, higher is better."), chart("BLEU", validations("bleu", "validation"), {yTitle: "BLEU"}));

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
      body.replaceChildren(...v.translations.flatMap((t, i) => [
        el("tr", {}, el("th", {scope: "row"}, run.source), el("td", {}, s.sources[i])),
        el("tr", {}, el("th", {scope: "row"}, "model"), el("td", {style: t === s.references[i] ? "color: var(--head2)" : null}, t || "(nothing)")),
        el("tr", {}, el("th", {scope: "row", style: "border-bottom: 2px solid var(--line)"}, run.target), el("td", {class: "faint", style: "border-bottom: 2px solid var(--line)"}, s.references[i]))]));
    };
    slider.addEventListener("input", show);
    show();
    return el("div", {"data-samples": run.name}, isOne ? null : el("h3", {}, run.name),
      el("div", {class: "row"}, el("span", {class: "faint"}, "after"), slider, at), el("table", {}, body));
  };
  const samples = runs.map(samplesOf).filter(Boolean);
  if (samples.length) {
    section("Held-out sentences, translated at each validation",
      faint("Move the slider to see how the model got there. Green: the very words of the reference."), ...samples);
  }

  // --- the optimisation -------------------------------------------------------------------------
  const panel = (title, about, c) => el("div", {}, el("h3", {}, title), faint(about), c);
  section("The optimisation", el("div", {class: "columns two"},
    panel("Learning rate", "How far an update goes.", chart("learning rate", updates("learning_rate", ""), {height: 230})),
    panel("Norm of the gradient", "Sudden peaks: lower the rate, warm up longer, or clip.", chart("gradient norm", updates("gradient_norm", ""), {height: 230, yZero: true})),
    panel("Speed", "Target tokens a second.", chart("speed", updates("tokens_per_second", ""), {height: 230, yZero: true})),
    panel("Loss with label smoothing", "What is minimised, in nats a token.", chart("smoothed loss", updates("loss", ""), {height: 230}))));
  if (isOne) {
    section("Settings", el("details", {}, el("summary", {}, `${d.settings.length} fields`),
      scroll("settings", tableOf(["field", "value", ""], d.settings.map(([k, v, help]) => [k, v, el("span", {class: "faint"}, help)])))));
  }
  heddle.main.append(heddle.exportButtons(isOne ? runs[0].name : "runs", {json: () => d}));
})();
