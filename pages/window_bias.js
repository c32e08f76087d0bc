// What each head of an image's windows adds to scores, as pictures around the query: one small one a head, and the chosen one large.
//
//   heddle.windowBias({window, names, rows, value: (row, head) => number}) -> element
//     names: of the heads, "layer.head"; rows: of the ways from the query to a key, (2 window - 1)^2 lines by columns
//   heddle.windowBias.describe(name, row, value) -> text
"use strict";
(() => {
  const el = heddle.el;
  const kThumb = 52;

  const told = (steps, less, more, unit) => {
    const n = Math.abs(steps);
    return n === 0 ? null : `${n} ${unit}${n === 1 ? "" : "s"} ${steps < 0 ? less : more}`;
  };
  const wayOf = (row) => {
    const [lines, columns] = row.split(" ").map(Number);
    return [told(lines, "up", "down", "line"), told(columns, "left", "right", "column")].filter(Boolean).join(", ") || "the query itself";
  };
  const describe = (name, row, value) => {
    const [layer, head] = name.split(".");
    return `layer ${layer}, head ${head}\n${wayOf(row)}: ${heddle.number(value)}`;
  };

  const draw = (canvas, side, values, most) => {
    const g = canvas.getContext("2d"), plus = heddle.ramp("cold", "warm"), minus = heddle.ramp("cold", "minus");
    const image = g.createImageData(kThumb, kThumb);
    for (let y = 0; y < kThumb; ++y) {
      for (let x = 0; x < kThumb; ++x) {
        const v = values(Math.floor(y * side / kThumb) * side + Math.floor(x * side / kThumb));
        image.data.set([...(v < 0 ? minus : plus)(Math.abs(v) / most), 255], 4 * (y * kThumb + x));
      }
    }
    g.putImageData(image, 0, 0);
  };

  heddle.windowBias = ({window: edge, names, rows, value}) => {
    const side = 2 * edge - 1;
    const heads = names.map((name, index) => {
      const [layer, head] = name.split(".").map(Number);
      return {index, name, layer, head, most: Math.max(1e-9, ...rows.map((_, i) => Math.abs(value(i, index))))};
    });
    let chosen = heads[0];
    const buttons = heads.map((head) => {
      const canvas = el("canvas", {width: kThumb, height: kThumb, "aria-hidden": "true"});
      const paint = () => draw(canvas, side, (i) => value(i, head.index), head.most);
      paint();
      heddle.onTheme(paint);
      return el("button", {type: "button", "aria-label": `layer ${head.layer}, head ${head.head}`, style: `grid-column: ${2 + head.head}`,
        title: `layer ${head.layer}, head ${head.head}`, onclick: () => show(head)}, canvas);
    });
    const layers = [...new Set(heads.map((head) => head.layer))], most = Math.max(...heads.map((head) => head.head)) + 1;
    const step = (i) => (i % side) - edge + 1, line = (i) => Math.floor(i / side) - edge + 1;
    const options = () => ({rows: side, cols: side, label: `layer ${chosen.layer}, head ${chosen.head}`, diverging: true, high: chosen.most, cell: 26,
      value: (i, j) => value(i * side + j, chosen.index), rowLabel: (i) => line(i * side), colLabel: step,
      rowTitle: "lines to the key", colTitle: "columns to the key", describe: (i, j, x) => describe(chosen.name, rows[i * side + j], x)});
    const map = heddle.heatMap(options()), about = el("p", {class: "faint small", "aria-live": "polite"});
    const show = (head) => {
      chosen = head;
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === head.index ? "true" : "false"));
      about.textContent = `Layer ${head.layer}, head ${head.head}. Colours: ${heddle.number(-head.most)} red, 0 plain, ${heddle.number(head.most)} blue.`;
      map.redraw(options());
    };
    show(chosen);
    return el("div", {},
      el("div", {class: "scroll"}, el("div", {class: "thumbs small", style: `grid-template-columns: max-content repeat(${most}, minmax(2.1rem, 3.4rem))`},
        el("span", {class: "faint corner"}, "head"), ...Array.from({length: most}, (_, n) => el("span", {class: "faint"}, String(n))),
        ...layers.flatMap((layer) => [el("span", {class: "faint corner"}, `layer ${layer}`),
          ...buttons.filter((_, i) => heads[i].layer === layer)]))),
      about, map.element);
  };
  heddle.windowBias.describe = describe;
})();
