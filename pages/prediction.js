// The page of heddle eval --text of a language model: each token of the text shaded by its loss.
// heddle.data: model, file, summary, count, vocab, texts: [of all tokens]; of all but the first: loss (nats), rank,
// likeliest (an index of tokens), likeliest_p; tokens: those that were likeliest somewhere
"use strict";
(() => {
  const {el, data, main} = heddle;
  const n = data.loss.length, worst = Math.log(data.vocab);
  const tokens = data.texts.map((text, i) => ({i, text, loss: i === 0 ? null : data.loss[i - 1] ?? Infinity,
    rank: data.rank[i - 1], likeliest: data.tokens[data.likeliest[i - 1]], likeliestP: data.likeliest_p[i - 1]}));
  // Spaces and ends of lines that can be seen.
  const seen = (text) => (text.trim() === "" ? (text === "" ? "(nothing)" : text.replace(/ /g, "␣").replace(/\n/g, "↵").replace(/\t/g, "⇥")) : text.replace(/\n/g, "↵"));
  const nats = (x) => (Number.isFinite(x) ? x.toFixed(2) : "∞");
  const describe = (t) => (t.i === 0 ? `${seen(t.text)}\nthe first token: not predicted`
    : `${seen(t.text)}\nloss ${nats(t.loss)} nats, probability ${heddle.percent(Math.exp(-t.loss))}\n` +
      (t.rank === 1 ? "the model's first choice" : `choice ${t.rank.toLocaleString("en")}; the first is “${seen(t.likeliest)}”, ${heddle.percent(t.likeliestP)}`));

  // --- the text ---------------------------------------------------------------------------------

  let cursor = -1;
  const says = el("p", {class: "faint small", "aria-live": "polite", id: "token", style: "min-height: 1.5em"}, "Point at a token, or use the arrow keys.");
  const spans = tokens.map((t) => el("span", {"data-i": t.i, class: t.i === 0 ? "token first" : "token",
    style: t.i === 0 ? null : `--share: ${Math.min(1, t.loss / worst).toFixed(3)}`}, t.text.includes("\n") ? t.text.replaceAll("\n", "↵\n") : t.text === "" ? "·" : t.text));
  const box = el("div", {class: "panel text scroll", tabindex: 0, role: "group", "aria-label": "the text, token by token; arrow keys move", style: "max-width: none; max-height: 65vh; overflow-y: auto; line-height: 1.75"}, spans);
  const go = (i, at) => {
    if (cursor >= 0) spans[cursor].classList.remove("here");
    cursor = i;
    spans[i].classList.add("here");
    says.textContent = describe(tokens[i]).replace(/\n/g, "; ");
    const under = () => { const r = spans[i].getBoundingClientRect(); return {x: r.left, y: r.bottom - 12}; };
    heddle.tip(at || under(), describe(tokens[i]));
  };
  const scrollTo = (i) => {
    const a = spans[i].getBoundingClientRect(), b = box.getBoundingClientRect();
    if (a.top < b.top || a.bottom > b.bottom) box.scrollTop += a.top - b.top - b.height / 3;
  };
  box.addEventListener("pointermove", (event) => {
    const span = event.target.closest("[data-i]");
    if (span) go(Number(span.dataset.i), event);
  });
  box.addEventListener("pointerleave", heddle.untip);
  box.addEventListener("scroll", heddle.untip);
  box.addEventListener("keydown", (event) => {
    const to = {ArrowRight: cursor + 1, ArrowLeft: cursor - 1, Home: 0, End: n}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const i = Math.max(0, Math.min(n, to));
    scrollTo(i);
    go(i);
  });

  // --- where the loss is ----------------------------------------------------------------------------

  const before = (t) => tokens.slice(Math.max(0, t.i - 12), t.i).map((x) => x.text).join("").slice(-50).replace(/\n/g, "↵");
  const inText = (t) => el("span", {}, el("span", {class: "faint"}, before(t)), el("strong", {class: "marked"}, seen(t.text)));
  const predicted = tokens.slice(1);
  const total = predicted.reduce((sum, t) => sum + t.loss, 0);
  const highest = [...predicted].sort((a, b) => b.loss - a.loss).slice(0, 100);
  const list = heddle.textList({label: "tokens with the highest loss", unit: "token", items: highest, searched: (t) => t.text,
    onPick: (t, byReader) => { if (t && byReader) { scrollTo(t.i); go(t.i); } }, columns: [
      {title: "token, and what is before it", cell: inText}, {title: "model's first choice", class: "class", cell: (t) => `${seen(t.likeliest)} (${heddle.percent(t.likeliestP)})`},
      {title: "rank", class: "number", cell: (t) => t.rank.toLocaleString("en")}, {title: "loss", class: "number", cell: (t) => nats(t.loss)}]});

  const kinds = new Map();
  for (const t of predicted) {
    const kind = kinds.get(t.text) || {text: t.text, count: 0, loss: 0};
    ++kind.count;
    kind.loss += t.loss;
    kinds.set(t.text, kind);
  }
  const most = [...kinds.values()].sort((a, b) => b.loss - a.loss).slice(0, 25);
  const shares = el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "share of the loss by token"}, el("table", {style: "width: 100%"},
    el("thead", {}, el("tr", {}, ["token", "share of the loss", "", "times", "mean loss"].map((t, i) => el("th", {scope: "col", class: i > 1 ? "number" : null}, t)))),
    el("tbody", {}, most.map((k) => el("tr", {}, el("td", {class: "mono"}, seen(k.text)), el("td", {style: "width: 35%"}, heddle.bar(k.loss / (most[0].loss || 1))),
      el("td", {class: "number"}, heddle.percent(k.loss / total)), el("td", {class: "number"}, k.count.toLocaleString("en")), el("td", {class: "number"}, nats(k.loss / k.count)))))));

  // Means of at most 200 blocks.
  const size = Math.max(1, Math.ceil(n / 200));
  const blocks = Array.from({length: Math.ceil(n / size)}, (_, b) => predicted.slice(b * size, (b + 1) * size));
  const mean = (block) => block.reduce((sum, t) => sum + t.loss, 0) / block.length;

  main.append(
    ...heddle.evaluation(data),
    el("p", {class: "faint"}, "The model reads from left to right and gives every token of its vocabulary a probability to come next. The loss of the token that came is −log p: " +
      `0 where the model was sure, ${nats(worst)} where it could as well have guessed among all ${data.vocab.toLocaleString("en")}. Perplexity is e to the mean loss.`),
    el("div", {class: "row small"}, "loss 0", ...[0.1, 0.3, 0.5, 0.7, 0.9].map((share) => el("span", {class: "token", style: `--share: ${share}; padding: 0 .8rem`}, "\u00a0")), `${nats(worst)} nats and more`),
    box, says);
  if (n < data.count) main.append(el("p", {class: "faint small"}, `This page holds the first ${n.toLocaleString("en")} of ${data.count.toLocaleString("en")} predicted tokens; the figures above are of all.`));
  if (n >= 40) main.append(el("h2", {}, "Loss along the text"), heddle.lineChart({title: "loss along the text", xTitle: "token", yTitle: "loss, nats", yZero: true, height: 240,
    series: [{name: size === 1 ? "loss" : `mean of ${size} tokens`, x: blocks.map((_, b) => 1 + b * size), y: blocks.map(mean)}]}).element);
  main.append(el("h2", {}, "Tokens with the highest loss"), el("p", {class: "faint small"}, "Pick one to see it in the text."), list.element,
    el("h2", {}, "Where the loss is"), el("p", {class: "faint small"}, "Tokens of the same text taken together, those with the largest sum first."), shares,
    heddle.exportButtons("predictions", {json: () => data}));
})();
