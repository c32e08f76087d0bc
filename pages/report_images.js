// The images in the page of a training run: heddle.reportImages(shown) gives sections [title, ...elements].
// shown: {augmented: [{image, name, label or captions where it has some, views: [image] where images are augmented}], mistakes: [..]}, an image {src, width, height}.
// Of a classifier mistakes are {image, name, label, answer, probability, loss}. Of a detector (labels, names; score and overlap, from which on boxes count)
// an image has boxes: [{label, box: [left, top, right, bottom], missed}], a mistake's also found: [{label, box, score, wrong}], beside {objects, missed, wrong}.
// Of a captioner they are {image, name, captions, written: [{text, truth}]}; where none can be judged there is written: [{.., written: [{text, chrf}]}].
"use strict";
(() => {
  const el = heddle.el;
  // Small ones are shown larger, each pixel a square.
  const scaleOf = (image, most) => Math.max(1, Math.floor(most / Math.max(image.width, image.height)));
  const drawn = (image, alt, most = 96) => {
    const scale = scaleOf(image, most);
    return el("img", {src: image.src, alt, title: alt, width: image.width * scale, height: image.height * scale, style: "image-rendering: pixelated; border-radius: 3px"});
  };
  const figureOf = (picture, width, ...lines) => el("figure", {style: `margin: 0; max-width: ${width}; overflow-wrap: anywhere`}, picture,
    el("figcaption", {class: "small", style: "line-height: 1.35"}, ...lines));
  const figure = (image, alt, ...lines) => figureOf(drawn(image, alt), "7.5rem", ...lines);
  const row = (attributes, ...children) => el("div", {...attributes, style: "display: flex; flex-wrap: wrap; gap: 0.75rem; align-items: flex-start; margin: 0.5rem 0"}, ...children);
  const faint = (text) => el("p", {class: "faint"}, text);
  const line = (kind, ...text) => el("div", {class: kind}, ...text);
  const lastOf = (how) => `Held-out images ${how}; of equal ones the first.`;

  // --- objects ------------------------------------------------------------------------------------

  const kMostNamed = 12;
  const listed = (texts) => texts.slice(0, kMostNamed).join(", ") + (texts.length > kMostNamed ? ` and ${texts.length - kMostNamed} more` : "");
  const counted = (names) => listed([...new Set(names)].map((name) => [name, names.filter((n) => n === name).length]).map(([name, n]) => (n > 1 ? `${name} × ${n}` : name)));

  // Of a mistake what is there is dashed, what was seen is not, and what is wrong is heavier.
  const boxed = (image, name, labels, ...lines) => {
    const scale = scaleOf(image, 256), isJudged = Boolean(image.found);
    const object = (one, more) => ({label: labels[one.label], color: heddle.seriesColor(one.label), box: one.box.map((x) => x * scale), ...more});
    const there = image.boxes.map((b) => object(b, {isDashed: isJudged, weight: isJudged && !b.missed ? 1 : 2, tag: !isJudged || b.missed ? labels[b.label] : null}));
    const seen = (image.found || []).map((f) => object(f, {score: f.score, weight: f.wrong ? 2.5 : 1.25, tag: `${labels[f.label]} ${f.score.toFixed(2)}`}));
    const what = counted(there.map((o) => o.label)) || "no object";
    const picture = heddle.boxesOver({href: image.src, width: image.width * scale, height: image.height * scale, name, objects: [...there, ...seen],
      says: isJudged ? `there: ${what}; seen: ${listed(seen.map((o) => o.tag)) || "nothing"}` : what});
    const width = image.width * scale + 2;  // its border
    Object.assign(picture.style, {width: `${width}px`, maxWidth: "100%", imageRendering: scale > 2 ? "pixelated" : "auto"});
    return figureOf(picture, `max(${width}px, 9rem)`, lines.length ? lines : what);
  };
  const boxMistake = (m, labels) => {
    const missed = m.image.boxes.filter((b) => b.missed).map((b) => labels[b.label]);
    const wrong = m.image.found.filter((f) => f.wrong).map((f) => `${labels[f.label]} ${f.score.toFixed(2)}`);
    return boxed(m.image, m.name, labels, el("strong", {}, `${m.missed} of ${heddle.plural(m.objects, "object")} missed, ${m.wrong} wrong`),
      missed.length ? line("faint", `missed: ${counted(missed)}`) : null, wrong.length ? line("faint", `wrong: ${listed(wrong)}`) : null);
  };

  // --- captions -----------------------------------------------------------------------------------

  const captioned = (one, ...lines) => figureOf(drawn(one.image, one.name, 192), "13rem", ...lines);
  const sentences = (texts) => texts.map((text) => el("div", {style: "padding-left: 0.8em; text-indent: -0.8em"}, text));
  const isNotSo = (w) => (w.chrf !== undefined ? `chrF ${w.chrf.toFixed(1)}` : w.truth === undefined ? "no sentence of the grammar" : `not so: ${w.truth}`);
  const apart = {style: "margin-top: 0.4rem"};
  const writing = (m) => captioned(m, m.written.map((w) => el("div", apart, el("strong", {}, w.text || "(nothing)"), line("faint", isNotSo(w)))),
    el("div", {class: "faint", ...apart}, m.written[0].chrf === undefined ? "What is true" : "Its captions"), sentences(m.captions));

  // --- sections -----------------------------------------------------------------------------------

  const mistakesOf = (shown) => {
    const all = shown.mistakes;
    if (shown.labels) {
      return ["The worst mistakes", faint(lastOf("in which the weights of the last validation got most wrong: objects that they missed, and boxes with a score of at least " +
        `${shown.score} that are no object's of their class, by an IoU of at least ${shown.overlap}`)),
        faint("Dashed: what is there. Solid: what was seen, with its score. Heavy lines are mistakes."),
        row({id: "mistakes"}, all.map((m) => boxMistake(m, shown.labels)))];
    }
    if (all[0].written) {
      return ["The worst mistakes", faint(lastOf("of which the weights of the last validation wrote most that is not so, by themselves and asked for each kind of caption")),
        row({id: "mistakes"}, all.map(writing))];
    }
    return ["The worst mistakes", faint("Held-out images that the weights of the last validation gave the least probability to the right label."),
      row({id: "mistakes"}, all.map((m) => figure(m.image, m.name, el("strong", {}, m.answer), ` ${heddle.percent(m.probability)}`, el("br"),
        el("span", {class: "faint"}, `is ${m.label}, loss ${m.loss.toFixed(1)}`))))];
  };

  const trainedOn = (shown) => {
    const all = shown.augmented, title = "What it is trained on";
    if (shown.labels) {
      return [title, faint("Images as they are, first in each row, and as they come augmented, with the boxes of their objects."),
        ...all.map((a) => row({class: "augmented"}, boxed(a.image, a.name, shown.labels),
          a.views.map((view, i) => boxed(view, `${a.name}, augmented, ${i + 1}`, shown.labels))))];
    }
    if (all[0].captions) {
      return [title, faint("Some images, with their captions."), row({class: "augmented"}, all.map((a) => captioned(a, sentences(a.captions))))];
    }
    return [title, faint("Images as they are, first in each row, and as they come augmented; batches are mixed after that."),
      ...all.map((a) => row({class: "augmented"}, figure(a.image, a.name, a.label === undefined ? el("span", {class: "faint"}, "no label") : a.label),
        a.views.map((view, i) => figure(view, `${a.name}, augmented, ${i + 1}`))))];
  };

  heddle.reportImages = (shown) => {
    const sections = [];
    if (shown.mistakes.length) sections.push(mistakesOf(shown));
    if (shown.written) {
      sections.push(["What it writes of held-out images", faint("Nothing says what they show, so that captions cannot be judged: those of the last validation least like the known ones first, by chrF, 0 to 100."),
        row({id: "written"}, shown.written.map(writing))]);
    }
    if (shown.augmented.length) sections.push(trainedOn(shown));
    return sections;
  };
})();
