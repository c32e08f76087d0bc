// The page that `heddle serve` answers "/" with: it tries the models through the public interfaces alone.
//
//   heddle.data   {needs_key, models}; models: data of /v1/models, which is asked for with a key where one is needed
"use strict";
(() => {
  const {needs_key: needsKey} = heddle.data;
  let models = [];
  const kPause = 250;  // ms without a key, after which what was written is sent
  const el = heddle.el;
  const key = el("input", {type: "text", id: "key", placeholder: "key", "aria-label": "key", autocomplete: "off"});
  const authorization = () => (key.value ? {authorization: "Bearer " + key.value} : {});
  const ask = (path, body, signal) => fetch(path, {
    method: "POST", signal, body: JSON.stringify(body),
    headers: {"content-type": "application/json", ...authorization()},
  });
  // The JSON of an answer. Errors: the server's words.
  const read = async (response) => {
    const json = await response.json();
    if (!response.ok) throw new Error(json.error.message);
    return json;
  };

  // Does `work` after a pause in writing; what was asked before is dropped. status: says how it went
  const whileWriting = (status, work) => {
    let timer = 0, controller = new AbortController();
    return () => {
      clearTimeout(timer);
      controller.abort();
      controller = new AbortController();
      const signal = controller.signal;
      timer = setTimeout(async () => {
        const began = performance.now();
        try {
          await work(signal);
          status.textContent = `${Math.round(performance.now() - began)} ms`;
        } catch (error) {
          if (error.name !== "AbortError") status.textContent = error.message;
        }
      }, kPause);
    };
  };

  const area = (label, placeholder) =>
    el("textarea", {rows: 5, "aria-label": label, placeholder, spellcheck: "true"});
  const choice = (label, values, chosen) => {
    const select = el("select", {"aria-label": label},
      values.map((value) => el("option", {value, selected: value === chosen}, String(value))));
    return [el("label", {}, label + " ", select), select];
  };

  const attention = heddle.serveAttention({ask, read}), images = heddle.serveImages({ask, read, choice});

  // A button to the translator of the other direction, which then has what was written here; none without one.
  const swap = (model, translated) => {
    const other = models.findIndex((one) => one.source_language && one.source_language === model.target_language &&
      one.target_language === model.source_language);
    if (other < 0) return "";
    return el("button", {type: "button", id: "swap", title: "the other direction", onclick: () => {
      const text = translated();
      picker.buttons[other].click();
      const area = body.querySelector("textarea");
      area.value = text;
      area.dispatchEvent(new Event("input", {bubbles: true}));
    }}, `⇄ ${model.target_language} → ${model.source_language}`);
  };

  // --- translation: the text, its alternatives, and which word came from which --------------------

  const translator = (model) => {
    const source = area("text", "Write something to translate");
    const status = el("span", {class: "faint small", role: "status"});
    const result = el("p", {class: "panel", id: "translation", "aria-live": "polite"});
    const others = el("ol", {class: "small", id: "alternatives"});
    const [beamLabel, beam] = choice("beam", [1, 2, 4, 8], 4);
    // Of a model of many languages, which a request names.
    const from = model.source_languages || [], into = model.target_languages || [];
    const usual = from.find((name) => name.startsWith("en")) || from[0];
    const [fromLabel, fromLanguage] = choice("from", from, usual);
    const [intoLabel, intoLanguage] = choice("into", into, into.find((name) => name !== usual));
    const languages = () => (into.length ? {source_lang: fromLanguage.value, target_lang: intoLanguage.value} : {});
    // Words of both sides; a word under the pointer marks those that it goes with.
    const words = (text, side, links) => text.split(/(\s+)/).map((part) => {
      if (/^\s*$/.test(part)) return part;
      const number = words.next[side]++;
      const span = el("span", {class: "word", "data-side": side, "data-number": number, tabindex: "0"}, part);
      const mark = (isMarked) => {
        const mates = links.filter((link) => link[side] === number).map((link) => link[1 - side]);
        for (const other of result.querySelectorAll(`[data-side="${1 - side}"]`)) {
          other.classList.toggle("marked", isMarked && mates.includes(Number(other.dataset.number)));
        }
        span.classList.toggle("marked", isMarked);
      };
      for (const [event, isMarked] of [["pointerenter", true], ["pointerleave", false], ["focus", true], ["blur", false]]) {
        span.addEventListener(event, () => mark(isMarked));
      }
      return span;
    });
    let shown = null;  // {text, target}, and their languages if they were named
    const show = (text, translation, asked) => {
      shown = {text, target: translation.text, ...asked};
      const links = (translation.alignment || "").split(" ").filter(Boolean)
        .map((link) => link.split("-").map(Number));
      words.next = [0, 0];
      result.replaceChildren(el("span", {class: "faint"}, words(text, 0, links)), el("br"),
        el("strong", {}, words(translation.text, 1, links)));
      others.replaceChildren(...(translation.n_best || []).slice(1).map((other) =>
        el("li", {}, other.text, " ", el("span", {class: "faint"}, heddle.number(other.score, 3)))));
    };
    const write = whileWriting(status, async (signal) => {
      const text = source.value.trim().replace(/\s+/g, " ");
      if (!text) { shown = null; result.replaceChildren(); others.replaceChildren(); return; }
      const asked = languages();
      const json = await read(await ask("/v1/translations",
        {model: model.id, text, ...asked, beam: Number(beam.value), n_best: Math.min(4, Number(beam.value)),
          ...(model.alignment ? {alignment: "hard"} : {})}, signal));
      show(text, json.translations[0], asked);
    });
    source.addEventListener("input", write);
    for (const select of [beam, fromLanguage, intoLanguage]) select.addEventListener("change", write);
    return [source, el("div", {class: "row"}, into.length ? [fromLabel, intoLabel] : "", beamLabel, swap(model, () => (shown ? shown.target : "")), status), result, others,
      attention(model, () => (shown && shown.target ? shown : null))];
  };

  // --- classes, or a vector -----------------------------------------------------------------------

  const reader = (model) => {
    const hasClasses = model.use === "classification";
    const text = area("text", hasClasses ? "Write something to classify" : "Write something, and see its vector");
    const status = el("span", {class: "faint small", role: "status"});
    const result = el("div", {id: "classes"});
    text.addEventListener("input", whileWriting(status, async (signal) => {
      if (!text.value.trim()) { result.replaceChildren(); return; }
      if (hasClasses) {
        const json = await read(await ask("/v1/classify", {model: model.id, text: text.value}, signal));
        result.replaceChildren(heddle.classTable(json.classes[0].probabilities));
        return;
      }
      const vector = (await read(await ask("/v1/embeddings", {model: model.id, input: text.value}, signal))).data[0].embedding;
      const length = Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
      result.replaceChildren(el("p", {}, `${heddle.plural(vector.length, "number")}, length ${heddle.number(length)}: `,
        el("code", {}, vector.slice(0, 8).map((x) => heddle.number(x, 3)).join("  ") + (vector.length > 8 ? "  …" : ""))));
    }));
    return [text, status, result, attention(model, () => (text.value.trim() ? {text: text.value} : null))];
  };

  // --- the page -----------------------------------------------------------------------------------

  const kinds = {translation: translator, generation: heddle.serveText({ask, read, area, choice}), classification: reader, embedding: reader,
    "image-classification": images.classify, "object-detection": images.detect, "image-captioning": images.caption};
  // Where programs ask what models of a kind do.
  const pathsOf = (model) => ({translation: ["/v1/translations", "/translate", "/v2/translate"],
    generation: ["/v1/completions", ...(model.chat ? ["/v1/chat/completions"] : [])], classification: ["/v1/classify"], embedding: ["/v1/embeddings"],
    "image-classification": ["/v1/images/classify"], "object-detection": ["/v1/images/detect"], "image-captioning": ["/v1/images/caption"]}[model.use]);
  const paths = el("p", {id: "paths"});
  const showPaths = () => {
    const all = [...new Set(models.flatMap(pathsOf))];
    paths.replaceChildren("What is served here answers below, and to programs: ",
      ...all.flatMap((path, i) => [i ? ", " : "", el("code", {}, path)]), all.length ? " and " : "",
      el("a", {href: "/openapi.json"}, all.length ? "more" : "/openapi.json"), "; ", el("a", {href: "/metrics"}, "metrics"), ".");
  };
  const body = el("section");
  const open = (i) => {
    const model = models[i];
    const many = (model.target_languages || []).length;
    const languages = model.source_language ? `, ${model.source_language} → ${model.target_language}`
      : many ? `, into ${heddle.plural(many, "language")}` : "";
    const card = [`${model.id}: ${model.type}, for ${model.use}${languages}`, heddle.plural(model.parameters, "parameter"),
      model.max_length ? `texts of up to ${heddle.plural(model.max_length, "token")}` : "", model.num_labels ? `${model.num_labels} classes` : ""];
    body.replaceChildren(el("p", {class: "faint small", id: "card"}, card.filter(Boolean).join("; ")),
      ...kinds[model.use](model));
  };
  let picker = null;
  const show = (all) => {
    models = all;
    showPaths();
    picker = models.length > 1 ? heddle.picker({label: "model", chosen: 0, onChange: open,
      items: models.map((model) => ({name: model.id, title: model.type}))}) : null;
    chooser.replaceChildren(...(picker ? [picker.element] : []));
    open(0);
  };
  const chooser = el("div"), refusal = el("span", {class: "faint small", role: "status"});
  heddle.main.append(
    paths,
    needsKey ? el("div", {class: "row"}, el("label", {for: "key"}, "key"), key, refusal) : "",
    chooser, body);
  showPaths();
  if (!needsKey) { show(heddle.data.models); return; }
  key.addEventListener("change", async () => {
    refusal.textContent = "";
    try {
      show((await read(await fetch("/v1/models", {headers: authorization()}))).data);
    } catch (error) {
      refusal.textContent = error.message;
    }
  });
})();
