// A waterfall: its bars, each of which begins where the one before it ends, and its numbers in a table below it.
import { el } from "./dom.js";
import { addingUp, isSum, roundedTo } from "./numbers.js";

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
const SAME = 1e-4;

/** The numbers rounded so that they add up to the rounded total, and those that are also in a list `above`, which
 *  adds up to the same total, as they are shown there. */
export function addingUpBeside(values, total, above, digits = 3) {
  const shownAbove = addingUp(above, total, digits);
  const free = above.map((_, place) => place);
  const known = values.map((value) => {
    const found = free.findIndex((place) => Math.abs(above[place] - value) < SAME);
    return found < 0 ? null : shownAbove[free.splice(found, 1)[0]];
  });
  const others = values.filter((_, place) => known[place] === null);
  // Nothing could be rounded so that the sum is right.
  if (!others.length && isSum(values, total)) return known;
  const rest = total - known.reduce((all, value) => all + value, 0);
  const rounded = isSum(values, total) ? roundedTo(others, rest, digits) : addingUp(others, rest, digits);
  return known.map((value) => value ?? rounded.shift());
}
