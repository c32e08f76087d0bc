// What heads look at, on the page of `heddle serve`: the page of `heddle attention` inside it, once it is asked for.
//
//   heddle.serveAttention({ask, read}) -> attention(model, texts) -> element
//     texts(): {text, target, source_lang, target_lang}, of what is looked at then; null while there is nothing
"use strict";
(() => {
  const {el} = heddle;
  heddle.serveAttention = ({ask, read}) => (model, texts) => {
    const status = el("span", {class: "faint small", role: "status"});
    const frame = el("iframe", {title: "attention", class: "attention-frame", hidden: true});
    const inside = () => frame.contentDocument;
    // The page inside shows itself whole, and follows the theme of this one.
    const follow = () => {
      const page = inside();
      if (!page || !page.body || !page.getElementById("theme")) return;
      if (page.documentElement.dataset.theme !== document.documentElement.dataset.theme) page.getElementById("theme").click();
      page.querySelector("body > header").hidden = true;
      const fit = () => { frame.style.height = `${page.documentElement.offsetHeight + 8}px`; };
      new ResizeObserver(fit).observe(page.body);
      fit();
    };
    frame.addEventListener("load", follow);
    heddle.onTheme(() => { if (frame.isConnected && !frame.hidden) follow(); });
    const button = el("button", {type: "button", id: "attention"}, "What each head looks at");
    button.addEventListener("click", async () => {
      const asked = texts();
      if (!asked) { status.textContent = "write something first"; return; }
      status.textContent = "…";
      try {
        // The heads of a longer text have more weights together than are answered at once.
        let response, part = "";
        for (const some of [{}, {layers: [0]}, {layers: [0], heads: [0]}]) {
          response = await ask("/v1/attention", {model: model.id, ...asked, ...some, format: "html"});
          part = Object.keys(some).map((name) => `${name.slice(0, -1)} 0`).join(", ");
          if (response.status !== 400) break;
        }
        if (!response.ok) await read(response);
        frame.srcdoc = await response.text();
        frame.hidden = false;
        status.textContent = part ? `of so long a text ${part} alone` : "";
      } catch (error) {
        status.textContent = error.message;
      }
    });
    return el("div", {}, el("div", {class: "row"}, button, status), frame);
  };
})();
