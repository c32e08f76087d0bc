// The page of heddle eval --text of a model of masked tokens: each masked token with the model's answer.
// heddle.data: model, file, summary, count, questions: [{text: [before, token, after], is_right, answer, truth_p, answer_p}]
"use strict";
(() => {
  const {el, data, main} = heddle;
  const items = data.questions;
  const tests = [() => true, (q) => !q.is_right, (q) => q.is_right];
  const list = heddle.textList({label: "masked tokens", unit: "token", items, searched: (q) => `${q.text.join("")}\n${q.answer}`, columns: [
    {title: "masked token, in its text", cell: (q) => heddle.inContext(q.text)},
    {title: "answer", class: "class", cell: (q) => (q.is_right ? el("span", {class: "faint"}, `✓ ${q.answer}`) : el("span", {}, q.answer))},
    {title: "p(answer)", class: "number", cell: (q) => heddle.percent(q.answer_p)},
    {title: "p(token)", class: "number", cell: (q) => heddle.percent(q.truth_p)}]});
  const shown = heddle.picker({label: "Show", items: [{name: "all"}, {name: "wrong"}, {name: "right"}], onChange: (i) => list.filter(tests[i], "")});

  main.append(...heddle.evaluation(data),
    el("p", {class: "faint"}, "Some tokens of the text are hidden, and the model is asked for them, from what is before and behind. Here they stand in the text as it was; " +
      "of the tokens around them some were hidden too. The answer is the likeliest token."),
    shown.element, list.element);
  list.element.querySelector(".list").style.maxHeight = "70vh";
  main.append(...heddle.heldBack(items.length, data.count, "masked token"), heddle.exportButtons("masked", {json: () => data}));
})();
