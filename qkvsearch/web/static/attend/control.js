// The sentence that one compares with: the same head, and the same word, in it.
import { byId, text } from "../dom.js";
import { say, share } from "../words.js";
import { byWeight, counterpart } from "./reading.js";
import { isSpecial, Words } from "./words.js";

const quoted = (word) => `“${text(word)}”`;

/** Which other word the word `i` attends to most, [CLS] and signs left out; null for none. `near`:
 *  words at most so far from it are left out too. */
export function target(words, row, i, near = 0) {
  const isOther = (j) => Math.abs(j - i) > near && row[j] && /[\p{L}\p{N}]/u.test(words[j]) && !isSpecial(words[j]);
  return byWeight(row).find(isOther) ?? null;
}

/** Draws the control in its section of the page. */
export class Control {
  constructor() {
    this.words = new Words(byId("control-words"));
    this.reading = null;
  }

  draw(reading, struck) {
    this.reading = reading;
    byId("control").hidden = reading === null;
    if (reading) this.words.draw(reading.words, reading.pieces, struck);
  }

  /** Show what the word `i` of the other sentence attends to here. `weights`: of a reading, those
   *  of the head that is shown. */
  show(i, other, weights) {
    if (!this.reading) return;
    const { words } = this.reading;
    const at = counterpart(other.words, i, words);
    const row = at < 0 ? null : weights(this.reading)[at];
    this.words.show(at, row);
    byId("control-said").textContent = sentence(i, at, row, words, other.words, weights(other)[i]);
  }
}

function sentence(i, at, row, words, others, otherRow) {
  const word = quoted(others[i]);
  if (at < 0) return say("controlNone", { word });
  const [best] = byWeight(row);
  const said = { word, first: quoted(words[best]), weight: share(row[best] ?? 0) };
  const wanted = target(others, otherRow, i);
  if (wanted === null) return say("attends", said);
  const found = counterpart(others, wanted, words);
  if (found < 0) return say("controlOther", { ...said, target: quoted(others[wanted]) });
  const here = share(row[found] ?? 0);
  const there = share(otherRow[wanted] ?? 0);
  if (found === best) return say("controlStays", { ...said, there });
  return say("controlSame", { ...said, target: quoted(others[wanted]), here, there });
}
