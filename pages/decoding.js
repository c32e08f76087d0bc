// The page of one translation, or continuation of a prompt, token by token: the beam as a tree, likely next tokens, attention beside them.
"use strict";
(() => {
  const {el, svg, data, main} = heddle;
  const nodes = data.nodes.map((node, n) => ({...node, n, children: [], isBest: data.best.includes(n)}));
  for (const node of nodes) if (node.parent >= 0) nodes[node.parent].children.push(node);
  for (const node of nodes) node.children.sort((a, b) => b.log_p - a.log_p);
  const steps = nodes.reduce((most, node) => Math.max(most, node.next.length ? node.step + 1 : 0), 0);
  const textOf = (node) => {
    let text = "";
    for (let at = node; at.parent >= 0; at = nodes[at.parent]) text = (at.is_ended ? "" : at.token) + text;
    return text.trim();
  };
  const isTranslation = data.source.length > 0, kind = isTranslation ? "translation" : "text";
  // A token that goes on with a word is marked: what begins one has a space before it, its own or of the token before.
  const shown = (token, before = "") => (/^\p{L}/u.test(token) && !/\s$/.test(before) ? "…" : "") + (token.trim() || (token.includes("\n") ? "(newline)" : "(space)"));
  const shownNode = (node) => (node.parent < 0 ? node.token : shown(node.token, nodes[node.parent].token));
  let chosen = nodes[data.best[0] ?? 0];

  // --- the tree -----------------------------------------------------------------------------------------

  const kColumn = 104, kRow = 24;
  // A row for each leaf, the best way on top; a parent stands beside its first child.
  const place = () => {
    let rows = 0;
    const visit = (node) => {
      const children = [...node.children].sort((a, b) => b.isBest - a.isBest || b.log_p - a.log_p);
      children.forEach(visit);
      node.row = children.length ? children[0].row : rows++;
    };
    visit(nodes[0]);
    return rows;
  };
  const rows = place();
  const picture = svg("svg", {role: "group", "aria-label": "the beam as a tree"});
  const frame = el("div", {class: "scroll", style: "max-height: 60vh; overflow-y: auto"}, picture);
  const x = (node) => 8 + node.step * kColumn, y = (node) => 36 + node.row * kRow;
  const drawTree = () => {
    const width = 24 + (nodes.reduce((a, n) => Math.max(a, n.step), 0) + 1) * kColumn, height = 44 + rows * kRow;
    const hadFocus = picture.contains(document.activeElement);
    picture.replaceChildren();
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.setAttribute("style", `width: ${width}px; height: ${height}px; display: block`);
    picture.append(svg("rect", {x: x(chosen) - 6, y: 0, width: kColumn - 4, height, fill: "var(--hidden)", opacity: 0.45, rx: 4}));
    for (let s = 0; s <= steps; ++s) picture.append(svg("text", {x: 8 + s * kColumn, y: 14, "font-size": 12, class: "faint-text"}, s === 0 ? "start" : `token ${s}`));
    for (const node of nodes) {
      if (node.parent < 0) continue;
      const parent = nodes[node.parent], x1 = x(parent) + Math.min(kColumn - 12, 9 * shownNode(parent).length + 6), x2 = x(node) - 4;
      picture.append(svg("path", {d: `M${x1} ${y(parent)}C${(x1 + x2) / 2 + 8} ${y(parent)} ${(x1 + x2) / 2 - 8} ${y(node)} ${x2} ${y(node)}`, fill: "none",
        stroke: node.isBest ? "var(--accent)" : "var(--line)", "stroke-width": node.isBest ? 2.5 : 1.5}));
    }
    for (const node of nodes) {
      const isDead = !node.isBest && !node.children.length && !node.is_ended;
      const token = shownNode(node);
      const g = svg("g", {tabindex: node === chosen ? 0 : -1, role: "button", "data-node": node.n, style: "cursor: pointer",
        "aria-label": `${token}, ${node.is_ended ? "a whole " + kind : "after " + node.step + " tokens"}, log p ${heddle.number(node.log_p, 3)}`},
      svg("rect", {x: x(node) - 5, y: y(node) - 11, width: kColumn - 8, height: 22, rx: 4, fill: node === chosen ? "var(--accent)" : "transparent", opacity: node === chosen ? 0.22 : 1}),
      svg("text", {x: x(node), y: y(node) + 5, "font-size": 14, "font-weight": node.isBest ? 700 : 400, class: isDead ? "faint-text" : undefined},
        token.length > 11 ? token.slice(0, 10) + "…" : token));
      g.addEventListener("click", () => choose(node));
      g.addEventListener("pointermove", (event) => heddle.tip(event, `${textOf(node) || "(nothing yet)"}${node.is_ended ? " (end)" : ""}\n` +
        `log p ${heddle.number(node.log_p, 4)}` + (node.is_ended ? `, score ${heddle.number(node.score, 4)}` : isDead ? "\ngiven up here: others were likelier" : "")));
      g.addEventListener("pointerleave", heddle.untip);
      g.addEventListener("keydown", (event) => {
        const sameStep = nodes.filter((n) => n.step === node.step).sort((a, b) => a.row - b.row), at = sameStep.indexOf(node);
        const to = {ArrowLeft: nodes[node.parent], ArrowRight: node.children[0], ArrowUp: sameStep[at - 1], ArrowDown: sameStep[at + 1], Enter: node}[event.key];
        if (!to) return;
        event.preventDefault();
        choose(to);
        picture.querySelector(`[data-node="${to.n}"]`).focus();
      });
      picture.append(g);
    }
    if (hadFocus) picture.querySelector(`[data-node="${chosen.n}"]`).focus({preventScroll: true});
  };

  // --- what comes next, and where it looks -------------------------------------------------------------------

  const bar = (share, isMarked) => el("td", {style: "width: 55%"}, heddle.bar(share, isMarked));
  const nextBox = el("div", {}), lookBox = el("div", {}), heading = el("p", {id: "beginning"});
  const drawNext = () => {
    if (chosen.is_ended) {
      nextBox.replaceChildren(el("p", {class: "faint"}, `A whole ${kind}. Its score is ${heddle.number(chosen.score, 4)}: log p ${heddle.number(chosen.log_p, 4)} over the length penalty.`));
      lookBox.replaceChildren(el("p", {class: "faint"}, "Nothing more is asked for."));
      return;
    }
    const childOf = (token) => chosen.children.find((c) => c.token === token);
    nextBox.replaceChildren(el("table", {style: "width: 100%", "aria-label": "likely next tokens"}, el("tbody", {}, ...chosen.next.map(([token, p]) => {
      const child = childOf(token);
      return el("tr", child ? {tabindex: 0, title: "go on with this token", onclick: () => choose(child), onkeydown: (event) => { if (event.key === "Enter") choose(child); }} : {},
        el("td", {style: child && child.isBest ? "font-weight: 700" : ""}, shown(token, chosen.token) + (child ? " ▸" : "")), bar(p, Boolean(child)), el("td", {class: "number"}, heddle.percent(p)));
    }))), el("p", {class: "faint small"}, "▸ and colour: kept in the beam. The rest of the probability is spread over the other tokens."));
    const weights = heddle.unpack16(chosen.attention);
    lookBox.replaceChildren(weights.length ? el("table", {style: "width: 100%", "aria-label": "attention to the source"}, el("tbody", {}, ...data.source.map((token, j) =>
      el("tr", {}, el("td", {}, shown(token)), bar(weights[j] / 65535, true), el("td", {class: "number"}, heddle.percent(weights[j] / 65535))))))
      : el("p", {class: "faint"}, "Given up before another token was asked for."));
  };

  // --- steps -----------------------------------------------------------------------------------------------

  const slider = el("input", {type: "range", min: 0, max: Math.max(0, data.best.length - 1), value: 0, "aria-label": "step", style: "width: min(24rem, 60vw)",
    oninput: (event) => choose(nodes[data.best[Number(event.target.value)]])});
  const before = el("button", {type: "button", onclick: () => choose(nodes[chosen.parent])}, "◂ back");
  const after = el("button", {type: "button", onclick: () => choose(chosen.children.find((c) => c.isBest) || chosen.children[0])}, "next ▸");
  const choose = (node) => {
    chosen = node;
    slider.value = node.step;
    before.disabled = node.parent < 0;
    after.disabled = node.children.length === 0;
    heading.replaceChildren(el("span", {class: "faint"}, node.is_ended ? "Done: " : `After ${node.step} token${node.step === 1 ? "" : "s"}: `),
      el("strong", {}, textOf(node) || "(nothing yet)"));
    drawTree();
    drawNext();
    const left = x(node) - frame.clientWidth / 2;
    if (x(node) < frame.scrollLeft || x(node) + kColumn > frame.scrollLeft + frame.clientWidth) frame.scrollLeft = left;
  };

  // Whole texts that read alike differ in their tokens, which are shown under them.
  const ended = nodes.filter((n) => n.is_ended).sort((a, b) => b.score - a.score).slice(0, 20);
  const readsAlike = (n) => ended.some((m) => m !== n && textOf(m) === textOf(n));
  const tokensOf = (n) => {
    const tokens = [];
    for (let at = nodes[n.parent]; at.parent >= 0; at = nodes[at.parent]) tokens.unshift(shownNode(at));
    return tokens.join(" · ");
  };
  main.append(
    el("p", {}, el("span", {class: "faint"}, isTranslation ? "Source: " : "Prompt: "), data.source_text), el("p", {}, el("span", {class: "faint"}, isTranslation ? "Translation: " : "What follows: "), data.text),
    el("p", {class: "faint small"}, "A text is written from left to right, a token at a time. At each step the model gives every token of its vocabulary a probability; the beam keeps the likeliest beginnings and goes on with them. “…” marks a token that goes on with the word before it."),
    el("section", {class: "panel"}, el("div", {class: "row"}, before, slider, after), heading),
    el("div", {class: isTranslation ? "columns two" : ""},
      el("section", {}, el("h2", {}, "Likely next tokens"), nextBox), isTranslation && data.layer >= 0 ? el("section", {}, el("h2", {}, "Where it looks meanwhile"), el("p", {class: "faint small"}, `Cross-attention of the decoder's layer ${data.layer}, counted from 0: the mean of its heads.`), lookBox) : ""),
    el("h2", {}, "The beam"), el("p", {class: "faint small"}, "Bold: the way to the result. Grey: given up. Pick a beginning to see what came next."), frame,
    el("h2", {}, isTranslation ? "Whole translations" : "Whole texts"), el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, kind), el("th", {class: "number"}, "score"), el("th", {class: "number"}, "log p"))),
      el("tbody", {}, ...ended.map((n) => el("tr", {tabindex: 0, onclick: () => choose(n), onkeydown: (event) => { if (event.key === "Enter") choose(n); }},
        el("td", {style: n.isBest ? "font-weight: 700" : ""}, textOf(n), readsAlike(n) ? el("div", {class: "faint small tokens"}, tokensOf(n)) : null), el("td", {class: "number"}, heddle.number(n.score, 4)), el("td", {class: "number"}, heddle.number(n.log_p, 4)))))),
    ended.some(readsAlike) ? el("p", {class: "faint small"}, "Where two read alike, their text is cut into tokens in two ways (its segmentation, shown below each): the model gives probabilities to tokens, so the beam keeps both.") : "",
    heddle.exportButtons("decoding", {svg: () => picture, json: () => data}));
  choose(chosen);
})();
