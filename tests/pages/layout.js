// What no page may do at any width or in either scheme: text over text, beyond the window, cut off, too faint, too small.
// Put at the head of a copy of a page by tests/pages/browser.cc, before anything is drawn.
//
//   layoutProblems() -> sentences, none if all is well
//
// Texts of a canvas count too: where they were drawn, in which font and on what colour, is noted as it happens.
"use strict";
const layoutProblems = (() => {
  const kContrast = 4.5, kFont = 11;

  // --- the scheme ---------------------------------------------------------------------------------

  // The system's, as the page asks for it: what the address says.
  const matchMedia = window.matchMedia.bind(window);
  window.matchMedia = (query) => (query === "(prefers-color-scheme: dark)"
    ? {matches: location.hash === "#dark", addEventListener: () => {}} : matchMedia(query));

  // --- sizes --------------------------------------------------------------------------------------

  // Sizes are observed with each frame, but in a test the clock leaps ahead long before a frame is due.
  const observers = [];
  window.ResizeObserver = class {
    constructor(callback) { Object.assign(this, {callback, sizes: new Map()}); observers.push(this); }
    observe(element) { this.sizes.set(element, ""); }
    // Tells of the sizes that changed; whether there were any.
    static deliver() {
      let isAny = false;
      for (const observer of observers) {
        const changed = [...observer.sizes].filter(([e, size]) => e.isConnected && size !== `${e.clientWidth} ${e.clientHeight}`);
        for (const [e] of changed) observer.sizes.set(e, `${e.clientWidth} ${e.clientHeight}`);
        if (changed.length) observer.callback(changed.map(([target]) => ({target})), observer);
        isAny = isAny || changed.length > 0;
      }
      return isAny;
    }
  };

  // --- texts of canvases --------------------------------------------------------------------------

  const drawn = new WeakMap();  // canvas -> its texts since it was last sized
  const getContext = HTMLCanvasElement.prototype.getContext;
  HTMLCanvasElement.prototype.getContext = function (kind, options) { return getContext.call(this, kind, {...options, willReadFrequently: true}); };
  const size = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, "width");
  Object.defineProperty(HTMLCanvasElement.prototype, "width", {...size, set(value) { drawn.delete(this); size.set.call(this, value); }});
  const fillText = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    if (!drawn.has(this.canvas)) drawn.set(this.canvas, []);
    const m = this.measureText(text), t = this.getTransform(), scale = Math.hypot(t.a, t.b);
    const corners = [[x - m.actualBoundingBoxLeft, y - m.actualBoundingBoxAscent], [x + m.actualBoundingBoxRight, y - m.actualBoundingBoxAscent],
      [x + m.actualBoundingBoxRight, y + m.actualBoundingBoxDescent], [x - m.actualBoundingBoxLeft, y + m.actualBoundingBoxDescent]]
      .map(([a, b]) => [t.a * a + t.c * b + t.e, t.b * a + t.d * b + t.f]);
    const middle = corners.reduce((s, c) => [s[0] + c[0] / 4, s[1] + c[1] / 4], [0, 0]);
    const [r, g, b, a] = this.getImageData(Math.round(middle[0]), Math.round(middle[1]), 1, 1).data;
    drawn.get(this.canvas).push({text, corners, font: parseFloat(/[\d.]+(?=px)/.exec(this.font)[0]) * scale, color: this.fillStyle, under: [r, g, b, a / 255]});
    return fillText.call(this, text, x, y, ...rest);
  };

  // --- colours ------------------------------------------------------------------------------------

  const probe = document.createElement("canvas").getContext("2d", {willReadFrequently: true}), known = new Map();
  const rgba = (color) => {
    if (!known.has(color)) {
      probe.clearRect(0, 0, 1, 1);
      probe.fillStyle = color;
      probe.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = probe.getImageData(0, 0, 1, 1).data;
      known.set(color, [r, g, b, a / 255]);
    }
    return known.get(color);
  };
  const over = (top, under, opacity = 1) => [0, 1, 2].map((i) => under[i] + (top[i] - under[i]) * top[3] * opacity);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };

  // --- boxes --------------------------------------------------------------------------------------

  const boxOf = (r) => ({left: r.left, top: r.top, right: r.right, bottom: r.bottom});
  const meet = (a, b) => ({left: Math.max(a.left, b.left), top: Math.max(a.top, b.top), right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom)});
  const cornersOf = (b) => [[b.left, b.top], [b.right, b.top], [b.right, b.bottom], [b.left, b.bottom]];
  const hull = (corners) => ({left: Math.min(...corners.map((c) => c[0])), right: Math.max(...corners.map((c) => c[0])),
    top: Math.min(...corners.map((c) => c[1])), bottom: Math.max(...corners.map((c) => c[1]))});
  // Whether two convex shapes share more than a pixel in every direction of their sides.
  const overlap = (a, b) => [a, b].every((shape) => [0, 1].every((k) => {
    const [p, q] = [shape[k], shape[k + 1]], length = Math.hypot(q[0] - p[0], q[1] - p[1]) || 1;
    const axis = [(q[0] - p[0]) / length, (q[1] - p[1]) / length];
    const spans = [a, b].map((s) => s.map((c) => c[0] * axis[0] + c[1] * axis[1])).map((d) => [Math.min(...d), Math.max(...d)]);
    return Math.min(spans[0][1], spans[1][1]) - Math.max(spans[0][0], spans[1][0]) > 1;
  }));

  // Of each element once a check: pages have thousands of them.
  const memories = [];
  const remembered = (find) => {
    const memory = new Map();
    memories.push(memory);
    return (element) => {
      if (!memory.has(element)) memory.set(element, find(element));
      return memory.get(element);
    };
  };
  const style = remembered((element) => getComputedStyle(element));
  const isShown = (element) => element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}) && !element.closest("#tooltip, .hidden-text, script, style, noscript, select, option, details:not([open]) > :not(summary)");
  const scrolls = (element) => /auto|scroll/.test(style(element).overflowX);
  const isInScroll = remembered((element) => {
    const parent = element.parentElement;
    return Boolean(parent) && parent !== document.documentElement && (scrolls(parent) || isInScroll(parent));
  });
  const nameOf = (element) => {
    const name = element.tagName.toLowerCase() + (element.id ? "#" + element.id : "") + (element.classList.length ? "." + [...element.classList].join(".") : "");
    const text = element.textContent.trim().replace(/\s+/g, " ");
    return `${name} “${text.length > 40 ? text.slice(0, 39) + "…" : text}”`;
  };

  // What of the page can be seen through the element's frames.
  const frame = remembered((element) => {
    if (element === document.documentElement) return {left: -1e6, top: -1e6, right: 1e6, bottom: 1e6};
    const outer = frame(element.parentElement);
    const isFrame = style(element).overflowX !== "visible" && element !== document.body || element instanceof SVGSVGElement;
    return isFrame ? meet(outer, boxOf(element.getBoundingClientRect())) : outer;
  });

  const opacityOf = remembered((element) => Number(style(element).opacity) * (element.parentElement ? opacityOf(element.parentElement) : 1));
  // The colours that may stand behind the element's text: one, or those of a gradient.
  const behind = remembered((element) => {
    const s = style(element), opacity = opacityOf(element);
    const plain = (element.parentElement ? behind(element.parentElement) : [[255, 255, 255]]).map((under) => over(rgba(s.backgroundColor), under, opacity));
    const gradient = s.backgroundImage.match(/(rgba?|color)\([^()]*\)/g);
    return gradient ? plain.flatMap((under) => gradient.map((c) => over(rgba(c), under, opacity))) : plain;
  });
  // Shapes of a picture that lie under its text.
  const painted = (element, middle, colors) => {
    const root = element.ownerSVGElement;
    for (const shape of root.querySelectorAll("rect")) {
      if (!(shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
      const b = shape.getBoundingClientRect();
      if (b.left > middle[0] || b.right < middle[0] || b.top > middle[1] || b.bottom < middle[1]) continue;
      const s = style(shape);
      if (s.fill !== "none") colors = colors.map((c) => over(rgba(s.fill), c, Number(s.opacity) * Number(s.fillOpacity)));
    }
    return colors;
  };

  // --- the texts ------------------------------------------------------------------------------------

  const textsOfPage = () => {
    const texts = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!node.textContent.trim() || !isShown(element)) continue;
      range.selectNodeContents(node);
      const s = style(element), isPicture = Boolean(element.ownerSVGElement);
      const scale = isPicture ? Math.hypot(element.getScreenCTM().a, element.getScreenCTM().b) : 1;
      // A line's box is higher than its letters.
      const boxes = [...range.getClientRects()].filter((r) => r.width > 0.5).map((r) => ({...boxOf(r), top: r.top + 0.2 * r.height, bottom: r.bottom - 0.2 * r.height}));
      texts.push({text: node.textContent.trim(), element, boxes, shapes: boxes.map(cornersOf), font: parseFloat(s.fontSize) * scale, color: isPicture ? s.fill : s.color, isPicture});
    }
    return texts;
  };
  const textsOfCanvases = () => [...document.querySelectorAll("canvas")].filter((c) => drawn.has(c) && isShown(c)).flatMap((canvas) => {
    const b = canvas.getBoundingClientRect(), scale = b.width / canvas.width;
    return drawn.get(canvas).map((t) => {
      const corners = t.corners.map(([x, y]) => [b.left + x * scale, b.top + y * scale]);
      return {...t, element: canvas, shapes: [corners], boxes: [hull(corners)], font: t.font * scale};
    });
  });

  const short = (text) => (text.length > 40 ? text.slice(0, 39) + "…" : text).replace(/\s+/g, " ");
  const overlapping = (texts) => {
    const seen = texts.flatMap((t) => t.boxes.map((box, k) => {
      const view = meet(box, frame(t.element));
      return {t, view, shape: t.under ? t.shapes[k] : cornersOf(view)};
    })).filter(({view}) => view.right - view.left > 1 && view.bottom - view.top > 1).sort((a, b) => a.view.top - b.view.top);
    const problems = [];
    seen.forEach((a, i) => {
      for (let j = i + 1; j < seen.length && seen[j].view.top < a.view.bottom; ++j) {
        const b = seen[j];
        if (a.t !== b.t && overlap(a.shape, b.shape)) problems.push(`“${short(a.t.text)}” and “${short(b.t.text)}” lie over each other, at ${Math.round(b.view.left)}, ${Math.round(b.view.top)}`);
      }
    });
    return problems;
  };
  const faint = (t) => {
    if (t.element.closest(":disabled, [aria-disabled=true]")) return null;
    const page = behind(t.element), box = t.boxes[0];
    const under = t.under ? page.map((p) => over(t.under, p)) : t.isPicture ? painted(t.element, [(box.left + box.right) / 2, (box.top + box.bottom) / 2], page) : page;
    const worst = Math.min(...under.map((u) => contrast(over(rgba(t.color), u, opacityOf(t.element)), u)));
    return worst < kContrast ? `“${short(t.text)}” has a contrast of ${worst.toFixed(2)}, below ${kContrast}` : null;
  };
  const cutByPicture = (t) => {
    const picture = t.under ? t.element : t.isPicture ? t.element.ownerSVGElement : null;
    if (!picture) return null;
    const p = picture.getBoundingClientRect();
    return t.boxes.some((b) => b.left < p.left - 1.5 || b.right > p.right + 1.5 || b.top < p.top - 1.5 || b.bottom > p.bottom + 1.5)
      ? `“${short(t.text)}” is cut off by the edge of its picture` : null;
  };

  // --- the elements ---------------------------------------------------------------------------------

  const isCut = (element) => {
    const s = style(element);
    if (!/hidden|clip/.test(s.overflowX) || element.scrollWidth <= element.clientWidth + 1 || !element.textContent.trim() || element.matches("input, select")) return false;
    return !(s.textOverflow === "ellipsis" && element.closest("[title]"));
  };
  const elementProblems = () => {
    const wide = document.documentElement.clientWidth, problems = [];
    const more = document.documentElement.scrollWidth - wide;
    if (more > 0) problems.push(`the page is ${more} pixels wider than the window`);
    for (const element of document.body.querySelectorAll("*")) {
      if (element.ownerSVGElement || !isShown(element)) continue;
      const b = element.getBoundingClientRect();
      if (b.width > 0 && !isInScroll(element) && (b.right > wide + 1 || b.left < -1)) problems.push(`${nameOf(element)} reaches from ${Math.round(b.left)} to ${Math.round(b.right)}, beyond the window of ${wide}`);
      if (isCut(element)) problems.push(`${nameOf(element)} is cut off: ${element.scrollWidth} pixels in ${element.clientWidth}`);
      if (scrolls(element) && element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element, "::before").content === "none") {
        problems.push(`${nameOf(element)} scrolls sideways (${element.scrollWidth} pixels in ${element.clientWidth}) without a hint`);
      }
      if (element.matches("input[placeholder]") && !element.value) {
        const worst = Math.min(...behind(element).map((u) => contrast(over(rgba(getComputedStyle(element, "::placeholder").color), u), u)));
        if (worst < kContrast) problems.push(`the placeholder “${element.placeholder}” has a contrast of ${worst.toFixed(2)}, below ${kContrast}`);
      }
    }
    return problems;
  };

  return () => {
    for (const memory of memories) memory.clear();
    const texts = [...textsOfPage(), ...textsOfCanvases()];
    const problems = [...elementProblems(), ...overlapping(texts)];
    for (const t of texts) {
      if (t.boxes.length) problems.push(...[faint(t), cutByPicture(t)].filter(Boolean));
      if (t.font < kFont - 0.01) problems.push(`“${short(t.text)}” is written ${t.font.toFixed(1)} pixels high, below ${kFont}`);
    }
    return [...new Set(problems)];
  };
})();
