// What a score is made of: a waterfall of what each item of the history adds, which ends in it.
import { el, owned } from "../dom.js";
import { ShownNumbers, bars } from "../waterfall.js";
import { count, isSum, listedAs, number, say, signed } from "../words.js";
import { around } from "./groups.js";

// Parts of a score that are of no item, by what the API calls them.
const WHOLE = { popularity: "partDamping", diversity: "partDiversity", constant: "partConstant" };
const of = (parts) => parts.map((part) => part.contribution);

/** What an item of the history says for a hit. The title keeps its own direction. */
const saidBy = (part) =>
  around(say(`how_${part.how}`, { did: say(`did_${part.did ?? "liked"}`) }), "{title}", [el("b", {}, owned(part.title, 120))]);

/** What a part that is of no item is called. */
function nameOf(part) {
  if (part.items) return say("partOthers", { n: count(part.items) });
  return WHOLE[part.title] ? say(WHOLE[part.title]) : part.title;
}

/** A line: what, a bar, and the number as it is shown. An item can be left out. */
function line(part, shown, bar, leaveOut) {
  const value = el("span", { class: "value", "data-value": part.contribution }, signed(shown));
  if (part.id === null) {
    return el("li", { class: "reason" }, el("span", { class: "what" }, nameOf(part)), bar, value);
  }
  const button = el(
    "button",
    { type: "button", class: "plain what", title: say("leaveOut"), onclick: () => leaveOut(String(part.id), part.title) },
    saidBy(part),
  );
  return el("li", { class: "reason", "data-reason": part.id }, button, bar, value);
}

/** Items first, the largest first, then the others and what is of no item. */
const inOrder = (parts) => [...parts.filter((part) => part.id !== null), ...parts.filter((part) => part.id === null)];

/** What there is to say of an item that is only popular. */
const asPopular = (hit) => [{ id: null, title: say("mostPopular"), contribution: hit.score }];

/** The parts of a hit, one below the other, and the score that they add up to. numbers: how those of other lists of
 *  this score are shown. */
export function waterfall(hit, leaveOut, numbers = new ShownNumbers(), named = {}) {
  const parts = hit.because.length ? inOrder(hit.because) : asPopular(hit);
  const shown = numbers.addingUp(of(parts), hit.score);
  const drawn = bars(of(parts));
  const lines = parts.map((part, place) => line(part, shown[place], drawn[place], leaveOut));
  const sum = el(
    "li",
    { class: "reason total", "data-sum": of(parts).reduce((all, value) => all + value, 0), "data-score": hit.score },
    el("span", { class: "what" }, say(isSum(of(parts), hit.score) ? "score" : "scoreNot")),
    el("span", { class: "value" }, `= ${number(hit.score, 3)}`),
  );
  return el("ul", { class: "reasons", ...named }, lines, sum);
}

/** Every part, where the waterfall has the small ones as others. */
export function everyPart(hit, leaveOut, numbers) {
  const name = say("allParts", { n: count(hit.because.length) });
  const list = waterfall(hit, leaveOut, numbers, { class: "reasons every", tabindex: "0", role: "list", "aria-label": name });
  return el("details", {}, el("summary", {}, name), list);
}

/** Without what the hit would not be listed, and a button that shows the list without it. */
export function gone(hit, leaveOutAll) {
  const ids = hit.smallest?.items ?? [];
  if (!ids.length) return hit.because.length ? el("p", { class: "quiet" }, say("nothingGone")) : null;
  const titles = new Map(hit.because.map((part) => [String(part.id), part.title]));
  const items = ids.map((id) => [String(id), titles.get(String(id)) ?? String(id)]);
  const named = listedAs(ids, (id) => owned(titles.get(id) ?? id, 120));
  return el(
    "p",
    { class: "gone", "data-smallest": JSON.stringify(ids) },
    ...around(say("gone"), "{titles}", named),
    " ",
    el("button", { type: "button", onclick: () => leaveOutAll(items) }, say("seeWithout")),
  );
}
