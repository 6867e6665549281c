// A passage of the catalog with the words in it that a query found.
import { el, text } from "./dom.js";

// With the flag u an expression may escape these alone.
const escaped = (word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
const LETTER = "[\\p{L}\\p{N}]";
// Han, kana, Hangul; Thai, Lao, Burmese and Khmer.
const UNSPACED =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Myanmar}\p{Script=Khmer}]/u;

/** What finds these words as wholes, or null for none. Scripts without blanks have no wholes. */
export function finder(words) {
  const known = [...new Set(words.map(text))].filter((word) => word && word.length < 200).slice(0, 200);
  if (!known.length) return null;
  const pieces = known
    .sort((a, b) => b.length - a.length)
    .map((word) =>
      UNSPACED.test(word) ? escaped(word) : `(?<!${LETTER})${escaped(word)}(?!${LETTER})`,
    );
  return new RegExp(`(${pieces.join("|")})`, "giu");
}

/** The passage, isolated as `owned` does it, at most `most` letters; `find` is of `finder`. */
export function marked(value, find, most = 300) {
  const whole = text(value);
  const letters = whole.length > most ? `${whole.slice(0, most)}…` : whole;
  const pieces = find === null ? [letters] : letters.split(find);
  const made = pieces.map((piece, place) => (place % 2 ? el("mark", {}, piece) : piece));
  return el("bdi", whole === letters ? {} : { title: whole.slice(0, 2000) }, made);
}
