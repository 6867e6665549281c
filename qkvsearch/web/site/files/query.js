// A query's words as lookups: as they are spelled, completed while they are typed, or mended.

// As in qkvsearch/answers/asked/changes.py and texts/related.py.
const PER_ERROR = 0.8;
const COMPLETED = 0.8;
const SHORTEST = 4;
const LEAST = 0.65;
// From so many letters on a word may begin with another letter than the one meant.
const TWO_ERRORS = 8;
// Of what an unfinished word may become the most frequent are looked up, and fewer read by meaning.
const MOST_COMPLETIONS = 8;
const MOST_READ = 5;

/** Asks words of an opened store; `tokens` as in read.js. */
export function asker(store, tokens) {
  const { words, lookups, counts } = store;

  /** The place of the first word that is not before `text`. */
  function place(text) {
    let [low, high] = [0, words.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (words[middle] < text) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  const exactly = (text) => {
    const at = place(text);
    return words[at] === text ? lookups[at] : -1;
  };
  /** By its spelling, or without an ending that every stemmer of the language takes off. */
  function lookupOf(text) {
    const found = exactly(text);
    const { possessive } = store.facts;
    return found < 0 && possessive && text.endsWith(possessive) ? exactly(text.slice(0, -possessive.length)) : found;
  }
  const frequency = (at) => counts[lookups[at]];

  /** Words that begin so, each lookup once, the most frequent first. */
  function completions(begun) {
    const found = new Map();
    for (let at = place(begun); at < words.length && words[at].startsWith(begun); at++) {
      if (!found.has(lookups[at])) found.set(lookups[at], { word: words[at], lookup: lookups[at], n: frequency(at) });
    }
    const every = [...found.values()].sort((a, b) => b.n - a.n);
    const total = every.reduce((sum, one) => sum + one.n, 0);
    return every.map((one) => ({ ...one, share: one.n / total }));
  }

  /** The most frequent word with one error, or else the one of the same family that shares most;
   *  null where there is none, and for what a dictionary has. */
  async function mended(text) {
    if (text.length < SHORTEST || !/^\p{L}+$/u.test(text) || (await store.isWord(text))) return null;
    let [near, most] = [null, 0];
    for (let at = 0; at < words.length; at++) {
      if (Math.abs(words[at].length - text.length) > 1 || frequency(at) <= most) continue;
      if (words[at][0] !== text[0] && text.length < TWO_ERRORS && words[at][1] !== text[0]) continue;
      if (isOneError(text, words[at])) [near, most] = [at, frequency(at)];
    }
    if (near !== null) return { word: words[near], lookup: lookups[near], weight: PER_ERROR, how: "corrected" };
    let best = null;
    const begun = text.slice(0, SHORTEST);
    for (let at = place(begun); at < words.length && words[at].startsWith(begun); at++) {
      const weight = alike(text, words[at]);
      if (weight >= LEAST && (!best || weight > best.weight)) {
        best = { word: words[at], lookup: lookups[at], weight, how: "kin" };
      }
    }
    return best;
  }

  /** Words: {text, label, ways: [{lookup, shown, weight}], read: [{lookup, share}], boost}, notes,
   *  and how sure it is that they are those that are read, from 0 to 1. */
  async function asked(typed, isTyping) {
    const every = tokens(typed, (text) => lookupOf(text) >= 0);
    const notes = every.length && every.every((token) => token.isStop) ? [["stopped", {}]] : [];
    const found = [];
    let certainty = 1;
    const isOpen = isTyping && /[\p{L}\p{N}]$/u.test(typed);
    for (const [i, { text }] of every.entries()) {
      const lookup = lookupOf(text);
      const isLast = isOpen && i === every.length - 1;
      const more = isLast ? completions(text).slice(0, MOST_COMPLETIONS) : [];
      const one = { text, label: text, boost: 1, ways: [], read: [] };
      if (lookup >= 0) {
        one.ways.push({ lookup, shown: text, weight: 1 });
        one.read.push({ lookup, share: 1 });
        for (const other of more) {
          if (other.lookup !== lookup) one.ways.push({ lookup: other.lookup, shown: other.word, weight: COMPLETED });
        }
      } else if (more.length) {
        one.label = `${text} → ${more[0].word}`;
        one.ways = more.map((other) => ({ lookup: other.lookup, shown: other.word, weight: 1 }));
        one.read = more.slice(0, MOST_READ).map((other) => ({ lookup: other.lookup, share: other.share }));
        one.boost = COMPLETED;
        certainty = 1 - (1 - more[0].share) / every.length;
      } else {
        const read = await mended(text);
        if (!read) {
          notes.push(["missing", { word: text }]);
          continue;
        }
        notes.push([read.how, { typed: text, read: read.word }]);
        one.label = `${text} → ${read.word} ×${Number(read.weight.toFixed(2))}`;
        one.ways = [{ lookup: read.lookup, shown: read.word, weight: 1 }];
        one.read = [{ lookup: read.lookup, share: 1 }];
        one.boost = read.weight;
      }
      found.push(one);
    }
    return { words: found, notes, certainty };
  }

  return { asked };
}

/** Whether two words differ by one letter too many, too few or wrong, or by two that are swapped. */
export function isOneError(one, other) {
  const [short, long] = one.length <= other.length ? [one, other] : [other, one];
  let i = 0;
  while (i < short.length && short[i] === long[i]) i++;
  if (short.length < long.length) return short.slice(i) === long.slice(i + 1);
  if (i === short.length) return false;
  if (short.slice(i + 1) === long.slice(i + 1)) return true;
  const isSwapped = short[i] === long[i + 1] && short[i + 1] === long[i];
  return isSwapped && short.slice(i + 2) === long.slice(i + 2);
}

/** 2 n / (length + length), with n letters that both begin with; as in texts/related.py. */
export function alike(one, other) {
  const [short, long] = one.length <= other.length ? [one, other] : [other, one];
  for (const rest of [0, 1]) {
    const n = short.length - rest;
    if (n < SHORTEST + rest) return 0;
    if (long.startsWith(short.slice(0, n))) return (2 * n) / (one.length + other.length);
  }
  return 0;
}
