// What a score is made of: bars of what each item of the history adds, which add up to it.
import { el, owned } from "../dom.js";
import { addingUp, count, isSum, number, say, signed } from "../words.js";

// Parts of a score that are of no item, by what the API calls them.
const WHOLE = { popularity: "partDamping", diversity: "partDiversity", constant: "partConstant" };
const of = (parts) => parts.map((part) => part.contribution);
const total = (values) => values.reduce((a, b) => a + b, 0);

/** What one part is called. */
function nameOf(part) {
  if (part.items) return say("partOthers", { n: count(part.items) });
  return part.id === null && WHOLE[part.title] ? say(WHOLE[part.title]) : part.title;
}

function bar(value, most) {
  const width = `${most ? Math.min(100, (100 * Math.abs(value)) / most) : 0}%`;
  return el(
    "span",
    { class: "bar-room", "aria-hidden": "true" },
    el("span", { class: value < 0 ? "bar-fill less" : "bar-fill", style: { width } }),
  );
}

/** A line: what, a bar, and the number as it is shown; items can be left out. */
function line(part, shown, most, leaveOut) {
  const value = el("span", { class: "value" }, signed(shown));
  if (part.id === null) {
    return el("li", { class: "reason" }, el("span", { class: "what" }, nameOf(part)), bar(part.contribution, most), value);
  }
  const button = el(
    "button",
    { type: "button", class: "plain what", title: say("leaveOut"), onclick: () => leaveOut(String(part.id), part.title) },
    el("span", { class: "quiet" }, `${say(part.by_removal ? "because" : "together")} `),
    owned(part.title, 120),
  );
  return el("li", { class: "reason", "data-reason": part.id }, button, bar(part.contribution, most), value);
}

/** The items that count most, in one line what all else adds, and the score that they add up to. most: what the
 *  longest bar is. */
export function inShort(hit, most, leaveOut) {
  const items = hit.because.filter((part) => part.id !== null);
  const rest = hit.because.filter((part) => part.id === null);
  const shown = addingUp(of([...items, ...rest]), hit.score);
  const others = rest.map((part, place) => `${nameOf(part)} ${signed(shown[items.length + place])}`);
  const sum = hit.because.length ? [`${say("score")} = ${number(hit.score, 3)}`] : [];
  return [
    el("ul", { class: "reasons" }, items.map((part, place) => line(part, shown[place], most, leaveOut))),
    el("p", { class: "quiet rest" }, [...others, ...sum].join(" · ") || "\u00a0"),
  ];
}

/** The reasons in words, and below them the score. */
function inWords(hit) {
  const reasons = hit.reasons ?? [];
  const shown = addingUp(reasons.map((reason) => reason.value), hit.score);
  const value = (said) => el("span", { class: "value" }, ` ${said}`);
  const lines = reasons.map((reason, place) => el("li", {}, owned(reason.text, 400), value(signed(shown[place]))));
  const sum = el("li", { lang: document.documentElement.lang }, say("score"), value(`= ${number(hit.score, 3)}`));
  return el("ul", { class: "words", lang: "en" }, ...lines, lines.length ? sum : null);
}

/** All of them, in words first, and that they add up to the score. */
export function inFull(hit, leaveOut) {
  const parts = hit.because;
  const most = Math.max(...of(parts).map(Math.abs), 0);
  const sum = total(of(parts));
  const shown = addingUp(of(parts), hit.score);
  const values = { n: count(parts.length), sum: number(total(shown), 3), score: number(hit.score, 3) };
  return [
    el("h3", {}, say("inWords")),
    inWords(hit),
    el("h3", {}, say("allParts", { n: count(parts.length) })),
    el(
      "ul",
      { class: "reasons every", tabindex: "0", role: "list", "aria-label": say("allParts", { n: count(parts.length) }) },
      parts.map((part, place) => line(part, shown[place], most, leaveOut)),
    ),
    el("p", { class: "sum", "data-sum": sum, "data-score": hit.score }, say(isSum(of(parts), hit.score) ? "addsUp" : "addsNot", values)),
  ];
}

/** What the longest bar of these hits stands for. */
export const longest = (hits) =>
  Math.max(0, ...hits.flatMap((hit) => hit.because.map((part) => (part.id === null ? 0 : Math.abs(part.contribution)))));
