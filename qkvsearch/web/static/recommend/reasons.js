// What a score is made of: bars of what each item of the history adds, which add up to it.
import { el, owned } from "../dom.js";
import { count, number, say, signed } from "../words.js";

// Parts of a score that are of no item, by what the API calls them.
const WHOLE = { popularity: "partDamping", diversity: "partDiversity", constant: "partConstant" };
// float32's share, as the tests of the engine allow it.
const SHARE = 1e-4;

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

/** A line: what, a bar, and the number; items can be left out. */
function line(part, most, leaveOut) {
  const value = el("span", { class: "value" }, signed(part.contribution));
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

/** The items that count most, and in one line what all else adds. most: what the longest bar is. */
export function inShort(because, most, leaveOut) {
  const items = because.filter((part) => part.id !== null);
  const rest = because.filter((part) => part.id === null);
  const others = rest.map((part) => `${nameOf(part)} ${signed(part.contribution)}`).join(" · ");
  return [
    el("ul", { class: "reasons" }, items.map((part) => line(part, most, leaveOut))),
    el("p", { class: "quiet rest" }, others || "\u00a0"),
  ];
}

/** All of them, in words first, and that they add up to the score. */
export function inFull(hit, leaveOut) {
  const parts = hit.because;
  const most = Math.max(...parts.map((part) => Math.abs(part.contribution)), 0);
  const sum = parts.reduce((total, part) => total + part.contribution, 0);
  const size = parts.reduce((total, part) => total + Math.abs(part.contribution), 0);
  const same = Math.abs(sum - hit.score) <= SHARE * Math.max(1, size);
  const values = { n: count(parts.length), sum: number(sum, 4), score: number(hit.score, 4) };
  return [
    el("h3", {}, say("inWords")),
    el(
      "ul",
      { class: "words", lang: "en" },
      (hit.reasons ?? []).map((reason) =>
        el("li", {}, owned(reason.text, 400), el("span", { class: "value" }, ` ${signed(reason.value)}`)),
      ),
    ),
    el("h3", {}, say("allParts", { n: count(parts.length) })),
    el(
      "ul",
      { class: "reasons every", tabindex: "0", role: "list", "aria-label": say("allParts", { n: count(parts.length) }) },
      parts.map((part) => line(part, most, leaveOut)),
    ),
    el("p", { class: "sum", "data-sum": sum, "data-score": hit.score }, say(same ? "addsUp" : "addsNot", values)),
  ];
}

/** What the longest bar of these hits stands for. */
export const longest = (hits) =>
  Math.max(0, ...hits.flatMap((hit) => hit.because.map((part) => (part.id === null ? 0 : Math.abs(part.contribution)))));
