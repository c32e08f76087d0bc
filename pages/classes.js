// The page of heddle classify: how many texts or images, or words of a tagger, each class got, the texts, and the classes of one of them.
// heddle.data: model, count, labels; unit ("text", "image"), scale (softmax, sigmoid, none) and texts: [{text: or the image's file,
// classes: [[label, p]], png: of the first images}]; of a tagger no scale, and texts: [{count: words, words: [[word, label or -1, p]]}]
"use strict";
(() => {
  const {el, data, main} = heddle;
  const items = data.texts, isOfWords = data.scale === undefined, unit = data.unit || "text";
  const name = (c) => (c < 0 ? "none" : data.labels[c]);
  // The classes that a text got: its likeliest one, or those of its words.
  const classesOf = (item) => (isOfWords ? item.words.map(([, c]) => c).filter((c) => c >= 0) : [item.classes[0][0]]);
  const counts = new Map();
  for (const c of items.flatMap(classesOf)) counts.set(c, (counts.get(c) || 0) + 1);
  const order = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const heading = (title, text) => [el("h2", {}, title), el("p", {class: "panel text", id: "text"}, text)];

  // --- classes of texts, or images --------------------------------------------------------------

  const ofTexts = () => {
    const isShare = data.scale !== "none", shown = (p) => (isShare ? heddle.percent(p) : heddle.number(p));
    const pictures = items.filter((item) => item.png).length;
    const picture = (png, name) => el("img", {src: `data:image/png;base64,${png}`, alt: name, style: "display: block; max-width: min(100%, 20rem); min-width: 8rem; margin: .5rem 0"});
    const drawn = ({text, classes, png}) => {
      const most = Math.max(...classes.map(([, p]) => Math.abs(p))) || 1, rest = data.labels.length - classes.length;
      return [...heading(`Classes of this ${unit}`, text), png ? picture(png, text) : "",
        heddle.bars({label: "classes", isLong: true, rows: classes.map(([c, p], i) =>
          ({name: i === 0 ? el("strong", {}, name(c)) : name(c), share: isShare ? p : Math.abs(p) / most, text: shown(p)}))}),
        el("p", {class: "faint small"}, rest > 0
          ? `${rest === 1 ? "The other class has" : `The other ${rest} classes have`} ` +
            (data.scale === "softmax" ? `${heddle.percent(Math.max(0, 1 - classes.reduce((sum, [, p]) => sum + p, 0)))} together.` : "less each.") : ""),
        ...(pictures > 0 && !png ? [el("p", {class: "faint small"}, `This page holds the pictures of the first ${pictures} images.`)] : [])];
    };
    return {drawn, title: "Likeliest class", unit: `${unit}s`, listed: `its ${unit}s`, hint: `the ${unit}s of this class`, file: "classes",
      searched: (item) => `${item.text}\n${name(item.classes[0][0])}`, columns: [
        {title: unit, cell: (item) => heddle.short(item.text)},
        {title: "class", class: "class", cell: (item) => name(item.classes[0][0])},
        {title: isShare ? "probability" : "value", class: "number", cell: (item) => shown(item.classes[0][1])}],
      about: data.scale === "softmax" ? `The model gives each class a probability; those of ${unit === "text" ? "a text" : "an image"} sum to 1.`
        : data.scale === "sigmoid" ? `The model gives each class a probability of its own: ${unit === "text" ? "a text" : "an image"} may have several classes, or none.`
        : "The model gives numbers, not probabilities."};
  };

  // --- classes of words -------------------------------------------------------------------------

  const ofWords = () => {
    // Most words are of no interest ("O"): the class that most have is not marked.
    const usual = data.labels.includes("O") ? data.labels.indexOf("O") : order.length ? order[0][0] : -1;
    const isMarked = ([, c]) => c >= 0 && c !== usual;
    const marked = (list, rest) => el("span", {}, ...list.flatMap((w, i) => [i ? " " : "",
      isMarked(w) ? el("span", {}, el("strong", {class: "marked"}, w[0]), el("span", {class: "faint small"}, ` ${name(w[1])}`)) : w[0]]), rest > 0 ? " …" : "");
    const drawn = ({words, count}) => [...heading("Words of this text", marked(words, count - words.length)),
      heddle.bars({label: "words", isLong: true, rows: words.map(([word, c, p]) =>
        ({name: el("span", {}, word, " ", c === usual ? el("span", {class: "faint"}, name(c)) : el("strong", {}, name(c))), share: p, text: c < 0 ? "–" : heddle.percent(p)}))}),
      ...heddle.heldBack(words.length, count, "word")];
    return {drawn, title: "Classes", unit: "words", listed: "the texts with such words", hint: "the texts with words of this class", file: "words",
      searched: ({words}) => `${words.map(([word]) => word).join(" ")}\n${[...new Set(words.map(([, c]) => name(c)))].join("\n")}`, columns: [
        {title: "text", cell: ({words, count}) => marked(words.slice(0, 30), count - 30)},
        {title: "marked", class: "number", cell: ({words}) => String(words.filter(isMarked).length)}],
      about: `The model gives each word a probability for each class; the likeliest is shown.${usual < 0 ? "" : ` Words of another class than ${name(usual)} are marked.`}`};
  };

  // --- the page -----------------------------------------------------------------------------------

  const kind = isOfWords ? ofWords() : ofTexts();
  const list = heddle.textList({label: `${unit}s`, unit, items, searched: kind.searched, columns: kind.columns, drawn: kind.drawn});
  const rows = order.map(([c, n]) => ({name: name(c), share: n / order[0][1], text: n.toLocaleString("en"), title: kind.hint,
    onPick: () => list.filter((item) => classesOf(item).includes(c), name(c))}));
  main.append(
    el("p", {class: "faint small mono"}, `${data.model}, ${heddle.plural(data.count, unit)}, ${data.labels.length} class${data.labels.length === 1 ? "" : "es"}`),
    el("p", {class: "faint"}, kind.about));
  if (items.length > 1) {
    main.append(el("h2", {}, kind.title), el("p", {class: "faint small"}, `How many ${kind.unit} each class is the likeliest of. Pick one to list ${kind.listed}.`),
      el("div", {class: "scroll list", style: "max-height: 18rem"}, heddle.bars({label: `${kind.unit} of each class`, isLong: true, rows})),
      el("h2", {}, unit === "text" ? "Texts" : "Images"), list.element);
  }
  main.append(...heddle.heldBack(items.length, data.count, unit), list.box,
    heddle.exportButtons(kind.file, {json: () => ({...data, texts: data.texts.map(({png, ...rest}) => rest)})}));
})();
