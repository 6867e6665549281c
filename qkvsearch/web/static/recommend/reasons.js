// What a score is made of: bars of what each item of the history adds, which add up to it.
import { el, owned } from "../dom.js";
import { addingUp, count, isSum, listedAs, number, say, signed } from "../words.js";

// Parts of a score that are of no item, by what the API calls them.
const WHOLE = { popularity: "partDamping", diversity: "partDiversity", constant: "partConstant" };
const of = (parts) => parts.map((part) => part.contribution);
const total = (values) => values.reduce((a, b) => a + b, 0);

/** A sentence with a title in it, as the nodes of an element; the title keeps its own direction. */
function around(sentence, title) {
  const [before, after] = sentence.split("{title}");
  return [el("span", { class: "quiet" }, before), owned(title, 120), el("span", { class: "quiet" }, after ?? "")];
}

/** What an item of the history says for a hit. */
const saidBy = (part) => around(say(`how_${part.how}`, { did: say(`did_${part.did ?? "liked"}`) }), part.title);

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
  const value = el("span", { class: "value", "data-value": part.contribution }, signed(shown));
  if (part.id === null) {
    return el("li", { class: "reason" }, el("span", { class: "what" }, nameOf(part)), bar(part.contribution, most), value);
  }
  const button = el(
    "button",
    { type: "button", class: "plain what", title: say("leaveOut"), onclick: () => leaveOut(String(part.id), part.title) },
    saidBy(part),
  );
  return el("li", { class: "reason", "data-reason": part.id }, button, bar(part.contribution, most), value);
}

/** The items that count most, a line for all others, and the score that they add up to. most: what the longest bar
 *  is. */
export function inShort(hit, most, leaveOut) {
  const parts = [...hit.because.filter((part) => part.id !== null), ...hit.because.filter((part) => part.id === null)];
  const shown = addingUp(of(parts), hit.score);
  const sum = parts.length ? `${say("score")} = ${number(hit.score, 3)}` : "\u00a0";
  return [
    el("ul", { class: "reasons" }, parts.map((part, place) => line(part, shown[place], most, leaveOut))),
    el("p", { class: "quiet rest" }, sum),
  ];
}

// The sentences of the engine with names in them, and what they are here.
const SENTENCES = [
  [/^people who (?<did>.+?) (?<title>.+) also \k<did> this$/, "how_people"],
  [/^people who (?<did>.+?) (?<title>.+) \k<did> this less$/, "how_less"],
  [/^people who (?<did>.+?) (?<title>.+) \k<did> this later$/, "how_later"],
  [/^people who (?<did>.+?) (?<title>.+) \k<did> what reads like this$/, "how_new"],
  [/^because of (?<title>.+)$/, "how_because"],
  [/^similar meaning to (?<title>.+)$/, "how_similar"],
  [/^from (?<n>[\d,]+) of (?<kind>.+), such as (?<title>.+)$/, "fromKind"],
  [/^from (?<n>[\d,]+) other items, such as (?<title>.+)$/, "fromOthers"],
  [/^from (?<n>[\d,]+) items, such as (?<title>.+)$/, "fromItems"],
  [/^(?<n>[\d,]+) others$/, "others"],
];
const WHOLE_SENTENCES = {
  "for how popular it is": "partDamping",
  "for the sake of diversity": "partDiversity",
  "whatever the history is": "partConstant",
  "most popular: number of users": "mostPopular",
};

/** What the engine says in English, in the reader's language, as nodes. */
function translated(text) {
  if (text in WHOLE_SENTENCES) return [say(WHOLE_SENTENCES[text])];
  for (const [pattern, name] of SENTENCES) {
    const found = pattern.exec(text);
    if (!found) continue;
    const { title, did, kind, n } = found.groups;
    const sentence = say(name, { n, kind, did: did && say(`did_${did}`) });
    return title === undefined ? [sentence] : around(sentence, title);
  }
  return [owned(text, 400)];
}

/** The reasons in words, and below them the score. */
function inWords(hit) {
  const reasons = hit.reasons ?? [];
  const shown = addingUp(reasons.map((reason) => reason.value), hit.score);
  const value = (said) => el("span", { class: "value" }, ` ${said}`);
  const lines = reasons.map((reason, place) => el("li", {}, translated(reason.text), value(signed(shown[place]))));
  const sum = el("li", {}, say("score"), value(`= ${number(hit.score, 3)}`));
  return el("ul", { class: "words" }, ...lines, lines.length ? sum : null);
}

/** Without what the hit would not be listed, and a button that shows the list without it. */
function gone(hit, leaveOutAll) {
  const ids = hit.smallest?.items ?? [];
  if (!ids.length) return hit.because.length ? el("p", { class: "quiet" }, say("nothingGone")) : null;
  const titles = new Map(hit.because.map((part) => [String(part.id), part.title]));
  const items = ids.map((id) => [String(id), titles.get(String(id)) ?? String(id)]);
  const [before, after] = say("gone").split("{titles}");
  const named = listedAs(ids, (id) => owned(titles.get(id) ?? id, 120));
  return el(
    "p",
    { class: "gone", "data-smallest": JSON.stringify(ids) },
    before,
    ...named,
    after,
    " ",
    el("button", { type: "button", onclick: () => leaveOutAll(items) }, say("seeWithout")),
  );
}

/** All of them, in words first, and that they add up to the score. */
export function inFull(hit, leaveOut, leaveOutAll) {
  const parts = hit.because;
  const most = Math.max(...of(parts).map(Math.abs), 0);
  const sum = total(of(parts));
  const shown = addingUp(of(parts), hit.score);
  const values = { n: count(parts.length), sum: number(total(shown), 3), score: number(hit.score, 3) };
  return [
    el("h3", {}, say("inWords")),
    inWords(hit),
    gone(hit, leaveOutAll),
    el("h3", {}, say("allParts", { n: count(parts.length) })),
    el(
      "ul",
      { class: "reasons every", tabindex: "0", role: "list", "aria-label": say("allParts", { n: count(parts.length) }) },
      parts.map((part, place) => line(part, shown[place], most, leaveOut)),
    ),
    el("p", { class: "sum", "data-sum": sum, "data-score": hit.score }, say(isSum(of(parts), hit.score) ? "addsUp" : "addsNot", values)),
  ].filter((part) => part !== null);
}

/** What the longest bar of these hits stands for. */
export const longest = (hits) =>
  Math.max(0, ...hits.flatMap((hit) => of(hit.because).map(Math.abs)));
