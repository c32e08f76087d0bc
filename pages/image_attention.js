// The data of the attention page of an image: grids of cells, attention calls with their windows, heads and their rows.
//
//   heddle.imageAttention = {grids, calls, heads, tokens(call), row(head, query), meanRow(call, query), rolled(how, query)}
//
// A row is what one query (a cell of the call's first grid, tokens first) gives to the keys:
// {weights: of each cell of the keys' grid, null: too small to be kept; window: cells that the query could see, null: all;
//  tint: cells of its window that a mask hides from it}
"use strict";
(() => {
  const data = heddle.data, kNone = 65535;
  const cellsOf = (grid) => grid.tokens.length + grid.rows * grid.columns;
  const grids = data.grids.map((grid) => ({...grid, cells: cellsOf(grid)}));
  const range = (n) => Array.from({length: n}, (_, i) => i);

  // Where the row of each query lies.
  const calls = data.calls.map((call, index) => {
    const windows = call.windows
      ? call.windows.map((w) => ({queries: heddle.unpack16(w.queries), keys: heddle.unpack16(w.keys), regions: w.regions ? heddle.unpack16(w.regions) : null}))
      : [{queries: range(grids[call.queries].cells), keys: range(grids[call.keys].cells), regions: null}];
    const at = new Map();
    let row = 0, offset = 0;
    windows.forEach((window, w) => {
      for (let i = 0; i < window.queries.length; ++i, ++row, offset += window.keys.length) {
        if (window.queries[i] !== kNone) at.set(window.queries[i], {window: w, i, row, offset});
      }
    });
    return {...call, index, at, windowList: windows, isWindowed: Boolean(call.windows)};
  });
  const heads = data.heads.map((head, index) => ({...head, index, isWhole: head.kept === undefined}));

  const unpacked = new Map();  // when first looked at
  const numbers = (head) => {
    if (!unpacked.has(head.index)) {
      unpacked.set(head.index, {weights: heddle.unpack16(head.weights), columns: head.isWhole ? null : heddle.unpack16(head.columns)});
    }
    return unpacked.get(head.index);
  };

  const empty = (call, query) => {
    const place = call.at.get(query), cells = grids[call.keys].cells;
    const window = place ? call.windowList[place.window] : null;
    const row = {weights: new Array(cells).fill(0), window: null, tint: []};
    if (!call.isWindowed || !window) return {row, place, window};
    row.window = [...window.keys].filter((cell) => cell !== kNone);
    if (window.regions) {
      const own = window.regions[[...window.keys].indexOf(query)];
      row.tint = [...window.keys].filter((cell, j) => cell !== kNone && window.regions[j] !== own);
    }
    return {row, place, window};
  };

  const row = (head, query) => {
    const call = calls[head.call], {row: result, place, window} = empty(call, query);
    if (!place) return result;
    const n = numbers(head), keys = window.keys.length;
    const put = (j, x) => { if (window.keys[j] !== kNone) result.weights[window.keys[j]] = x; };
    if (head.isWhole || place.row < head.whole_rows) {
      for (let j = 0; j < keys; ++j) put(j, n.weights[place.offset + j] / 65535);
      return result;
    }
    for (let j = 0; j < keys; ++j) put(j, null);
    const behind = place.row - head.whole_rows;
    for (let k = 0; k < head.kept; ++k) {
      put(n.columns[behind * head.kept + k], n.weights[head.whole_rows * keys + behind * head.kept + k] / 65535);
    }
    return result;
  };

  // Over the heads of the call that are in the page.
  const meanRow = (call, query) => {
    const rows = heads.filter((head) => head.call === call.index).map((head) => row(head, query));
    const weights = rows[0].weights.map((_, cell) => {
      const known = rows.map((r) => r.weights[cell]).filter((x) => x !== null);
      return known.length ? known.reduce((sum, x) => sum + x, 0) / rows.length : null;
    });
    return {...rows[0], weights};
  };

  // Of the roll-out; null where there is none of this query. Query -1: the mean of all cells.
  const rolled = (how, query) => {
    if (!data.rollout) return null;
    const at = data.rollout.rows.indexOf(query);
    if (at < 0) return null;
    if (!unpacked.has(how)) unpacked.set(how, heddle.unpack16(data.rollout[how]));
    const all = unpacked.get(how), cells = all.length / data.rollout.rows.length;
    return {weights: Array.from(all.subarray(at * cells, (at + 1) * cells), (x) => x / 65535), window: null, tint: []};
  };

  const nameOf = (grid, cell) => {
    if (cell < 0) return "the mean of all cells";
    if (cell < grid.tokens.length) return grid.tokens[cell];
    const at = cell - grid.tokens.length;
    return `row ${Math.floor(at / grid.columns)}, column ${at % grid.columns}`;
  };

  // The cells with the largest weights that together have the share of all cells' weight.
  const mostMass = (weights, share) => {
    const order = range(weights.length).sort((a, b) => (weights[b] || 0) - (weights[a] || 0));
    const total = weights.reduce((sum, x) => sum + (x || 0), 0), kept = new Set();
    let sum = 0;
    for (const cell of order) {
      if (sum >= share * total) break;
      sum += weights[cell] || 0;
      kept.add(cell);
    }
    return kept;
  };
  heddle.imageAttention = {grids, calls, heads, row, meanRow, rolled, nameOf, mostMass};
})();
