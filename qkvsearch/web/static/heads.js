// The heads of a score: what they are called, their colours, and a score as a bar of them.
import { el, text } from "./dom.js";
import { addingUp, facts, number, say, share, signed } from "./words.js";

// Every head that the server knows, by its name: its title, its place in lists and its colours.
const known = new Map(facts.heads.map((head, place) => [head.name, { ...head, place }]));

// What requests and this page call all encoders together.
const MEANING = "semantic";

/** The head that stands for a head: all encoders, which have no titles of their own, are one meaning. */
export const family = (head) => (known.get(head)?.title ? head : MEANING);

/** What a head is called to a person; an encoder by its name. */
export const named = (head) => known.get(head)?.title || say("headMeaning", { name: text(head) });

/** Its colour, as a style. The colour of a head that the server does not know is that of the style sheet. */
export function colour(head) {
  const { colours } = known.get(head) ?? {};
  return { background: colours ? `light-dark(${colours.join(", ")})` : "var(--other-head)" };
}

// Heads of other pages' questions, such as neighbours, come first.
const place = (head) => known.get(head)?.place ?? -1;

/** The heads that can answer alone, all encoders as one, those of a user last. user: for whom is asked, "" for
 *  nobody. */
export function choices(user) {
  const heads = facts.heads
    .filter((head) => head.isChoice && (user || !head.needsUser))
    .sort((one, other) => one.needsUser - other.needsUser);
  return [...new Set(heads.map((head) => family(head.name)))];
}

const largestFirst = (pairs) =>
  pairs.filter(([, value]) => value).sort((one, other) => Math.abs(other[1]) - Math.abs(one[1]));

/** [head, what it adds] of a hit, the largest first, without what adds nothing; all encoders as one. */
export function contributions(hit) {
  const sums = new Map();
  for (const [head, value] of Object.entries(hit.heads ?? {})) sums.set(family(head), (sums.get(family(head)) ?? 0) + value);
  return largestFirst([...sums]);
}

/** The same of the encoders, each by itself. */
export const encoders = (hit) => largestFirst(Object.entries(hit.heads ?? {}).filter(([head]) => family(head) !== head));

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
  const told = new Map(found.map(([head], i) => [head, `${named(head)} ${signed(shown[i])}`]));
  const whole = left + right || 1;
  const side = (name, most, sign) => {
    const pieces = found.filter(([, value]) => value * sign > 0).map(([head, value]) => {
      const width = `${(100 * Math.abs(value)) / (most || 1)}%`;
      return el("i", { class: "of-head", title: told.get(head), style: { width, ...colour(head) } });
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
export const labelled = (head) => el("span", { class: "head-name" }, el("i", { class: "of-head", style: colour(head) }), named(head));

/** All heads that some hit has anything of. */
export function legend(hits) {
  const there = new Set(hits.flatMap((hit) => contributions(hit).map(([head]) => head)));
  return [...there].sort((a, b) => place(a) - place(b)).map(labelled);
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
