// What every page uses: elements, numbers, colours, the tooltip, pickers, files to save.
//
//   heddle.data                         the JSON that the program put into the page
//   heddle.main                         the element to fill
//   heddle.el("p", {class: "faint"}, "text", otherElement)
//   heddle.svg("line", {x1: 0, ...})    the same for SVG
//   heddle.bar(share, isMarked)         a bar of that share of the room there is
//   heddle.textWidth(text, size, weight), heddle.cut(text, width, size, weight), heddle.font(size, weight)
//   heddle.picker({label, items: [{name, title}], chosen, onChange(index)}) -> {element, choose(i)}
//   heddle.tip(event or {x, y}, text), heddle.untip()
//   heddle.exportButtons(name, {svg: () => SVGElement or text, json: () => value})
"use strict";
(() => {
  heddle.data = JSON.parse(document.getElementById("data").textContent);
  heddle.main = document.getElementById("page");

  // --- elements ---------------------------------------------------------------------------------

  const fill = (element, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat()) {
      if (child !== undefined && child !== null) element.append(child);
    }
    if (element.classList.contains("scroll")) watch(element);
    return element;
  };
  // What scrolls says so (page.css) while there is more of it than is seen.
  const watch = (element) => {
    const look = () => element.classList.toggle("is-wide", element.scrollWidth > element.clientWidth + 1);
    new ResizeObserver(() => setTimeout(look)).observe(element);
    new MutationObserver(() => setTimeout(look)).observe(element, {childList: true, subtree: true});
  };
  heddle.el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  heddle.svg = (tag, attributes, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  // --- numbers ----------------------------------------------------------------------------------

  // 0.8808, 12.5, 1.2e-7: `digits` significant ones, no needless zeros.
  heddle.number = (x, digits = 4) => {
    if (x === null || x === undefined || Number.isNaN(x)) return "–";
    if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
    if (x === 0) return "0";
    const size = Math.abs(x);
    const text = size < 1e-4 || size >= 1e7
      ? x.toExponential(digits - 1).replace(/\.?0+e/, "e")
      : Number.isInteger(x) ? x.toLocaleString("en") : String(Number(x.toPrecision(digits)));
    return text.replaceAll("-", "−");
  };
  heddle.percent = (x) => (x > 0 && x < 0.001 ? "< 0.1" : (100 * x).toFixed(1)) + " %";

  // A share from 0 to 1 as a bar; faint where it is not marked.
  heddle.bar = (share, isMarked = true) => heddle.el("span", {class: isMarked ? "bar" : "bar faint-bar",
    style: `width: ${share > 0 ? Math.max(0.5, 100 * share) : 0}%`});

  // --- the width of texts -----------------------------------------------------------------------

  const ruler = document.createElement("canvas").getContext("2d");
  heddle.font = (size, weight = 400) => `${weight} ${size}px system-ui, "DejaVu Sans", sans-serif`;
  heddle.textWidth = (text, size = 13, weight) => {
    ruler.font = heddle.font(size, weight);
    return ruler.measureText(text).width;
  };
  // The text, or as much of its beginning as fits into the width, and "…".
  heddle.cut = (text, width, size, weight) => {
    if (heddle.textWidth(text, size, weight) <= width) return text;
    let n = text.length;
    while (n > 1 && heddle.textWidth(text.slice(0, n) + "…", size, weight) > width) --n;
    return text.slice(0, n) + "…";
  };

  // --- colours ----------------------------------------------------------------------------------

  // The value of a CSS variable: "#1f5fbf" of "accent".
  heddle.color = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  heddle.seriesColor = (i) => `var(--head${((i % 8) + 8) % 8})`;
  const parts = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  // t in 0..1 gives [r, g, b] between the two colours named.
  heddle.ramp = (from, to) => {
    const a = parts(heddle.color(from)), b = parts(heddle.color(to));
    return (t) => a.map((x, i) => Math.round(x + (b[i] - x) * Math.min(1, Math.max(0, t))));
  };

  // --- tooltip ----------------------------------------------------------------------------------

  const tooltip = heddle.el("div", {id: "tooltip", role: "status", hidden: true});
  document.body.append(tooltip);
  let place = [0, 0];  // how far the page was scrolled when the tooltip was shown
  heddle.tip = (at, text) => {
    place = [window.scrollX, window.scrollY];
    const x = at.clientX !== undefined ? at.clientX : at.x, y = at.clientY !== undefined ? at.clientY : at.y;
    tooltip.textContent = text;
    tooltip.hidden = false;
    const box = tooltip.getBoundingClientRect();
    const left = Math.min(x + 14, window.innerWidth - box.width - 4);
    const top = y + 18 + box.height > window.innerHeight ? y - box.height - 10 : y + 18;
    tooltip.style.left = Math.max(4, left) + "px";
    tooltip.style.top = Math.max(4, top) + "px";
  };
  heddle.untip = () => { tooltip.hidden = true; };
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") heddle.untip(); });
  // The event of a scroll may come frames after it, even after a tooltip that was shown since.
  document.addEventListener("scroll", () => {
    if (window.scrollX !== place[0] || window.scrollY !== place[1]) heddle.untip();
  }, {passive: true});

  // --- pickers ----------------------------------------------------------------------------------

  // The step that an arrow key asks for; 0 for other keys.
  heddle.arrowStep = (key) =>
    key === "ArrowRight" || key === "ArrowDown" ? 1 : key === "ArrowLeft" || key === "ArrowUp" ? -1 : 0;

  // A row of buttons of which one is chosen; Tab enters it once, arrows, Home and End move inside.
  heddle.picker = ({label, items, chosen = 0, onChange}) => {
    const group = heddle.el("div", {class: "picker", role: "radiogroup", "aria-label": label},
      heddle.el("span", {class: "label", "aria-hidden": "true"}, label));
    let current = -1;
    const choose = (index, byReader = false) => {
      if (index === current || index < 0 || index >= items.length) return;
      current = index;
      buttons.forEach((button, i) => {
        button.setAttribute("aria-checked", i === index ? "true" : "false");
        button.tabIndex = i === index ? 0 : -1;
      });
      if (byReader) { buttons[index].focus(); onChange(index); }
    };
    const buttons = items.map((item, i) => heddle.el("button", {
      type: "button", role: "radio", title: item.title, onclick: () => choose(i, true),
      onkeydown: (event) => {
        const step = heddle.arrowStep(event.key);
        const to = event.key === "Home" ? 0 : event.key === "End" ? items.length - 1
          : step ? (i + step + items.length) % items.length : -1;
        if (to < 0) return;
        event.preventDefault();
        choose(to, true);
      },
    }, item.name));
    group.append(...buttons);
    choose(chosen);
    return {element: group, choose, buttons, get chosen() { return current; }};
  };

  // --- files ------------------------------------------------------------------------------------

  heddle.save = (name, type, text) => {
    const url = URL.createObjectURL(new Blob([text], {type}));
    const link = heddle.el("a", {href: url, download: name});
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };

  // A stand-alone SVG: the colours and fonts that the page's style gives are written into it.
  heddle.svgText = (svg) => {
    const copy = svg.cloneNode(true);
    const from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
    const kept = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size",
      "font-weight", "text-anchor"];
    from.forEach((element, i) => {
      const style = getComputedStyle(element);
      for (const name of kept) to[i].setAttribute(name, style.getPropertyValue(name));
      to[i].removeAttribute("style");
      to[i].removeAttribute("tabindex");
    });
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("font-family", "sans-serif");
    const view = svg.viewBox.baseVal;
    const paper = heddle.svg("rect", {x: view.x, y: view.y, width: view.width, height: view.height,
      fill: heddle.color("paper")});
    copy.prepend(paper);
    copy.setAttribute("width", view.width);
    copy.setAttribute("height", view.height);
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(copy) + "\n";
  };

  // Buttons that save what is shown. `svg` and `json` are functions that give it; either may be left out.
  heddle.exportButtons = (name, {svg, json}) => {
    const row = heddle.el("div", {class: "row"});
    if (svg) {
      row.append(heddle.el("button", {type: "button", "data-export": "svg", onclick: () => {
        const picture = svg();
        heddle.save(name + ".svg", "image/svg+xml",
          typeof picture === "string" ? picture : heddle.svgText(picture));
      }}, "Save as SVG"));
    }
    if (json) {
      row.append(heddle.el("button", {type: "button", "data-export": "json", onclick: () =>
        heddle.save(name + ".json", "application/json", JSON.stringify(json(), null, 1) + "\n"),
      }, "Save as JSON"));
    }
    return row;
  };

  // --- numbers packed by the program ------------------------------------------------------------

  // Base64 of little-endian 16-bit numbers (inspect/page.h) as a Uint16Array.
  heddle.unpack16 = (text) => {
    const bytes = atob(text), values = new Uint16Array(bytes.length / 2);
    for (let i = 0; i < values.length; ++i) {
      values[i] = bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1);
    }
    return values;
  };

  document.getElementById("theme").addEventListener("click", heddle.switchTheme);
})();
