// The other ways to look at heads: one matrix, all heads at once, a table that ranks them.
//
//   heddle.attentionMatrix() -> {element, show({heads, colors, unit}), svg()}
//   heddle.attentionOverview(onPick) -> {element, show({kind, chosen})}
//   heddle.attentionTable(onPick) -> {element, show({from, to, chosen})}
"use strict";
(() => {
  const {el, attention} = heddle;
  const rgbOf = (color) => {
    const name = /--(head\d)/.exec(color);
    const hex = name ? heddle.color(name[1]) : color;
    return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  };
  const percentOf = (w) => (w === null ? "too small to be kept" : Number.isNaN(w) ? "hidden by the mask" : heddle.percent(w));

  heddle.attentionMatrix = () => {
    let map = null, shown = null;
    const element = el("div", {});
    const options = () => {
      const {heads, unit} = shown, head = heads[0];
      const rows = attention.queries(head, unit), cols = attention.keys(head, unit);
      const strongest = (each) => heads.reduce((best, h) => {
        const w = each(h);
        return best === null || Number.isNaN(w) || w > best ? w : best;
      }, null);
      const high = head.isWhole ? 1 : Math.max(0.05, ...heads.map(attention.highest));
      // In a long text each weight is small: the root lets the smaller ones be seen too.
      const share = (w) => (head.isWhole ? Math.min(1, w) : Math.sqrt(Math.min(1, w / high)));
      const single = () => {
        const ramp = heddle.ramp("cold", "warm"), none = heddle.ramp("hidden", "hidden")(0);
        return (i, j, x) => (Number.isNaN(x) ? none : ramp(share(x || 0)));
      };
      const blend = () => {
        const cold = heddle.ramp("cold", "cold")(0), none = heddle.ramp("hidden", "hidden")(0);
        const colors = shown.colors.map(rgbOf);
        return (i, j, x) => {
          if (Number.isNaN(x)) return none;
          let rgb = cold;
          heads.forEach((h, k) => {
            const w = share(attention.cell(h, unit, i, j) || 0);
            rgb = rgb.map((v, c) => Math.round(v + (colors[k][c] - v) * w));
          });
          return rgb;
        };
      };
      return {
        rows: rows.length, cols: cols.length, low: 0, high, values: true,
        rowLabel: (i) => rows[i].text, colLabel: (j) => cols[j].text,
        rowTitle: attention.axes(head)[0], colTitle: attention.axes(head)[1],
        value: (i, j) => strongest((h) => attention.cell(h, unit, i, j)),
        block: (i0, i1, j0, j1) => strongest((h) => attention.block(h, unit, i0, i1, j0, j1)),
        color: heads.length > 1 ? blend() : single(),
        describe: (i, j) => `${rows[i].text} → ${cols[j].text}\n` +
          heads.map((h) => `${h.name}: ${percentOf(attention.cell(h, unit, i, j))}`).join("\n"),
        label: "attention weights",
      };
    };
    const show = (what) => {
      shown = what;
      if (map) { map.redraw(options()); return; }
      map = heddle.heatMap(options());
      element.append(map.element);
    };
    heddle.onTheme(() => { if (map) map.redraw(options()); });
    return {element, show, svg: () => map.svg(), get map() { return map; }};
  };

  // --- all heads of a kind --------------------------------------------------------------------------

  const kThumb = 72;
  const drawThumb = (canvas, head) => {
    const g = canvas.getContext("2d"), ramp = heddle.ramp("cold", "warm"), none = heddle.ramp("hidden", "hidden")(0);
    const rows = attention.queries(head, "tokens").length, cols = attention.keys(head, "tokens").length;
    const image = g.createImageData(kThumb, kThumb), high = attention.highest(head);
    for (let y = 0; y < kThumb; ++y) {
      const i0 = Math.floor(y * rows / kThumb), i1 = Math.max(i0 + 1, Math.floor((y + 1) * rows / kThumb));
      for (let x = 0; x < kThumb; ++x) {
        const j0 = Math.floor(x * cols / kThumb), j1 = Math.max(j0 + 1, Math.floor((x + 1) * cols / kThumb));
        const w = attention.block(head, "tokens", i0, i1, j0, j1), rgb = Number.isNaN(w) ? none : ramp(head.isWhole ? w : Math.sqrt(w / high));
        image.data.set([...rgb, 255], 4 * (y * kThumb + x));
      }
    }
    g.putImageData(image, 0, 0);
  };

  heddle.attentionOverview = (onPick) => {
    const element = el("div", {});
    let drawn = -1, canvases = [];
    const draw = (kind) => {
      const heads = attention.heads.filter((head) => head.kind === kind), numbers = [...new Set(heads.map((head) => head.head))].sort((x, y) => x - y);
      const thumb = (head) => {
        const canvas = el("canvas", {width: kThumb, height: kThumb, "aria-hidden": "true"});
        canvases.push([canvas, head]);
        drawThumb(canvas, head);
        return el("button", {type: "button", "data-head": head.index, style: `grid-column: ${2 + numbers.indexOf(head.head)}`,
          "aria-label": `layer ${head.layer}, head ${head.head}`, title: tipOf(head), onclick: () => onPick(head)}, canvas);
      };
      canvases = [];
      element.replaceChildren(
        el("p", {class: "faint small"}, "A row of each picture is a query, a column a key; the stronger the colour, the more attention. Pick a picture to see it large."),
        el("div", {class: "scroll"}, el("div", {class: "thumbs small", style: `grid-template-columns: max-content repeat(${numbers.length}, minmax(2.1rem, 4.6rem))`},
          el("span", {class: "faint corner"}, "head"), ...numbers.map((n) => el("span", {class: "faint"}, String(n))),
          ...[...new Set(heads.map((head) => head.layer))].flatMap((layer) =>
            [el("span", {class: "faint corner"}, `layer ${layer}`), ...heads.filter((head) => head.layer === layer).map(thumb)]))));
      drawn = kind;
    };
    const show = ({kind, chosen}) => {
      if (drawn !== kind) draw(kind);
      for (const button of element.querySelectorAll("button")) {
        button.setAttribute("aria-pressed", chosen.some((h) => h.index === Number(button.dataset.head)) ? "true" : "false");
      }
    };
    heddle.onTheme(() => canvases.forEach(([canvas, head]) => drawThumb(canvas, head)));
    return {element, show};
  };
  const tipOf = (head) => `layer ${head.layer}, head ${head.head}: entropy ${heddle.number(head.entropy, 3)}, ` +
    `distance ${heddle.number(head.distance, 3)}` + (head.importance === null ? "" : `, importance ${heddle.number(head.importance, 3)}`);

  // --- the ranking ------------------------------------------------------------------------------------

  heddle.attentionTable = (onPick) => {
    let shown = {from: "", to: "", chosen: []}, by = null, isAll = false;
    const columns = [
      {key: "link", name: () => `${shown.from} → ${shown.to}`, text: (x) => (x === null ? "–" : heddle.percent(x)), hint: "share of attention that goes from the one word to the other"},
      {key: "importance", name: () => "importance", text: (x) => (x === null ? "–" : x.toFixed(4).replace("-", "−")), hint: heddle.data.measure + ", when this head gives nothing"},
      {key: "entropy", name: () => "entropy", text: (x) => x.toFixed(2), hint: "nats; 0: each word looks at one word only; larger: attention is spread"},
      {key: "distance", name: () => "distance", text: (x) => x.toFixed(2), hint: "mean distance in tokens between who looks and what is looked at"},
    ];
    const table = el("table", {class: "small heads"});
    const more = el("button", {type: "button", onclick: () => { isAll = !isAll; draw(); }});
    const element = el("div", {}, el("div", {class: "scroll"}, table), more);
    const draw = () => {
      const hasLink = Boolean(shown.from && shown.to);
      const used = columns.filter((c) => (c.key === "link" ? hasLink : c.key !== "importance" || attention.heads.some((h) => h.importance !== null)));
      if (by === null || !used.some((c) => c.key === by)) by = used[0].key;
      const value = (head, key) => (key === "link" ? attention.link(head, shown.from, shown.to) : head[key]);
      const rows = attention.heads.map((head) => ({head, x: value(head, by)}));
      rows.sort((a, b) => (b.x === null ? -1e9 : b.x) - (a.x === null ? -1e9 : a.x));
      const kept = isAll ? rows : rows.slice(0, 10);
      const isChosen = (head) => shown.chosen.some((h) => h.index === head.index);
      table.replaceChildren(
        el("thead", {}, el("tr", {}, el("th", {}, "head"), ...used.map((c) => el("th", {class: "number", "aria-sort": c.key === by ? "descending" : "none"},
          el("button", {type: "button", title: c.hint, "aria-pressed": c.key === by ? "true" : "false", 
            onclick: () => { by = c.key; draw(); }}, c.name()))))),
        el("tbody", {}, ...kept.map(({head}) => el("tr", {tabindex: 0, "aria-selected": isChosen(head) ? "true" : "false", "data-head": head.index,
          onclick: () => onPick(head),
          onkeydown: (event) => {
            const row = event.currentTarget, next = {ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling}[event.key];
            if (event.key === "Enter") onPick(head);
            else if (next) next.focus();
            else return;
            event.preventDefault();
          }},
        el("td", {}, head.name), ...used.map((c) => el("td", {class: "number"}, c.text(value(head, c.key))))))));
      more.hidden = rows.length <= 10;
      more.textContent = isAll ? "fewer" : `all ${rows.length} heads`;
    };
    const show = (what) => {
      if (what.from !== undefined && (what.from !== shown.from || what.to !== shown.to)) by = null;
      shown = {...shown, ...what};
      draw();
    };
    return {element, show, best: () => { const row = table.querySelector("tbody tr"); return row ? attention.heads[Number(row.dataset.head)] : null; }};
  };
})();
