// The page of heddle fill: each text with a token in place of each mask, and the likely tokens as bars.
// heddle.data: model, count, texts: [{parts: what stands around the masks, masks: [[[token, p]]]}]
"use strict";
(() => {
  const {el, data, main} = heddle;
  const items = data.texts.map((t) => ({...t, chosen: t.masks.map(() => 0)}));
  const tokenOf = (item, m) => item.masks[m][item.chosen[m]][0];
  // Tokens in the places of the masks; what the tokenizer took for masks may be other places than those found.
  const filled = (item, show) => item.parts.flatMap((part, i) =>
    (i + 1 < item.parts.length ? [part, item.masks[i] ? show(item, i) : "[MASK]"] : [part]));
  const plain = (item) => filled(item, tokenOf).join("");

  const drawn = (item) => {
    const choose = (m, i) => {
      item.chosen[m] = i;
      list.pick(item);
      list.box.querySelectorAll("table.bars")[m].rows[i].focus({preventScroll: true});
    };
    return [
      el("p", {class: "panel text", id: "sentence"}, filled(item, (t, m) => el("strong", {class: "marked"}, tokenOf(t, m)))),
      el("div", {class: item.masks.length > 1 ? "columns two" : ""}, item.masks.map((tokens, m) => el("section", {},
        el("h2", {}, item.masks.length > 1 ? `Mask ${m + 1}` : "Tokens for the mask"),
        heddle.bars({label: `tokens for mask ${m + 1}`, rows: tokens.map(([token, p], i) =>
          ({name: i === item.chosen[m] ? el("strong", {}, token) : token, share: p, text: heddle.percent(p), isChosen: i === item.chosen[m],
            title: "put it into the text", onPick: () => choose(m, i)}))}),
        el("p", {class: "faint small"}, `Together ${heddle.percent(tokens.reduce((sum, w) => sum + w[1], 0))}; the rest is spread over the other tokens.`))))];
  };

  main.append(
    el("p", {class: "faint small mono"}, `${data.model}, ${heddle.plural(data.count, "text")}`),
    el("p", {class: "faint"}, "The model reads a text to both sides of each mask and gives every token of its vocabulary a probability. " +
      "Pick a token to see it in the text. Of several masks each is filled with the others in place: two tokens that are likely alone need not go together."));
  const list = heddle.textList({label: "texts", items, searched: plain, drawn, columns: [
    {title: "text, with the likeliest tokens", cell: (item) => (plain(item).length > 160 ? heddle.short(plain(item)) : el("span", {}, filled(item, (t, m) => el("strong", {class: "marked"}, tokenOf(t, m)))))},
    {title: "likeliest", class: "number", cell: (item) => heddle.percent(item.masks[0][0][1])}]});
  if (items.length > 1) main.append(list.element);
  main.append(...heddle.heldBack(items.length, data.count, "text"), list.box, heddle.exportButtons("fill", {json: () => data}));
})();
