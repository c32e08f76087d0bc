// What pages of texts share: bars of shares, and a list of texts that is searched and picked from.
//
//   heddle.bars({label, rows: [{name, share, text, isChosen, onPick, title}], isLong: names are texts}) -> element
//   heddle.textList({label, unit: "text", items, columns: [{title, cell: (item) => text, class}],
//     searched: (item) => what is searched, drawn: (item) => [elements] of the one that is picked,
//     onPick: (item, or null if there is none; byReader)})
//     -> {element, box: what is shown of that one, filter(test, name), sort((a, b) => number), pick(item)}
//   heddle.short(text, most), heddle.plural(n, "text")
//   heddle.roving(tbody) -> it, its rows with arrow keys
//   heddle.inContext([before, part, after], most) -> element, the part marked
//   heddle.evaluation(data) -> the lines that all pages of heddle eval begin with
//   heddle.heldBack(shown, count, "text") -> [a line that says what the page leaves out], or []
"use strict";
(() => {
  const el = heddle.el;
  const kRows = 200;

  heddle.short = (text, most = 160) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
  heddle.plural = (n, unit) => `${n.toLocaleString("en")} ${unit}${n === 1 ? "" : "s"}`;
  heddle.heldBack = (shown, count, unit) => (shown < count
    ? [el("p", {class: "faint small"}, `This page holds the first ${shown.toLocaleString("en")} of ${heddle.plural(count, unit)}.`)] : []);

  // Without a whole text around it the part is the text.
  heddle.inContext = ([before, part, after], most = 1000) => {
    if (!before && !after) return el("span", {}, heddle.short(part, most));
    const word = part.trimStart(), space = part.slice(0, part.length - word.length);
    return el("span", {}, el("span", {class: "faint"}, before + space), el("strong", {class: "marked"}, word), el("span", {class: "faint"}, after));
  };
  heddle.evaluation = (data) => [el("p", {class: "faint small mono"}, `${data.model}, ${data.file}`),
    el("p", {class: "panel text", id: "summary"}, data.summary)];

  const isEnter = (event) => event.key === "Enter" || event.key === " ";
  // Rows of which Tab enters one; arrows move between them.
  heddle.roving = (body) => {
    body.addEventListener("keydown", (event) => {
      const rows = [...body.rows], row = event.target.closest("tr"), to = rows[rows.indexOf(row) + heddle.arrowStep(event.key)];
      if (!to || to === row) return;
      event.preventDefault();
      row.tabIndex = -1;
      to.tabIndex = 0;
      to.focus();
    });
    return body;
  };

  heddle.bars = ({label, rows, isLong}) => el("table", {class: isLong ? "bars long" : "bars", "aria-label": label}, heddle.roving(el("tbody", {}, rows.map((row, i) =>
    el("tr", row.onPick ? {tabindex: (rows.some((r) => r.isChosen) ? row.isChosen : i === 0) ? 0 : -1, title: row.title, "aria-selected": row.isChosen ? "true" : null, onclick: row.onPick,
      onkeydown: (event) => { if (isEnter(event)) { event.preventDefault(); row.onPick(); } }} : {},
    el("td", {}, row.name), el("td", {}, heddle.bar(row.share)), el("td", {class: "number"}, row.text))))));

  heddle.textList = ({label, unit = "text", items, columns, searched, drawn, onPick}) => {
    let query = "", test = () => true, picked = null, shown = [], sorted = items;
    const box = el("section"), body = el("tbody"), about = el("span", {class: "faint small", "aria-live": "polite"});
    const all = el("button", {type: "button", hidden: true, onclick: () => filter(() => true, "")});
    const rowOf = (item) => body.children[shown.indexOf(item)];
    const pick = (item, byReader = true, hasFocus = false) => {
      for (const row of body.children) { row.removeAttribute("aria-selected"); row.tabIndex = -1; }
      picked = item;
      if (item && rowOf(item)) {
        rowOf(item).setAttribute("aria-selected", "true");
        rowOf(item).tabIndex = 0;
        if (hasFocus) rowOf(item).focus();
      }
      box.replaceChildren(...(item && drawn ? drawn(item) : []));
      if (onPick) onPick(item, byReader);
    };
    const draw = () => {
      const found = sorted.filter((item) => test(item) && searched(item).toLowerCase().includes(query));
      shown = found.slice(0, kRows);
      about.textContent = found.length === 0 ? `No ${unit} fits.`
        : heddle.plural(found.length, unit) + (shown.length < found.length ? `; the first ${kRows} are listed` : "");
      body.replaceChildren(...shown.map((item) => el("tr", {tabindex: -1, onclick: () => pick(item), onkeydown: (event) => {
        const step = heddle.arrowStep(event.key), to = shown[shown.indexOf(item) + step];
        if (isEnter(event) || (step && to)) { event.preventDefault(); pick(step ? to : item, true, true); }
      }}, columns.map((column) => el("td", {class: column.class, "data-title": column.title}, column.cell(item))))));
      pick(shown.includes(picked) ? picked : shown[0] || null, false);
    };
    const filter = (by, name) => {
      test = by;
      all.hidden = !name;
      all.textContent = name ? `× ${name}` : "";
      all.title = `all ${unit}s again`;
      draw();
    };
    const search = el("input", {type: "search", placeholder: "search", "aria-label": `search the ${unit}s`,
      oninput: (event) => { query = event.target.value.toLowerCase(); draw(); }});
    const element = el("div", {}, el("div", {class: "row"}, items.length > 1 ? search : null, all, about),
      el("div", {class: "scroll list"}, el("table", {class: "texts", "aria-label": label},
        el("thead", {}, el("tr", {}, columns.map((column) => el("th", {scope: "col", class: column.class}, column.title)))), body)));
    draw();
    const sort = (by) => { sorted = [...items].sort(by); picked = null; draw(); };
    return {element, box, filter, sort, pick};
  };
})();
