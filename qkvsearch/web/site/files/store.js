// The site's files: fetched when they are needed, each once, and decoded.

/** How many bytes were read so far. */
export const read = { bytes: 0 };

async function bytes(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  const found = await answer.arrayBuffer();
  read.bytes += found.byteLength;
  return found;
}

const text = new TextDecoder();
const once = (make) => {
  const kept = new Map();
  return (key) => {
    if (!kept.has(key)) {
      const made = make(key);
      kept.set(key, made);
      made.catch(() => kept.delete(key)); // asked again, it may be there
    }
    return kept.get(key);
  };
};

/** The facts and the words, which everything else is found by. */
export async function open() {
  const facts = JSON.parse(text.decode(await bytes("site.json")));
  const at = (name) => bytes(`${facts.data}/${name}`);
  const [lines, numbers] = await Promise.all([at("words/0.bin"), at("words/1.bin")]);
  const words = decoded(text.decode(lines));
  const lookups = new Uint32Array(numbers, 0, words.length);
  const counts = new Uint16Array(numbers, 4 * words.length, facts.n_lookups);
  const heads = Object.keys(facts.components);
  const shard = once(async (number) => decodedShard(await at(`postings/${number}.bin`), number));
  const items = once(async (number) => JSON.parse(text.decode(await at(`items/${number}.json`))));

  function decodedShard(buffer, number) {
    const begin = facts.postings[number];
    const end = facts.postings[number + 1] ?? facts.n_lookups;
    const size = end - begin;
    const length = new Uint32Array(buffer, 0, 1)[0];
    const ways = JSON.parse(text.decode(new Uint8Array(buffer, 4, length)));
    let offset = 4 + length;
    const take = (Kind, n) => {
      const taken = new Kind(buffer, offset, n);
      offset += taken.byteLength;
      return taken;
    };
    const scales = heads.map(() => take(Float32Array, size));
    const starts = new Uint32Array(size + 1);
    for (let i = 0; i < size; i++) starts[i + 1] = starts[i] + counts[begin + i];
    const total = starts[size];
    const [weights, rows, best] = [take(Float32Array, total), take(Uint16Array, total), take(Uint16Array, total)];
    const codes = heads.map((head) => take(Int8Array, size * facts.components[head]));
    return { begin, ways, scales, starts, weights, rows, best, codes };
  }

  /** A binary search for the last shard that begins at or before a lookup. */
  function shardOf(lookup) {
    let [low, high] = [0, facts.postings.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (facts.postings[middle] <= lookup) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** What a lookup finds: rows, what it adds to each (weights), by which of its ways (best, names),
   *  and by head the vector of its word. */
  async function found(lookup) {
    const one = await shard(shardOf(lookup));
    const place = lookup - one.begin;
    const span = [one.starts[place], one.starts[place + 1]];
    const vectors = Object.fromEntries(
      heads.map((head, i) => {
        const width = facts.components[head];
        const codes = one.codes[i].subarray(place * width, (place + 1) * width);
        return [head, { codes, scale: one.scales[i][place] }];
      }),
    );
    return {
      rows: one.rows.subarray(...span),
      weights: one.weights.subarray(...span),
      best: one.best.subarray(...span),
      names: one.ways[place] ?? [],
      vectors,
    };
  }

  /** All keys of a head: codes (n · d) and a scale each. */
  async function keys(head) {
    const width = facts.components[head];
    const codes = new Int8Array(facts.n_items * width);
    const scales = new Float32Array(facts.n_items);
    const pieces = Math.ceil(facts.n_items / facts.shard_keys);
    await Promise.all(
      Array.from({ length: pieces }, async (_, number) => {
        const buffer = await at(`${head}/${number}.bin`);
        const begin = number * facts.shard_keys;
        const n = Math.min(facts.shard_keys, facts.n_items - begin);
        scales.set(new Float32Array(buffer, 0, n), begin);
        codes.set(new Int8Array(buffer, 4 * n), begin * width);
      }),
    );
    return { codes, scales };
  }

  /** An item: id, title, then its cells. */
  const item = async (row) => (await items(Math.floor(row / facts.shard_items)))[row % facts.shard_items];

  const bits = once(async () => new Uint8Array(await at("dictionary/0.bin")));
  /** Whether a dictionary has a word that the catalog is without; read when it is first asked. */
  async function isWord(word) {
    const known = await bits("dictionary");
    const [first, second] = [hashed(word, 2166136261), hashed(word, 3339675911) | 1];
    return Array.from({ length: facts.dictionary_places }, (_, i) => {
      const place = ((first + Math.imul(i, second)) >>> 0) % (8 * known.length);
      return (known[place >> 3] >> (place & 7)) & 1;
    }).every(Boolean);
  }

  return { facts, words, lookups, counts, heads, found, keys, item, isWord };
}

/** FNV-1a of UTF-16 units, as web/site/dictionary.py. */
function hashed(word, begin) {
  let found = begin;
  for (let i = 0; i < word.length; i++) found = Math.imul(found ^ word.charCodeAt(i), 16777619);
  return found >>> 0;
}

/** Front-coded lines to words: the first character says how many are those of the word before. */
export function decoded(lines) {
  let before = "";
  return lines.split("\n").map((line) => (before = before.slice(0, line.charCodeAt(0) - 32) + line.slice(1)));
}
