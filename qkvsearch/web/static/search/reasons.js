// Why one hit has its score: reasons in words, what each head adds, and a table word by word.
import { brief, el, owned } from "../dom.js";
import { colour, contributions, encoders, family, labelled, named } from "../heads.js";
import { ShownNumbers, bars } from "../waterfall.js";
import { count, knows, listedAs, number, say, signed } from "../words.js";
import { translated } from "./translated.js";

/** The panel: reasons as a waterfall, and further reasons one step away. hit: of /explain, with `reasons` and `map`;
 *  gone: asks for a promise of its `smallest`, or null where nothing is to be gone. */
export function explanation(hit, gone) {
  const numbers = new ShownNumbers();
  return el("div", { class: "explanation" }, inWords(hit, numbers), further(hit, numbers, gone));
}

/** What heads add, and the table of words: made when somebody opens them. */
function further(hit, numbers, gone) {
  const made = el("details", { class: "further" }, el("summary", {}, say("further")));
  const fill = () => {
    const without = el("div", { class: "without" });
    gone()?.then((found) => found && without.replaceChildren(goneWithout(found)));
    made.append(without, byHead(hit, numbers), wordByWord(hit, numbers));
  };
  made.addEventListener("toggle", fill, { once: true });
  return made;
}

/** Without which words the hit would not be listed. smallest: as the API has it. */
function goneWithout({ words }) {
  if (!words.length) return el("p", { class: "quiet" }, say("nothingGone"));
  const [before, after] = say("gone").split("{words}");
  const named = listedAs(words, (word) => el("b", {}, owned(word, 80)));
  return el("p", { class: "gone", "data-smallest": JSON.stringify(words) }, before, ...named, after);
}

const figure = (value, shown = signed(value)) => el("td", { class: "number", "data-value": value }, shown);

function sum(hit) {
  const said = say("sum", { score: number(hit.score, 3) });
  return el("tfoot", {}, el("tr", {}, el("th", { scope: "row" }, say("score")), el("td"), el("td", { class: "number sum", "data-value": hit.score }, said)));
}

/** A line of a waterfall. shown: the value as it is rounded. */
const line = (label, bar, value, shown) =>
  el("tr", {}, el("th", { scope: "row" }, label), el("td", { class: "adds" }, bar), figure(value, signed(shown)));

/** A waterfall of labels and values, and how these are shown, which adds up to the hit's score. colours: as `bars` has them. */
function waterfall(caption, labels, values, shown, hit, colours) {
  const drawn = bars(values, colours);
  const body = labels.map((label, place) => line(label, drawn[place], values[place], shown[place]));
  return el("table", { class: "waterfall" }, caption, el("tbody", {}, body), sum(hit));
}

const hidden = (caption) => el("caption", { class: "hidden-visually" }, caption);
const heading = (caption) => el("caption", {}, caption);

function inWords(hit, numbers) {
  const labels = hit.reasons.map((reason) => label(reason.text));
  const values = hit.reasons.map((reason) => reason.value);
  return waterfall(hidden(say("reasons")), labels, values, numbers.reasons(hit.reasons, hit.score), hit);
}

/** A word, and behind it in small letters what of it matched: how much each adds is in the table of words. */
function label(reason) {
  const place = reason.lastIndexOf(": ");
  const kinds = reason.slice(place + 2).split(", ").map((kind) => kind.replace(/ [+-][\d.]+$/, ""));
  if (place < 0 || !kinds.every((kind) => knows(`r_${kind}`))) return owned(translated(reason, say, knows), 160);
  // Behind the word of the query, the words of the item that it is paired with.
  const [word, ...pairs] = reason.slice(0, place).split(", ");
  const paired = pairs.map((pair) => say("inItem", { words: brief(pair, 40) }));
  const said = [...paired, ...kinds.map((kind) => say(`r_${kind}`))].join(say("comma"));
  return [owned(word, 120), " ", el("span", { class: "quiet" }, said)];
}

/** By head, each with its colour. */
function byHead(hit, numbers) {
  const found = contributions(hit);
  const values = found.map(([, value]) => value);
  const shown = numbers.addingUp(values, hit.score);
  const each = encoders(hit);
  return el(
    "div",
    {},
    waterfall(heading(say("byHead")), found.map(([head]) => labelled(head)), values, shown, hit, found.map(([head]) => colour(head))),
    each.length > 1 ? byEncoder(each, numbers) : null,
  );
}

/** What the encoders add that the table of heads has as one meaning, as its parts. */
function byEncoder(each, numbers) {
  const values = each.map(([, value]) => value);
  const shown = numbers.addingUp(values, total(values));
  const drawn = bars(values, each.map(([head]) => colour(head)));
  const rows = each.map(([head, value], place) => line(labelled(head), drawn[place], value, shown[place]));
  return el("details", { class: "encoders" }, el("summary", {}, say("byEncoder")), el("table", { class: "waterfall" }, el("tbody", {}, rows)));
}

function wordByWord(hit, numbers) {
  const holder = el("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": say("map") });
  const pick = (head) => {
    holder.replaceChildren(wordTable(hit, head, numbers));
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

/** What one head, or all encoders as one, or of all added up. */
function ofHead(map, head) {
  const places = map.heads.map((_, place) => place).filter((place) => !head || family(map.heads[place]) === head);
  const add = (values) => places.reduce((total, place) => total + values[place], 0);
  const sized = map.values[0] ?? [];
  const cells = sized.map((row, i) => row.map((_, j) => places.reduce((total, place) => total + map.values[place][i][j], 0)));
  return { cells, constant: add(map.constant), other: add(map.other) };
}

const total = (values) => values.reduce((a, b) => a + b, 0);

// A token that an encoder adds, such as [SEP].
const ADDED = /^(\[[A-Z]+\]|<\/?\w+>)$/;

/** The map with all tokens that encoders add, which have one name here, as one word of the query and one of the item. */
function joined(map) {
  const [query, keys] = [map.query, map.keys].map(placesOf);
  const first = (words, places) => places.map(([place]) => words[place]);
  // The last row and the last column may be of further words, which have no name.
  const all = (places, words, length) => (length > words.length ? [...places, [words.length]] : places);
  const cell = (head, those, these) => total(those.flatMap((i) => these.map((j) => head[i][j])));
  const values = map.values.map((head) => {
    const [across, down] = [all(query, map.query, head.length), all(keys, map.keys, head[0]?.length ?? 0)];
    return across.map((those) => down.map((these) => cell(head, those, these)));
  });
  return { ...map, query: first(map.query, query), keys: first(map.keys, keys), values };
}

/** The places of each word; tokens that encoders add are at the place of the first of them. */
function placesOf(words) {
  const places = words.map((_, place) => [place]);
  const [first, ...others] = words.flatMap((word, place) => (ADDED.test(word) ? [place] : []));
  if (first !== undefined) places[first].push(...others);
  return places.filter((_, place) => !others.includes(place));
}

// The words of an item that have a row of their own.
const MOST_ROWS = 10;

/** The words of the item that add or take most, the largest first, and how many others there are, which are the last
 *  of the cells then. cells: a column for each word of the query. */
function largest(keys, nCut, cells) {
  const size = (j) => Math.abs(total(cells.map((column) => column[j])));
  const places = keys.map((_, j) => j).sort((one, other) => size(other) - size(one));
  // A single other one takes no more room than a row that stands for it.
  const n = nCut || places.length > MOST_ROWS + 1 ? MOST_ROWS : places.length;
  const [first, others] = [places.slice(0, n), places.slice(n)];
  const nOthers = others.length + nCut;
  const rest = (column) => (nOthers ? [total(others.map((j) => column[j])) + (column[keys.length] ?? 0)] : []);
  return { keys: first.map((j) => keys[j]), nOthers, cells: cells.map((column) => [...first.map((j) => column[j]), ...rest(column)]) };
}

function wordTable({ map: every, heads, score }, head, numbers) {
  const map = joined(every);
  const { cells: all, constant, other } = ofHead(map, head);
  const { keys, nOthers, cells } = largest(map.keys, map.cut.keys, all);
  const rest = (words, n) => (n ? [...words, say("otherWords", { n: count(n) })] : words);
  const query = rest(map.query, map.cut.query);
  const whole = head ? total(Object.keys(heads).filter((one) => family(one) === head).map((one) => heads[one])) : score;
  const across = { scope: "row", colspan: query.length + 1 };
  // Where the table is scrolled, its words stay in sight.
  const acrossSays = (label) => el("th", across, el("span", { class: "stays" }, label));
  const beside = (label, value, shown) => el("tr", {}, acrossSays(label), figure(value, signed(shown)));
  const sums = cells.map(total);
  // As they are shown, the words of the query and what is of no word add up to the score, and the words of the
  // item in each column to its sum. The constant is the same in every hit.
  const shownSums = numbers.addingUp([...sums, other, constant], whole, (place) => place > sums.length);
  const [inOther, inConstant] = shownSums.splice(sums.length);
  const shownCells = cells.map((column) => roundedColumn(column, numbers));
  const foot = [
    query.length ? sumRow(say("total"), [...sums, total(sums)], [...shownSums, total(shownSums)]) : null,
    other || inOther ? beside(say("otherReasons"), other, inOther) : null,
    beside(say("constant"), constant, inConstant),
    el(
      "tr",
      { class: "sums" },
      acrossSays(head ? named(head) : say("score")),
      figure(whole, say("sum", { score: number(numbers.one(whole), 3) })),
    ),
  ];
  const words = query.length ? grid(query, rest(keys, nOthers), cells, shownCells) : [el("caption", {}, say("noWords"))];
  return el("table", { class: "heat" }, words, el("tfoot", {}, foot));
}

/** A column so rounded that it adds up to its sum as that is shown; empty cells stay empty. */
function roundedColumn(column, numbers) {
  const filled = column.filter((value) => value);
  const shown = numbers.addingUp(filled, total(filled));
  return column.map((value) => (value ? shown.shift() : 0));
}

const sumRow = (label, values, shown) =>
  el("tr", { class: "sums" }, el("th", { scope: "row" }, label), values.map((value, place) => figure(value, signed(shown[place]))));

/** A word, or what a token that an encoder adds, such as [SEP], stands for. It is one part of the reason "overall
 *  meaning", which has the words without a meaning of their own as well. */
const plain = (word) => (ADDED.test(word) ? say("wholeText") : owned(word, 40));

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
