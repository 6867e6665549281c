// The heads of a score: what they are called, their colours, and a score as a bar of them.
import { el, text } from "./dom.js";
import { addingUp, knows, number, say, share, signed } from "./words.js";

// In this order colours are given, so that a head has the same on every page.
const known = ["lexical", "token", "collaborative", "beginning", "lsa", "contrastive", "static", "minilm", "semantic"];

/** What a head is called to a person. */
export function named(head) {
  return knows(`head_${head}`) ? say(`head_${head}`) : say("headMeaning", { name: text(head) });
}

/** The class that gives it its colour. */
export const colour = (head) => `head-${known.includes(head) ? known.indexOf(head) : known.length}`;

/** [head, what it adds] of a hit, the largest first, without what adds nothing. */
export const contributions = (hit) =>
  Object.entries(hit.heads ?? {})
    .filter(([, value]) => value)
    .sort((one, other) => Math.abs(other[1]) - Math.abs(one[1]));

/** The longest that bars reach on either side of nothing: {left, right}. */
export function reach(hits) {
  const sides = { left: 0, right: 0 };
  for (const hit of hits) {
    const values = contributions(hit).map(([, value]) => value);
    const sum = (sign) => values.filter((v) => v * sign > 0).reduce((a, b) => a + Math.abs(b), 0);
    sides.left = Math.max(sides.left, sum(-1));
    sides.right = Math.max(sides.right, sum(1));
  }
  return sides;
}

/** A score as a bar: what heads add to the right of a line, what they take away to the left. */
export function bar(hit, { left, right }) {
  const found = contributions(hit);
  const shown = addingUp(found.map(([, value]) => value), hit.score);
  const told = new Map(found.map(([head], place) => [head, `${named(head)} ${signed(shown[place])}`]));
  const whole = left + right || 1;
  const side = (name, most, sign) => {
    const pieces = found.filter(([, value]) => value * sign > 0).map(([head, value]) => {
      const width = `${(100 * Math.abs(value)) / (most || 1)}%`;
      return el("i", { class: colour(head), title: told.get(head), style: { width } });
    });
    return el("span", { class: name, style: { width: `${(100 * most) / whole}%` } }, pieces);
  };
  const said = say("barSays", { score: number(hit.score, 3), parts: [...told.values()].join(", ") });
  return el(
    "div",
    { class: "bar-of-heads", role: "img", "aria-label": said },
    side("minus", left, -1),
    side("plus", right, 1),
  );
}

/** A swatch and the name. */
export const labelled = (head) => el("span", { class: "head-name" }, el("i", { class: colour(head) }), named(head));

/** All heads that some hit has anything of. */
export function legend(hits) {
  const there = new Set(hits.flatMap((hit) => contributions(hit).map(([head]) => head)));
  return [...there].sort((a, b) => known.indexOf(a) - known.indexOf(b)).map(labelled);
}

// A smaller share of the weight would be shown as none.
const LEAST = 0.001;

/** Match, score and weight of a hit. */
export function figures(hit) {
  const part = hit.weight < LEAST ? say("tiny", { share: share(LEAST) }) : share(hit.weight);
  const weight = el("span", { class: "quiet weight" }, say("weight", { share: part }));
  const match = hit.match ? el("span", { class: "match" }, say(`match_${hit.match}`)) : null;
  return el("span", { class: "figures" }, match, " ", el("b", {}, number(hit.score, 3)), " ", weight);
}
