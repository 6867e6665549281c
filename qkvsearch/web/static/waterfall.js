// The bars of a waterfall: each begins where the one before it ends.
import { el } from "./dom.js";

/** A bar for each of these values, in one room that holds them all, zero included. */
export function bars(values) {
  const ends = values.reduce((all, value) => [...all, all.at(-1) + value], [0]);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const share = (value) => (100 * (value - least)) / (most - least || 1);
  return values.map((value, place) => {
    const [from, to] = [ends[place], ends[place + 1]].map(share);
    const style = { "inset-inline-start": `${Math.min(from, to)}%`, width: `${Math.abs(to - from)}%` };
    const fill = el("span", { class: value < 0 ? "bar-fill less" : "bar-fill", style });
    return el("span", { class: "bar-room", "aria-hidden": "true" }, fill);
  });
}
