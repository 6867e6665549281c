// Scores of all items by each head, added up as qkvsearch/retrieval/fusion.py does it, and their
// parts. The products and the softmax are those of attention.js.
/* global attention */

// Scores whose deviation is a smaller share of the largest differ by rounding errors alone.
const LEAST_SPREAD = 1e-6;

/** Mean and standard deviation; a deviation of 0 where scores tell no item from another. */
export function moments(scores) {
  const n = scores.length;
  let [sum, squares, largest] = [0, 0, 0];
  for (let i = 0; i < n; i++) sum += scores[i];
  const mean = sum / Math.max(n, 1);
  for (let i = 0; i < n; i++) {
    const centred = scores[i] - mean;
    squares += centred * centred;
    largest = Math.max(largest, Math.abs(scores[i]));
  }
  const deviation = Math.sqrt(squares / Math.max(n, 1));
  return { mean, deviation: deviation > LEAST_SPREAD * largest ? deviation : 0 };
}

/** BM25's idf of what n of the items have. */
const rarity = (n, total) => Math.log1p((total - n + 0.5) / (n + 0.5));

/** What a word finds by all its ways, as `TermKeys.found`: all are as rare as the items that have
 *  any of them, and an item counts the best. Rows ascending, weights, and whose way it was. */
function findings(word, total) {
  if (word.ways.length === 1) {
    const [way] = word.ways;
    const factor = way.weight * word.boost;
    return { rows: way.found.rows, weights: way.found.weights.map((weight) => weight * factor), by: null };
  }
  const best = new Float32Array(total);
  const by = new Uint8Array(total);
  word.ways.forEach(({ weight, found }, number) => {
    const share = weight / rarity(found.rows.length, total);
    for (let i = 0; i < found.rows.length; i++) {
      const value = share * found.weights[i];
      if (value > best[found.rows[i]]) {
        best[found.rows[i]] = value;
        by[found.rows[i]] = number;
      }
    }
  });
  const rows = rowsWhere(best);
  const factor = word.boost * rarity(rows.length, total);
  const weights = new Float32Array(rows.length);
  for (let i = 0; i < rows.length; i++) weights[i] = best[rows[i]] * factor;
  return { rows, weights, by };
}

/** The places of what is above 0. */
function rowsWhere(values) {
  const rows = new Uint16Array(values.length);
  let n = 0;
  for (let row = 0; row < values.length; row++) if (values[row] > 0) rows[n++] = row;
  return rows.subarray(0, n);
}

/** The item's own word that a word was found as, and what that adds; null where it was not. */
function foundAs(word, row) {
  const at = indexOf(word.findings.rows, row);
  if (at < 0) return null;
  const way = word.ways[word.findings.by ? word.findings.by[row] : 0];
  const own = way.found.best[indexOf(way.found.rows, row)];
  return { key: own ? way.found.names[own - 1] : way.shown, value: word.findings.weights[at] };
}

function indexOf(rows, row) {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle] < row) low = middle + 1;
    else high = middle;
  }
  return rows[low] === row ? low : -1;
}

/** The lexical head: null where no item has any of the words. */
function lexical(words, total) {
  for (const word of words) word.findings = findings(word, total);
  if (!words.some((word) => word.findings.rows.length)) return null;
  const sums = new Float64Array(total);
  for (const { findings: found } of words) {
    const { rows, weights } = found;
    for (let i = 0; i < rows.length; i++) sums[rows[i]] += weights[i];
  }
  const parts = (row) =>
    words.flatMap((word) => {
      const found = foundAs(word, row);
      return found ? [{ word: word.label, key: found.key, value: found.value }] : [];
    });
  return { name: "lexical", scores: Float32Array.from(sums), parts };
}

/** The vectors of a query's words by a head, which add up to length 1: as `TokenEncoder.encode`. */
export function queryParts(words, head, width) {
  const times = new Map();
  for (const word of words) {
    const key = word.read.map((one) => one.lookup).join();
    const known = times.get(key);
    if (known) known.n += 1;
    else times.set(key, { word, n: 1 });
  }
  const parts = [];
  for (const { word, n } of times.values()) {
    const vector = new Float64Array(width);
    let length = 0;
    for (const { share, found } of word.read) {
      const { codes, scale } = found.vectors[head];
      const own = Math.hypot(...codes) * scale;
      if (!own) continue;
      // Of what an unfinished word may become the directions count, and the likeliest one's length.
      length ||= own;
      const factor = word.read.length === 1 ? scale : (share * scale) / own;
      for (let i = 0; i < width; i++) vector[i] += codes[i] * factor;
    }
    if (!length) continue;
    const mean = word.read.length === 1 ? 1 : length / (Math.hypot(...vector) || 1);
    const counts = (1 + Math.log(n)) * word.boost * mean;
    parts.push({ label: word.label, vector: vector.map((entry) => entry * counts) });
  }
  const total = new Float64Array(width);
  for (const { vector } of parts) vector.forEach((entry, i) => (total[i] += entry));
  const length = Math.hypot(...total);
  if (length <= 1e-5) return [];
  return parts.map(({ label, vector }) => ({ label, vector: vector.map((entry) => entry / length) }));
}

/** A dense head: null where it knows none of the words. */
function dense(words, name, width, keys) {
  const own = queryParts(words, name, width);
  if (!own.length) return null;
  const query = new Float64Array(width);
  for (const { vector } of own) vector.forEach((entry, i) => (query[i] += entry));
  const scores = attention.products(query, keys.codes, keys.scales);
  const parts = (row) =>
    own.map(({ label, vector }) => {
      const codes = keys.codes.subarray(row * width, (row + 1) * width);
      const [value] = attention.products(vector, codes, keys.scales.subarray(row, row + 1));
      return { word: label, key: null, value };
    });
  return { name, scores, parts };
}

/** All heads that know a word as one. words: of query.js, each way and reading with what its lookup
 *  `found`. keys: by head, those that are loaded. null where no head knows a word. */
export function fused(asked, facts, keys) {
  const { words, certainty } = asked;
  const heads = [lexical(words, facts.n_items)];
  const silent = [];
  for (const [name, width] of Object.entries(facts.components)) {
    if (keys[name]) heads.push(dense(words, name, width, keys[name]) ?? void silent.push(name));
  }
  const known = heads.filter(Boolean);
  if (!known.length) return null;
  const weightOf = (head) => facts.weights[head.name] * (head.name === "lexical" ? 1 : certainty);
  const all = known.reduce((sum, head) => sum + weightOf(head), 0);
  const scores = new Float32Array(facts.n_items);
  const isPromising = new Uint8Array(facts.n_items);
  for (const head of known) {
    const { mean, deviation } = moments(head.scores);
    head.factor = deviation ? weightOf(head) / all / deviation : 0;
    head.mean = mean;
    const { factor, scores: own } = head;
    const least = head.name === "lexical" ? 0 : factor ? mean : Infinity;
    for (let row = 0; row < scores.length; row++) {
      scores[row] += (own[row] - mean) * factor;
      if (own[row] > least) isPromising[row] = 1;
    }
  }
  return { scores, heads: known, isPromising, silent };
}

/** What each head adds to an item's score. */
export const byHead = (found, row) =>
  found.heads.map((head) => ({ name: head.name, value: (head.scores[row] - head.mean) * head.factor }));

/** The parts of an item's score, which add up to it: word by word, and of each head its mean. */
export const parts = (found, row) =>
  found.heads.flatMap((head) => [
    ...head.parts(row).map((part) => ({ ...part, head: head.name, value: part.value * head.factor })),
    { head: head.name, word: null, key: null, value: -head.mean * head.factor },
  ]);

/** The k best of the promising items, ties by row, with their weights: softmax(score / deviation)
 *  over all candidates. */
export function best(found, k) {
  const rows = rowsWhere(found.isPromising);
  const candidates = new Float32Array(rows.length);
  for (let i = 0; i < rows.length; i++) candidates[i] = found.scores[rows[i]];
  // Weights are over one standard deviation of all scores.
  const weights = attention.weights(candidates, moments(found.scores).deviation || 1);
  const order = [];
  for (let i = 0; i < rows.length; i++) {
    if (order.length === k && candidates[i] <= candidates[order[k - 1]]) continue;
    let at = Math.min(order.length, k - 1);
    while (at > 0 && candidates[order[at - 1]] < candidates[i]) {
      order[at] = order[at - 1];
      at -= 1;
    }
    order[at] = i;
  }
  const hits = order.map((i) => ({ row: rows[i], score: candidates[i], weight: weights[i] }));
  return { hits, n: rows.length };
}
