// Why one hit has its score: reasons in words, what each head adds, and a table word by word.
import { el, owned } from "../dom.js";
import { contributions, encoders, family, labelled, named } from "../heads.js";
import { addingUp, count, knows, listedAs, number, roundedTo, say, signed } from "../words.js";
import { translated } from "./translated.js";

/** The panel. hit: of /explain, with `reasons` and `map`; gone: a promise of its `smallest`, or null. */
export function explanation(hit, gone) {
  const without = el("div", { class: "without" });
  gone?.then((found) => found && without.replaceChildren(goneWithout(found)));
  return el(
    "div",
    { class: "explanation" },
    without,
    el("div", { class: "two" }, inWords(hit), byHead(hit)),
    wordByWord(hit),
  );
}

/** Without which words the hit would not be listed. smallest: as the API has it. */
function goneWithout({ words }) {
  if (!words.length) return el("p", { class: "quiet" }, say("nothingGone"));
  const [before, after] = say("gone").split("{words}");
  const named = listedAs(words, (word) => el("b", {}, owned(word, 80)));
  return el("p", { class: "gone", "data-smallest": JSON.stringify(words) }, before, ...named, after);
}

const adding = (value, most) =>
  el("td", { class: "adds", "aria-hidden": "true" }, el("i", {
    class: value < 0 ? "minus" : "plus",
    style: { width: `${(100 * Math.abs(value)) / (most || 1)}%` },
  }));

const figure = (value, shown = signed(value)) => el("td", { class: "number", "data-value": value }, shown);

function sum(hit, what) {
  const said = say("sum", { score: number(hit.score, 3) });
  return el("tfoot", {}, el("tr", {}, el("th", { scope: "row" }, what), el("td"), el("td", { class: "number sum", "data-value": hit.score }, said)));
}

function table(caption, rows, hit, values) {
  const most = Math.max(...values.map(Math.abs), 0);
  const shown = addingUp(values, hit.score);
  const body = rows.map((label, place) =>
    el("tr", {}, el("th", { scope: "row" }, label), adding(values[place], most), figure(values[place], signed(shown[place]))),
  );
  return el("table", { class: "addends" }, el("caption", {}, caption), el("tbody", {}, body), sum(hit, say("score")));
}

function inWords(hit) {
  const rows = hit.reasons.map((reason) => owned(translated(reason.text, say, knows), 160));
  return table(say("reasons"), rows, hit, hit.reasons.map((reason) => reason.value));
}

/** By head, each with its colour. */
function byHead(hit) {
  const found = contributions(hit);
  const heads = table(say("byHead"), found.map(([head]) => labelled(head)), hit, found.map(([, value]) => value));
  const each = encoders(hit);
  return el("div", {}, heads, each.length > 1 ? byEncoder(each) : null);
}

/** What the encoders add that the table of heads has as one meaning, as its parts. */
function byEncoder(each) {
  const most = Math.max(...each.map(([, value]) => Math.abs(value)));
  const sum = each.reduce((all, [, value]) => all + value, 0);
  const shown = roundedTo(each.map(([, value]) => value), sum);
  const rows = each.map(([head, value], place) => el("tr", {}, el("th", { scope: "row" }, labelled(head)), adding(value, most), figure(value, signed(shown[place]))));
  return el("details", { class: "encoders" }, el("summary", {}, say("byEncoder")), el("table", { class: "parts" }, el("tbody", {}, rows)));
}

function wordByWord(hit) {
  const holder = el("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": say("map") });
  const pick = (head) => {
    holder.replaceChildren(wordTable(hit, head));
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === head));
  };
  const choice = (head, label) => el("button", { type: "button", value: head, onclick: () => pick(head) }, label);
  const heads = [...new Set(hit.map.heads.filter((head) => head in (hit.heads ?? {})).map(family))];
  const buttons = [choice("", say("allHeads")), ...heads.map((head) => choice(head, labelled(head)))];
  pick("");
  return el(
    "div",
    { class: "word-map" },
    el("h3", {}, say("map")),
    el("p", { class: "quiet" }, say("mapSays")),
    heads.length > 1 ? el("div", { class: "heads", role: "group", "aria-label": say("mapOf") }, buttons) : null,
    holder,
    el("p", { class: "quiet" }, say("constantSays")),
  );
}

/** Numbers of one head, or of all encoders as one, or of all added up. */
function numbers(map, head) {
  const places = map.heads.map((_, place) => place).filter((place) => !head || family(map.heads[place]) === head);
  const add = (values) => places.reduce((total, place) => total + values[place], 0);
  const sized = map.values[0] ?? [];
  const cells = sized.map((row, i) => row.map((_, j) => places.reduce((total, place) => total + map.values[place][i][j], 0)));
  return { cells, constant: add(map.constant), other: add(map.other) };
}

const total = (values) => values.reduce((a, b) => a + b, 0);

function wordTable({ map, heads, score }, head) {
  const { cells, constant, other } = numbers(map, head);
  const rest = (words, n) => (n ? [...words, say("otherWords", { n: count(n) })] : words);
  const query = rest(map.query, map.cut.query);
  const whole = head ? total(Object.keys(heads).filter((one) => family(one) === head).map((one) => heads[one])) : score;
  const across = { scope: "row", colspan: query.length + 1 };
  const beside = (label, value, shown) => el("tr", {}, el("th", across, label), figure(value, signed(shown)));
  const sums = cells.map(total);
  // As they are shown, the words of the query and what is of no word add up to the score, and the words of the
  // item in each column to its sum.
  const shownSums = addingUp([...sums, other, constant], whole);
  const [inOther, inConstant] = shownSums.splice(sums.length);
  const shownCells = cells.map((column, i) => roundedColumn(column, shownSums[i]));
  const foot = [
    query.length ? sumRow(say("total"), [...sums, total(sums)], [...shownSums, total(shownSums)]) : null,
    other || inOther ? beside(say("otherReasons"), other, inOther) : null,
    beside(say("constant"), constant, inConstant),
    el(
      "tr",
      { class: "sums" },
      el("th", across, head ? named(head) : say("score")),
      figure(whole, say("sum", { score: number(whole, 3) })),
    ),
  ];
  const words = query.length ? grid(query, rest(map.keys, map.cut.keys), cells, shownCells) : [el("caption", {}, say("noWords"))];
  return el("table", { class: "heat" }, words, el("tfoot", {}, foot));
}

/** A column rounded so that it adds up to its sum as that is shown; empty cells stay empty. */
function roundedColumn(column, shownSum) {
  const filled = column.filter((value) => value);
  if (!filled.length) return roundedTo(column, shownSum);
  const rounded = roundedTo(filled, shownSum);
  return column.map((value) => (value ? rounded.shift() : 0));
}

const sumRow = (label, values, shown) =>
  el("tr", { class: "sums" }, el("th", { scope: "row" }, label), values.map((value, place) => figure(value, signed(shown[place]))));

/** A word, or what a token that an encoder adds, such as [SEP], stands for. */
const plain = (word) => (/^(\[[A-Z]+\]|<\/?\w+>)$/.test(word) ? say("r_overall meaning") : owned(word, 40));

/** The caption, the query's words, and a row for each word of the item. A row ends in the sum of its cells as they
 *  are shown. cells, shown: a column for each word of the query. */
function grid(query, keys, cells, shown) {
  const most = Math.max(...cells.flat().map(Math.abs), 1e-9);
  const heat = (value, rounded) =>
    el(
      "td",
      {
        class: `number ${value < 0 ? "takes" : "gives"}`,
        "data-value": value,
        style: { "--heat": `${Math.round((100 * Math.abs(value)) / most)}%` },
      },
      value || rounded ? signed(rounded) : "",
    );
  const corner = el("td", { class: "quiet" }, `${say("item")} \\ ${say("query")}`);
  const top = query.map((word) => el("th", { scope: "col" }, plain(word)));
  const rows = keys.map((word, j) => {
    const values = cells.map((row) => row[j]);
    const rounded = shown.map((column) => column[j]);
    const each = values.map((value, i) => heat(value, rounded[i]));
    return el("tr", {}, el("th", { scope: "row" }, plain(word)), each, figure(total(values), signed(total(rounded))));
  });
  return [
    el("caption", { class: "hidden-visually" }, say("mapSays")),
    el("thead", {}, el("tr", {}, corner, top, el("th", { scope: "col", class: "number" }, say("total")))),
    el("tbody", {}, rows),
  ];
}
