// Curves in SVG: a caption, a legend that hides and shows, values at the pointer or the arrow keys.
//
//   heddle.lineChart({
//     caption, title, xTitle, yTitle, series: [{name, x: [..], y: [..], color, dashed, noisy}],
//     xLog: false, yLog: false, yZero: false   (the y axis begins at 0)
//     yMost: 1   (no y is below 0 or above this: the axis of a constant does not go beyond)
//     smoothing: 0 to 1   (a noisy curve is drawn smoothed, and faint as it is)
//     height: 320, xText: (x) => text, yText: (y) => text, hidden: [names], onHide: (names) => {}
//   }) -> {element, redraw(changes), svg}
//   heddle.smoothed(y, weight) -> the exponential moving average
//
// Points may be null (a gap). Long curves are thinned to the extremes of each pixel column.
"use strict";
(() => {
  const kRight = 28, kTop = 14, kBottom = 44;

  // About `count` round numbers from low to high.
  const linearTicks = (low, high, count) => {
    const rough = (high - low) / count, power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].find((m) => m * power >= rough) * power;
    const ticks = [];
    for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + step * 1e-9; x += step) {
      ticks.push(Math.abs(x) < step * 1e-9 ? 0 : x);
    }
    return ticks;
  };
  const logTicks = (low, high) => {
    const ticks = [], decades = Math.log10(high / low);
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e) {
      for (const m of decades > 4 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 5]) {
        const x = m * Math.pow(10, e);
        if (x >= low * 0.999 && x <= high * 1.001) ticks.push(x);
      }
    }
    // Less than a decade has few of those.
    return ticks.length > 2 ? ticks : linearTicks(low, high, 5).filter((x) => x > 0);
  };

  // As TensorBoard has it: the mean of what came before is weighed by `weight`, and divided by the
  // weights that there are, so that a curve does not begin at zero.
  heddle.smoothed = (y, weight) => {
    let mean = 0, sum = 0;
    return Array.from(y, (v) => {
      if (v === null || !Number.isFinite(v)) return v;
      mean = weight * mean + (1 - weight) * v;
      sum = weight * sum + (1 - weight);
      return mean / sum;
    });
  };

  const axis = (values, isLog, zero, count, most) => {
    let low = Infinity, high = -Infinity;
    for (const x of values) {
      if (x === null || !Number.isFinite(x) || (isLog && x <= 0)) continue;
      low = Math.min(low, x);
      high = Math.max(high, x);
    }
    if (low > high) { low = isLog ? 1 : 0; high = isLog ? 10 : 1; }
    if (zero && !isLog) { low = Math.min(low, 0); high = Math.max(high, 0); }
    if (low === high && most) { low = 0; high = most; }
    if (low === high) { low = isLog ? low / 2 : low - (Math.abs(low) || 1) / 2; high = isLog ? high * 2 : high + (Math.abs(high) || 1) / 2; }
    const at = isLog ? (x) => Math.log(x / low) / Math.log(high / low) : (x) => (x - low) / (high - low);
    const ticks = isLog ? logTicks(low, high) : linearTicks(low, high, count), whole = ticks.filter(Number.isInteger);
    // Of updates there are no halves.
    return {low, high, at, ticks: whole.length > 1 && values.every(Number.isInteger) ? whole : ticks};
  };

  // Of the points that share a column of pixels, the first, lowest, highest and last.
  const thin = (points) => {
    if (points.length < 1500) return points;
    const kept = [];
    for (let i = 0; i < points.length;) {
      let end = i, low = i, high = i;
      const column = Math.floor(points[i][0]);
      for (; end < points.length && Math.floor(points[end][0]) === column; ++end) {
        if (points[end][1] < points[low][1]) low = end;
        if (points[end][1] > points[high][1]) high = end;
      }
      for (const k of [...new Set([i, low, high, end - 1])].sort((a, b) => a - b)) kept.push(points[k]);
      i = end;
    }
    return kept;
  };

  heddle.lineChart = (options) => {
    let o = Object.assign({series: [], height: 320, smoothing: 0, hidden: []}, options);
    const hidden = new Set(o.hidden);
    const svg = heddle.svg("svg", {tabindex: 0, role: "img", style: `height: ${o.height}px`});
    const legend = heddle.el("div", {class: "legend"});
    const seen = heddle.el("div", {class: "hidden-text", "aria-live": "polite"});
    const caption = o.caption ? heddle.el("figcaption", {}, o.caption) : null;
    const element = heddle.el("figure", {class: "chart"}, caption, svg, legend, seen);
    let plot = null, index = -1, wide = 720, left = 64;  // pixels that there are, those beside the axis
    const colorOf = (s, i) => s.color || heddle.seriesColor(i);
    const xText = (x) => (o.xText ? o.xText(x) : heddle.number(x));
    const yText = (y, digits = 4) => (o.yText ? o.yText(y) : heddle.number(y, digits));
    // With as many digits as it takes to tell them apart.
    const tickTexts = (ticks) => {
      for (let digits = 4;; ++digits) {
        const texts = ticks.map((t) => yText(t, digits));
        if (digits === 9 || new Set(texts).size === texts.length) return texts;
      }
    };
    const shown = () => o.series.map((s, i) => ({...s, i, raw: null}))
      .map((s) => (s.noisy && o.smoothing > 0 ? {...s, raw: s.y, y: heddle.smoothed(s.y, o.smoothing)} : s))
      .filter((s) => !hidden.has(s.name));

    const draw = () => {
      const series = shown();
      const x = axis(series.flatMap((s) => Array.from(s.x)), o.xLog, false, Math.max(4, wide / 110));
      const y = axis(series.flatMap((s) => Array.from(s.raw || s.y)), o.yLog, o.yZero, 6, o.yMost);
      const yTexts = tickTexts(y.ticks);
      left = Math.ceil(Math.max(0, ...yTexts.map((t) => heddle.textWidth(t)))) + (o.yTitle ? 34 : 12);
      const px = (v) => left + x.at(v) * (wide - left - kRight);
      const py = (v) => o.height - kBottom - y.at(v) * (o.height - kTop - kBottom);
      plot = {px, py, xs: [...new Set(series.flatMap((s) => Array.from(s.x)))].sort((a, b) => a - b)};
      svg.setAttribute("viewBox", `0 0 ${wide} ${o.height}`);
      svg.setAttribute("aria-label", `${o.title || "curves"}: ${o.series.map((s) => s.name).join(", ")}; ` +
        "left and right arrow keys read values");
      svg.replaceChildren();
      const text = (attributes, t) => svg.append(heddle.svg("text", {"font-size": 13, ...attributes}, t));
      let free = -Infinity;  // where the next label may begin
      for (const t of x.ticks) {
        svg.append(heddle.svg("line", {class: "axis", x1: px(t), x2: px(t), y1: kTop, y2: o.height - kBottom, opacity: 0.5}));
        const half = 4 * xText(t).length + 3;
        if (px(t) - half < free) continue;
        free = px(t) + half;
        text({x: px(t), y: o.height - kBottom + 17, "text-anchor": "middle", class: "faint-text"}, xText(t));
      }
      for (const [i, t] of y.ticks.entries()) {
        svg.append(heddle.svg("line", {class: "axis", x1: left, x2: wide - kRight, y1: py(t), y2: py(t)}));
        text({x: left - 7, y: py(t) + 4, "text-anchor": "end", class: "faint-text"}, yTexts[i]);
      }
      text({x: (left + wide - kRight) / 2, y: o.height - 8, "text-anchor": "middle"}, o.xTitle || "");
      text({x: 14, y: o.height / 2 - 10, "text-anchor": "middle", transform: `rotate(-90 14 ${o.height / 2 - 10})`}, o.yTitle || "");
      for (const s of series) {
        if (s.raw) drawCurve(s, s.raw, {opacity: 0.3, "stroke-width": 1.5, "data-raw": s.name});
        drawCurve(s, s.y, {"stroke-width": 2, "stroke-dasharray": s.dashed ? "6 4" : undefined, "data-series": s.name});
      }
      drawLegend();
    };

    const drawCurve = (s, values, attributes) => {
      let path = "", run = [];
      const flush = () => {
        const points = thin(run);
        if (points.length === 1) {
          svg.append(heddle.svg("circle", {cx: points[0][0], cy: points[0][1], r: 3, fill: colorOf(s, s.i)}));
        } else {
          path += points.map((q, k) => (k ? "L" : "M") + q[0].toFixed(1) + " " + q[1].toFixed(1)).join("");
        }
        run = [];
      };
      for (let k = 0; k < values.length; ++k) {
        const v = values[k];
        if (v === null || !Number.isFinite(v) || (o.yLog && v <= 0) || (o.xLog && s.x[k] <= 0)) flush();
        else run.push([plot.px(s.x[k]), plot.py(v)]);
      }
      flush();
      if (path) {
        svg.append(heddle.svg("path", {d: path, fill: "none", stroke: colorOf(s, s.i), "stroke-linejoin": "round", ...attributes}));
      }
    };

    const drawLegend = () => {
      const names = o.series.map((s) => s.name);
      if (legend.dataset.names === JSON.stringify(names)) return;
      legend.dataset.names = JSON.stringify(names);
      legend.hidden = o.series.length < 2;
      legend.replaceChildren(...o.series.map((s, i) => heddle.el("button", {
        type: "button", "aria-pressed": hidden.has(s.name) ? "false" : "true", title: "show or hide this curve",
        onclick: (event) => {
          if (hidden.has(s.name)) hidden.delete(s.name); else hidden.add(s.name);
          event.currentTarget.setAttribute("aria-pressed", hidden.has(s.name) ? "false" : "true");
          if (o.onHide) o.onHide([...hidden]);
          draw();
        },
      }, heddle.el("span", {class: "swatch", style: `background: ${colorOf(s, i)}`}), s.name)));
    };

    // The values of each curve at or next to x, beside a line through it.
    const read = (at, where) => {
      svg.querySelectorAll(".cursor").forEach((e) => e.remove());
      const x = plot.xs[at], px = plot.px(x);
      svg.append(heddle.svg("line", {class: "axis cursor", x1: px, x2: px, y1: kTop, y2: o.height - kBottom, "stroke-dasharray": "3 3"}));
      const lines = [`${o.xTitle ? o.xTitle + " " : ""}${xText(x)}`];
      for (const s of shown()) {
        let best = -1;
        for (let k = 0; k < s.x.length; ++k) {
          if (s.y[k] === null || !Number.isFinite(s.y[k])) continue;
          if (best < 0 || Math.abs(s.x[k] - x) < Math.abs(s.x[best] - x)) best = k;
        }
        if (best < 0) continue;
        const raw = s.raw ? ` (not smoothed ${yText(s.raw[best])})` : "";
        lines.push(`${s.name}: ${yText(s.y[best])}${raw}${s.x[best] === x ? "" : ` (at ${xText(s.x[best])})`}`);
        const y = plot.py(s.y[best]);
        if (Number.isFinite(y)) svg.append(heddle.svg("circle", {class: "cursor", cx: plot.px(s.x[best]), cy: y, r: 4, fill: colorOf(s, s.i)}));
      }
      seen.textContent = lines.join(", ");
      const box = svg.getBoundingClientRect();
      heddle.tip(where || {x: box.left + px * box.width / wide, y: box.top + 20}, lines.join("\n"));
      index = at;
    };
    const nearest = (event) => {
      const box = svg.getBoundingClientRect(), px = (event.clientX - box.left) * wide / box.width;
      let best = -1;
      plot.xs.forEach((x, i) => {
        if (best < 0 || Math.abs(plot.px(x) - px) < Math.abs(plot.px(plot.xs[best]) - px)) best = i;
      });
      return best;
    };
    svg.addEventListener("pointermove", (event) => { if (plot.xs.length) read(nearest(event), event); });
    svg.addEventListener("pointerleave", () => {
      svg.querySelectorAll(".cursor").forEach((e) => e.remove());
      heddle.untip();
    });
    svg.addEventListener("keydown", (event) => {
      const step = heddle.arrowStep(event.key);
      if (!step || !plot.xs.length) return;
      event.preventDefault();
      read(Math.max(0, Math.min(plot.xs.length - 1, index < 0 ? 0 : index + step)));
    });

    const redraw = (changes) => { o = Object.assign({}, o, changes); draw(); };
    new ResizeObserver(() => setTimeout(() => {
      const room = Math.max(280, Math.min(1000, element.clientWidth || wide));
      if (room === wide) return;
      wide = room;
      draw();
    })).observe(element);
    draw();
    return {element, redraw, svg};
  };
})();
