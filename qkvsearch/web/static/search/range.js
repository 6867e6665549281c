// Ranges of numbers and dates, to drag or to type. What is asked for is the server's: LEAST..=MOST.
import { el, owned, text } from "../dom.js";
import { say } from "../words.js";
import { endsOf, headingOf, typedIn } from "./cells.js";

// So many years are boxes to tick; of more one asks for a range.
const MANY = 10;
// How many steps a slider has at most, and what a step may be.
const STEPS = 200;
const ROUND = [1, 2, 5, 10];
const YEAR = /^\d{4}$/;

// Where one is typing: drawing the filters anew would take it away.
const unfinished = new WeakSet();
let later = null;

/** Draw the filters: now, or once the field is left in which one is typing. */
export function onceTyped(draw) {
  later = unfinished.has(document.activeElement) ? draw : null;
  if (!later) draw();
}

/** What a field does in which one types. A number is typed at its `change`; a day, told with each digit of its year,
 *  once the field is left. */
function typing(told) {
  const end = ({ target }) => {
    unfinished.delete(target);
    // Once the next field has the focus.
    setTimeout(() => later && onceTyped(later));
  };
  return {
    oninput: ({ target }) => unfinished.add(target),
    onchange({ target }) {
      // The answer to what is told draws the filters.
      if (target.type === "number") unfinished.delete(target);
      later = null;
      told();
    },
    onkeydown: (event) => event.key === "Enter" && end(event),
    onblur: end,
  };
}

/** A range as the server reads it, with its end in it; "" where both ends are open. */
const value = (least, most) => (least || most ? `${least}..${most && `=${most}`}` : "");

const isRange = (value) => value.includes("..");

/** A smooth step that divides a spread into at most `STEPS`. */
function stepOf(spread, isWhole) {
  const power = 10 ** Math.floor(Math.log10(spread / STEPS));
  const step = ROUND.map((one) => one * power).find((one) => one * STEPS >= spread);
  return isWhole ? Math.max(1, Math.ceil(step)) : step;
}

/** The ends of all values of a facet, as they are stored: [least, most]. */
function extent(counts) {
  const ends = Object.keys(counts).map((value) => value.split(".."));
  const numbers = ends.flatMap(([from, to]) => [Number(from), Number(to ?? from)]);
  return [Math.min(...numbers), Math.max(...numbers)];
}

/** Whether a column is asked for as a range: numbers, and many years. */
function isSlider(column, counts) {
  if (column.shown_as === "number") return true;
  const values = Object.keys(counts);
  return column.shown_as === "date" && values.length > MANY && values.every((value) => YEAR.test(value));
}

/** A chosen "column:value" whose range has its larger end first, with the ends in their order; any other one as it is. */
export function turned(filter, columns) {
  const column = columns.find(({ name, is_ordered: isOrdered }) => isOrdered && filter.startsWith(`${name}:`));
  const ends = column ? endsOf(filter.slice(column.name.length + 1)) : [];
  if (ends.length !== 2 || ends.includes("")) return filter;
  const [first, last] = column.shown_as === "number" ? ends.map(Number) : ends;
  return first > last ? `${column.name}:${value(ends[1], ends[0])}` : filter;
}

/** A heading, and a range with two fields and a slider; null for a column without one. mine: what was chosen of it;
 *  put: told the value in its place, "" for none. */
export function slider(column, counts, mine, put) {
  // A range that was chosen can be changed even where nothing is left in it.
  const hasEnds = Object.keys(counts).length > 0 || (mine.length > 0 && column.least !== null);
  if (!hasEnds || !isSlider(column, counts)) return null;
  // The catalog's own ends: those of a facet are round, and as far as its results reach.
  const [least, most] = column.least === null ? extent(counts) : [column.least, column.most];
  const { size, name } = typedIn(column, most);
  const isWhole = size !== 1 || (Number.isInteger(least) && Number.isInteger(most));
  const now = endsOf(mine[0] ?? "").map((end) => (end === "" ? null : asTyped(Number(end), size)));
  const [from, to] = now.length === 2 ? now : [now[0], now[0]];
  // What was chosen stays within, even where no result is there any more.
  const places = [least / size, most / size, from, to].filter((place) => place !== null && Number.isFinite(place));
  const [low, high] = [Math.min(...places), Math.max(...places)];
  const step = stepOf(high - low || 1, isWhole);
  const lowest = tidy(Math.floor(low / step + 1e-9) * step);
  const highest = tidy(Math.ceil(high / step - 1e-9) * step);
  const hints = [least, most].map((end) => asTyped(end, size));
  const shape = { column, name, lowest, highest, step, from, to, hints };
  return drawn(shape, (low, high) => put(value(stored(low, size, -1), stored(high, size, 1))));
}

/** Without what floating point adds. */
const tidy = (number) => Number(number.toPrecision(12));

// Lengths are shown in whole minutes: a number that is typed stands for all that are shown so.
const asTyped = (end, size) => (size > 1 ? Math.round(end / size) : tidy(end / size));

function stored(end, size, side) {
  if (end === null) return "";
  if (size <= 1) return String(tidy(end * size));
  return String(side < 0 ? Math.ceil((end - 0.5) * size) : Math.ceil((end + 0.5) * size) - 1);
}

/** The fields and the slider, which follow each other. hints: of empty fields; take: told both ends, null for open. */
function drawn({ column, name, lowest, highest, step, from, to, hints }, take) {
  const called = (word) => say(word, { column: text(headingOf(column)).slice(0, 60) }) + (name ? ` (${name})` : "");
  const typed = (word, end, hint) => {
    const attributes = { type: "number", step: "any", value: end ?? "", placeholder: hint, "data-filter": `${column.name} ${word}` };
    return el("input", { ...attributes, "aria-label": called(word), ...typing(fromFields) });
  };
  const thumb = (word, place) => {
    const attributes = { type: "range", min: lowest, max: highest, step, value: place, "data-filter": `${column.name} ${word} slider` };
    return el("input", { ...attributes, "aria-label": called(word), oninput: follow, onchange: fromThumbs });
  };
  const fields = [typed("rangeFrom", from, hints[0]), typed("rangeTo", to, hints[1])];
  const thumbs = [thumb("rangeFrom", from ?? lowest), thumb("rangeTo", to ?? highest)];
  const line = el("span", { class: "slider" }, thumbs);
  const places = () => thumbs.map(({ value }) => Number(value)).sort((a, b) => a - b);
  const ends = () => places().map((value, place) => (value === [lowest, highest][place] ? null : value));

  function colour() {
    const share = (value) => `${(100 * (value - lowest)) / (highest - lowest || 1)}%`;
    const [low, high] = places().map(share);
    line.style.setProperty("--from", low);
    line.style.setProperty("--to", high);
  }
  function follow() {
    for (const [place, end] of ends().entries()) fields[place].value = end ?? "";
    colour();
  }
  function fromThumbs() {
    take(...ends());
  }
  function fromFields() {
    const [low, high] = fields.map(({ value }) => (value === "" ? null : Number(value)));
    // Whoever types them the other way round means the same range.
    const isTurned = low !== null && high !== null && low > high;
    take(...(isTurned ? [high, low] : [low, high]));
  }
  colour();
  const dash = el("span", { "aria-hidden": "true" }, "–");
  const heading = el("legend", {}, owned(headingOf(column), 60), name ? ` (${name})` : "");
  return [heading, el("div", { class: "range" }, fields[0], dash, fields[1], highest > lowest ? line : null)];
}

/** Two fields for days above boxes of years or months; null for other columns, and for dates of any era, which are no
 *  days of a calendar. */
export function dates(column, counts, mine, put) {
  if (column.shown_as !== "date" || !Object.keys(counts).every((value) => /^\d{4}/.test(value))) return null;
  const [least = "", most = ""] = endsOf(mine.find((one) => isRange(one) && !(one in counts)) ?? "");
  const field = (word, day) => {
    const label = say(word, { column: text(headingOf(column)).slice(0, 60) });
    return el("input", { type: "date", value: day, "aria-label": label, "data-filter": `${column.name} ${word}`, ...typing(take) });
  };
  const [from, to] = [field("rangeFrom", least), field("rangeTo", most)];
  function take() {
    const ends = [from.value, to.value];
    if (ends.every(Boolean)) ends.sort();
    put(value(...ends));
  }
  const named = (word, input) => [el("span", { "aria-hidden": "true", class: "quiet" }, say(word)), input];
  return el("div", { class: "range of-dates" }, named("from", from), named("to", to));
}
