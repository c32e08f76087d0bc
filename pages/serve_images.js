// Images on the page of `heddle serve`: one is chosen, dropped or pasted, and classified, its objects boxed, or it gets captions.
//
//   heddle.serveImages({ask, read, choice}) -> {classify(model), detect(model), caption(model)}    each the elements of a model
//   heddle.classTable(probabilities) -> table                              {label: p}, the ten likeliest first
"use strict";
(() => {
  const {el} = heddle;
  const kMostBytes = 600_000, kMostEdge = 1600;  // of what is sent as it is; an image that is larger is made smaller
  const kLeastScore = 0.05;                      // of objects that are asked for

  heddle.classTable = (probabilities) => el("table", {class: "classes"}, el("tbody", {}, Object.entries(probabilities)
    .sort((a, b) => b[1] - a[1]).slice(0, 10).map(([label, p]) => el("tr", {},
      el("th", {scope: "row"}, label), el("td", {class: "number"}, heddle.percent(p)),
      el("td", {style: "width: 50%"}, heddle.bar(p))))));

  const urlOf = (file) => new Promise((done, fail) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => done(reader.result));
    reader.addEventListener("error", () => fail(new Error("the file cannot be read")));
    reader.readAsDataURL(file);
  });
  const imageOf = (url) => new Promise((done, fail) => {
    const image = new Image();
    image.addEventListener("load", () => done(image));
    image.addEventListener("error", () => fail(new Error("this is no image that the browser knows")));
    image.src = url;
  });
  // A data URL that the server takes: JPEG and PNG of a moderate size as they are, others as JPEG.
  const prepared = async (file) => {
    const url = await urlOf(file), isKnown = /^data:image\/(jpeg|png);/.test(url);
    if (isKnown && file.size <= kMostBytes) return url;
    const image = await imageOf(url);
    const scale = Math.min(1, kMostEdge / Math.max(image.naturalWidth, image.naturalHeight));
    const canvas = el("canvas", {width: Math.max(1, Math.round(scale * image.naturalWidth)),
      height: Math.max(1, Math.round(scale * image.naturalHeight))});
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/jpeg", 0.9);
  };

  // The part of an image that a model sees, [left, top, right, bottom] in shares of it.
  const cutTo = (image, [left, top, right, bottom]) => {
    const w = image.naturalWidth, h = image.naturalHeight;
    const canvas = el("canvas", {width: Math.max(1, Math.round((right - left) * w)), height: Math.max(1, Math.round((bottom - top) * h))});
    canvas.getContext("2d").drawImage(image, -left * w, -top * h);
    return canvas;
  };

  // Does `work`, and says how long it took, or what went wrong, unless more was asked for meanwhile.
  // work(isLast): isLast() says whether nothing was
  const timed = async (status, work) => {
    const began = performance.now(), mine = status.asked = (status.asked || 0) + 1, isLast = () => mine === status.asked;
    status.textContent = "…";
    const say = (text) => { if (isLast()) status.textContent = text; };
    try {
      await work(isLast);
      say(`${Math.round(performance.now() - began)} ms`);
    } catch (error) {
      say(error.message);
    }
  };
  // Where an image is chosen, dropped or pasted. take(url, isLast): what is done with it
  const chooser = (status, take) => {
    const input = el("input", {type: "file", accept: "image/*", id: "image", class: "hidden-text"});
    const use = (file) => file && timed(status, async (isLast) => take(await prepared(file), isLast));
    const zone = el("div", {class: "panel drop"},
      el("button", {type: "button", onclick: () => input.click()}, "Choose an image"), input,
      el("span", {class: "faint"}, " or drop one here, or paste it"));
    input.addEventListener("change", () => use(input.files[0]));
    zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("is-over"); });
    zone.addEventListener("dragleave", () => zone.classList.remove("is-over"));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      zone.classList.remove("is-over");
      use(event.dataTransfer.files[0]);
    });
    const paste = (event) => {
      if (!zone.isConnected) { document.removeEventListener("paste", paste); return; }
      if (event.clipboardData.files.length) use(event.clipboardData.files[0]);
    };
    document.addEventListener("paste", paste);
    return zone;
  };

  heddle.serveImages = ({ask, read, choice}) => {
    const status = () => el("span", {class: "faint small", role: "status"});
    const classify = (model) => {
      const said = status(), result = el("div", {id: "classified", class: "detected-parts"});
      const take = async (url, isLast) => {
        const json = await read(await ask("/v1/images/classify", {model: model.id, image: url}));
        const picture = await imageOf(url);
        if (!isLast()) return;
        Object.assign(picture, {alt: "the image", className: "detections"});
        result.replaceChildren(picture, heddle.classTable(json.classes[0].probabilities));
      };
      return [chooser(said, take), said, result];
    };
    const detect = (model) => {
      const said = status(), result = el("div", {id: "detected", class: "detected-parts"});
      let found = null, url = "";
      const value = el("output", {class: "number"}, "0.50");
      const slider = el("input", {type: "range", min: kLeastScore, max: 1, step: 0.01, value: 0.5, id: "threshold", "aria-label": "least score"});
      const draw = () => {
        value.textContent = Number(slider.value).toFixed(2);
        if (!found) return;
        const labels = [...new Set(found.objects.map((one) => one.label))].sort();
        const objects = found.objects.filter((one) => one.score >= Number(slider.value))
          .map((one) => ({...one, color: heddle.seriesColor(labels.indexOf(one.label))}));
        result.replaceChildren(heddle.boxesOver({href: url, width: found.width, height: found.height, name: "the image", objects}),
          heddle.boxList("the image", objects));
      };
      slider.addEventListener("input", draw);
      const take = async (image, isLast) => {
        const json = await read(await ask("/v1/images/detect", {model: model.id, image, threshold: kLeastScore}));
        if (!isLast()) return;
        [found, url] = [json.images[0], image];
        draw();
      };
      return [chooser(said, take), el("div", {class: "row"}, el("label", {for: "threshold"}, "Least score"), slider, value, said), result];
    };
    const caption = (model) => {
      const said = status(), result = el("div", {id: "captioned", class: "detected-parts"});
      const [beamLabel, beam] = choice("beam", [1, 2, 4, 8], 4);
      let url = "", shown = null;
      const take = async (image, isLast) => {
        if (!isLast()) return;
        const width = Number(beam.value);
        url = image;
        const json = await read(await ask("/v1/images/caption",
          {model: model.id, image, beam: width, n_best: Math.min(4, width), maps: model.maps}));
        const picture = await imageOf(image), best = json.captions[0], [rows, columns] = best.grid || [1, 1];
        if (!isLast()) return;
        const captions = (best.n_best || [best]).map((one) => ({...one,
          words: (one.words || []).map((word) => ({...word, weights: () => word.weights}))}));
        if (shown) shown.forget();
        shown = heddle.captioned({image: best.kept ? cutTo(picture, best.kept) : picture, name: "the image", rows, columns, captions});
        result.replaceChildren(...shown.elements);
      };
      beam.addEventListener("change", () => url && timed(said, (isLast) => take(url, isLast)));
      return [chooser(said, take), el("div", {class: "row"}, beamLabel, said), result];
    };
    return {classify, detect, caption};
  };
})();
