// A waterfall: its bars, each of which begins where the one before it ends, and its numbers in a table below it.
import { el } from "./dom.js";
import { isSum, reasonsAddingUp, rounded, roundedTo } from "./numbers.js";

/** A bar for each of these values, in one room that holds them all, zero included. colours: a style for each bar, where
 *  bars have colours of their own. */
export function bars(values, colours = []) {
  const ends = values.reduce((all, value) => [...all, all.at(-1) + value], [0]);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const share = (value) => (100 * (value - least)) / (most - least || 1);
  return values.map((value, place) => {
    const [from, to] = [ends[place], ends[place + 1]].map(share);
    const style = { "inset-inline-start": `${Math.min(from, to)}%`, width: `${Math.abs(to - from)}%` };
    const fill = el("span", { class: value < 0 ? "bar-fill less" : "bar-fill", style: { ...style, ...colours[place] } });
    return el("span", { class: "bar-room", "aria-hidden": "true" }, fill);
  });
}

// Sums of the same numbers in another order differ by less.
const SAME = 3e-5;

const sum = (numbers) => numbers.reduce((all, value) => all + value, 0);

/** How the numbers of one score are shown: a number that several of its lists have is rounded once, in the first of
 *  them, and each list adds up to its total as it is shown. */
export class ShownNumbers {
  // [value, as it is shown] of each number so far.
  #seen = [];

  /** A number by itself. */
  one(value) {
    return this.#among([value], [...this.#seen])[0] ?? this.#remember([value], [rounded(value)])[0];
  }

  /** Values of which some may be in another list, so rounded that they add up to their total. same: whether a value is
   *  the same in all scores, such as the average item, so that it is rounded by itself if others make up for that. */
  addingUp(values, total, same = () => false) {
    const before = this.#among(values, [...this.#seen]);
    // A total of what was shown before is that of the numbers that one saw.
    if (!before.includes(null) && isSum(values, total)) this.#remember([total], [rounded(sum(before))]);
    const hasOthers = before.some((shown, place) => shown === null && !same(place));
    const known = before.map((shown, place) => shown ?? (hasOthers && same(place) ? rounded(values[place]) : null));
    const shown = isSum(values, total) ? this.#filled(values, known, this.one(total)) : values.map((value, place) => known[place] ?? rounded(value));
    return this.#remember(values, shown);
  }

  /** The values of reasons, which are shown first, and without this page too: in the box and on a terminal. */
  reasons(reasons, score) {
    this.one(score);
    return this.#remember(reasons.map((reason) => reason.value), reasonsAddingUp(reasons, score));
  }

  /** How each value was shown before, null for one that was not. free: what is taken of what was seen. */
  #among(values, free) {
    return values.map((value) => {
      const near = free.filter(([other]) => Math.abs(other - value) < SAME);
      near.sort(([one], [other]) => Math.abs(one - value) - Math.abs(other - value));
      if (!near.length) return null;
      free.splice(free.indexOf(near[0]), 1);
      return near[0][1];
    });
  }

  /** What is known, and the others so rounded that all add up to the total. */
  #filled(values, known, total) {
    const others = values.filter((_, place) => known[place] === null);
    const made = roundedTo(others, total - sum(known.filter((shown) => shown !== null)));
    const shown = known.map((value) => value ?? made.shift());
    // Where nothing was left to be rounded, the largest one makes up for what is missing.
    const missing = rounded(total - sum(shown));
    const largest = values.map(Math.abs).indexOf(Math.max(...values.map(Math.abs)));
    return missing ? shown.with(largest, rounded(shown[largest] + missing)) : shown;
  }

  #remember(values, shown) {
    const before = this.#among(values, [...this.#seen]);
    for (const [place, value] of values.entries()) if (before[place] === null) this.#seen.push([value, shown[place]]);
    return shown;
  }
}
