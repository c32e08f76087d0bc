// The data of the attention page: sides, heads and their weights by tokens and by words.
//
//   heddle.attention = {heads, kinds, sides, units(side, unit), cell(head, unit, i, j), ...}
//
// A unit is a token or a word: {text, begin, end}, tokens begin to end - 1. The weight from word a to
// word b is the mean over the tokens of a of the sum over the tokens of b, so that rows still sum to 1.
"use strict";
(() => {
  const data = heddle.data;
  const titles = {
    encoder: {title: "Encoder", text: "Words of the source look at each other."},
    decoder: {title: "Decoder", text: "Words of the target look at themselves and at those before them; what follows is hidden from them."},
    cross: {title: "Cross", text: "Each word that is being written looks at the source."},
    self: {title: "Self", text: "Words of the text look at each other."},
  };
  const kinds = data.kinds.map((kind) => ({...kind, ...(titles[kind.name] || {title: kind.name, text: ""})}));
  kinds.forEach((kind) => {
    if (kind.name === "self" && kind.is_causal) kind.text = "Words look at themselves and at those before them; what follows is hidden from them.";
  });

  const sides = data.sides.map((side) => ({
    name: side.name,
    tokens: side.tokens.map((text, i) => ({text, begin: i, end: i + 1})),
    words: side.words.map(([begin, end, text]) => ({text, begin, end})),
  }));

  // "Cross, layer 2, head 0", counted from 0 as by --layer and --head; without the kind where there is one alone.
  const nameOf = (kind, head) => `${kinds.length > 1 ? `${kind.title}, layer` : "Layer"} ${head.layer}, head ${head.head}`;
  const heads = data.heads.map((head, index) => ({
    ...head, index, kindInfo: kinds[head.kind], name: nameOf(kinds[head.kind], head),
    rows: sides[kinds[head.kind].queries].tokens.length, cols: sides[kinds[head.kind].keys].tokens.length,
    isWhole: head.kept === undefined,
  }));

  // Unpacked when first looked at.
  const unpacked = new Map();
  const numbers = (head) => {
    if (!unpacked.has(head.index)) {
      const grid = head.isWhole ? null : heddle.unpack16(head.grid);
      unpacked.set(head.index, {
        weights: heddle.unpack16(head.weights), grid,
        columns: head.isWhole ? null : heddle.unpack16(head.columns),
        highest: grid ? grid.reduce((a, b) => Math.max(a, b), 0) / 65535 : 1,
      });
    }
    return unpacked.get(head.index);
  };

  // Sum of row i over the columns j0 to j1 - 1; null where none of them was kept.
  const rowSum = (head, i, j0, j1) => {
    const n = numbers(head);
    let sum = 0;
    if (head.isWhole) {
      for (let j = j0; j < j1; ++j) sum += n.weights[i * head.cols + j];
      return sum / 65535;
    }
    let isKept = false;
    for (let k = i * head.kept; k < (i + 1) * head.kept; ++k) {
      if (n.columns[k] < j0 || n.columns[k] >= j1) continue;
      isKept = true;
      sum += n.weights[k];
    }
    return isKept ? sum / 65535 : null;
  };

  const unitsOf = (side, unit) => sides[side][unit];
  const queries = (head, unit) => unitsOf(head.kindInfo.queries, unit);
  const keys = (head, unit) => unitsOf(head.kindInfo.keys, unit);
  const isHidden = (head, a, b) => head.kindInfo.is_causal && b.begin > a.end - 1 + head.kindInfo.before;

  // From unit a to unit b; NaN where the mask hides b, null where the weight is too small to be kept.
  const weight = (head, a, b) => {
    if (isHidden(head, a, b)) return NaN;
    let sum = 0, isKept = false;
    for (let i = a.begin; i < a.end; ++i) {
      const x = rowSum(head, i, b.begin, b.end);
      if (x === null) continue;
      isKept = true;
      sum += x;
    }
    return isKept ? sum / (a.end - a.begin) : null;
  };
  const cell = (head, unit, i, j) => weight(head, queries(head, unit)[i], keys(head, unit)[j]);

  // The largest weight among the units i0 to i1 - 1 and j0 to j1 - 1: what a pixel of many cells shows.
  const block = (head, unit, i0, i1, j0, j1) => {
    const q = queries(head, unit), k = keys(head, unit);
    const r0 = q[i0].begin, r1 = q[i1 - 1].end, c0 = k[j0].begin, c1 = k[j1 - 1].end;
    if (head.kindInfo.is_causal && c0 > r1 - 1 + head.kindInfo.before) return NaN;
    const n = numbers(head);
    let best = 0;
    if (!head.isWhole && (r1 - r0) * head.grid_rows >= head.rows && (c1 - c0) * head.grid_cols >= head.cols) {
      const to = (x, from, count) => Math.floor(x * count / from);
      for (let i = to(r0, head.rows, head.grid_rows); i <= to(r1 - 1, head.rows, head.grid_rows); ++i) {
        for (let j = to(c0, head.cols, head.grid_cols); j <= to(c1 - 1, head.cols, head.grid_cols); ++j) {
          best = Math.max(best, n.grid[i * head.grid_cols + j]);
        }
      }
      return best / 65535;
    }
    for (let i = r0; i < r1; ++i) {
      if (head.isWhole) {
        for (let j = c0; j < c1; ++j) best = Math.max(best, n.weights[i * head.cols + j]);
      } else {
        for (let at = i * head.kept; at < (i + 1) * head.kept; ++at) {
          if (n.columns[at] >= c0 && n.columns[at] < c1) best = Math.max(best, n.weights[at]);
        }
      }
    }
    return best / 65535;
  };

  // Tokens of every occurrence of a word, as the program finds them.
  const find = (side, word) => {
    const all = sides[side].words;
    const exact = all.filter((w) => w.text === word);
    return exact.length ? exact : all.filter((w) => w.text.toLowerCase() === word.toLowerCase());
  };
  // Mean weight from the tokens of a word to all tokens of another; null if the head's sides lack one.
  const link = (head, from, to) => {
    const a = find(head.kindInfo.queries, from), b = find(head.kindInfo.keys, to);
    if (!a.length || !b.length) return null;
    let sum = 0, rows = 0;
    for (const x of a) {
      for (let i = x.begin; i < x.end; ++i) {
        ++rows;
        for (const y of b) sum += rowSum(head, i, y.begin, y.end) || 0;
      }
    }
    return sum / rows;
  };

  const highest = (head) => numbers(head).highest;
  // What stands on the two axes: where they are of different texts, which ones.
  const names = {source: "source", target: "target", written: "target", text: "text", memory: "memory and text"};
  const axes = (head) => {
    const {queries: q, keys: k} = head.kindInfo;
    return q === k ? ["query", "key"] : [`${names[sides[q].name]} (query)`, `${names[sides[k].name]} (key)`];
  };
  heddle.attention = {axes, kinds, sides, heads, unitsOf, queries, keys, isHidden, weight, cell, block, find, link, highest};
})();
