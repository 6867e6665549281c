// Cells as people read them: lengths of time, amounts of money, dates, lists, links and images.
import { address, brief, el, owned, text } from "../dom.js";
import { marked } from "../marked.js";
import { money } from "../numbers.js";
import { say } from "../words.js";

const LONGEST = 90;
const LONGEST_TITLE = 80;
// What catalogs call whether, or how many of, an item can be had.
const STOCK = /^((in|on)[_ ]?)?(stock|hand)$|^availab(le|ility)$|^库存$|^有货$/i;
const SECONDS = { seconds: 1, minutes: 60, hours: 3600 };
const language = document.documentElement.lang;
const dates = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeZone: "UTC" });
const eras = new Intl.DateTimeFormat(language, { year: "numeric", era: "short", timeZone: "UTC" });
const numbers = (options) => new Intl.NumberFormat(language, { maximumFractionDigits: 2, ...options });

/** Seconds in the unit that suits `most`, the longer end of a range. */
function duration(seconds, most) {
  const [unit, size] = most >= 36000 ? ["hour", 3600] : most >= 60 ? ["minute", 60] : ["second", 1];
  return numbers({ style: "unit", unit, maximumFractionDigits: size === 3600 ? 1 : 0 }).format(seconds / size);
}

/** Whether a unit is a currency, by its code or its sign; others are written behind the number. */
const isCurrency = (unit) => /^[A-Z]{3}$|\p{Sc}/u.test(unit);

function quantity(unit, cell, most = cell) {
  if (!unit || cell === "") return String(cell);
  const size = SECONDS[unit];
  if (size) return duration(cell * size, most * size);
  return isCurrency(unit) ? money(Number(cell), unit, language) : `${numbers({}).format(cell)}\u00a0${unit}`;
}

/** A day, or a year before our era, as the language writes it; any other date as it is stored. */
function date(cell) {
  if (/^\d{4}-\d\d-\d\d/.test(cell)) return dates.format(new Date(cell.slice(0, 10)));
  const year = Number.parseInt(cell, 10);
  if (Number.isNaN(year) || year > 0) return cell === ".." ? "…" : cell;
  return eras.format(new Date(0).setUTCFullYear(year, 6));
}

/** What people type a column's numbers in: how many of its own units that is, and its name, "" for none. */
export function typedIn({ unit }, most) {
  const size = SECONDS[unit];
  if (size) {
    const own = most * size >= 60 ? 60 : 1;
    return { size: own / size, name: say(own === 60 ? "minutes" : "seconds") };
  }
  return { size: 1, name: unit && isCurrency(unit) ? sign(unit) : unit };
}

/** The sign of a currency. */
const sign = (unit) => money(0, unit, language).replace(/[\d\s.,]+/g, "") || unit;

/** The ends of a range, which may have `..=`; of any other value the value. */
export const endsOf = (value) => value.replace("..=", "..").split("..");

/** A value of a facet, or both ends of a range, one of which may be open. */
export function valueOf(column, value) {
  const { shown_as: shownAs, unit } = column;
  if (shownAs === "yes/no" && STOCK.test(column.name)) return say(value === "yes" ? "inStock" : "outOfStock");
  if (shownAs === "yes/no") return say(value === "yes" ? "yes" : "no");
  if (shownAs !== "number" && shownAs !== "date") return value;
  const [from, to = from] = endsOf(value);
  // An address may have anything in place of a number.
  if (shownAs === "number" && [from, to].some((end) => Number.isNaN(Number(end)))) return value;
  if (STOCK.test(column.name) && !unit && !value.includes("..")) return inStock(Number(value));
  // One price as the cards have it; the ends of a range are mostly round.
  const hasCents = !value.includes("..") && withCents.has(column.name);
  const shown = (end) => {
    if (shownAs === "date") return date(end);
    return column.is_price && !(unit in SECONDS) ? amount(Number(end), unit, hasCents) : quantity(unit, end, to || end);
  };
  if (!from && to) return say("atMost", { value: shown(to) });
  if (!to && from) return say("atLeast", { value: shown(from) });
  return [...new Set([shown(from), shown(to)])].join(" – ");
}

function written({ shown_as: shownAs, unit }, cell) {
  if (shownAs === "number") return quantity(unit, cell);
  if (shownAs === "yes/no") return say(cell ? "yes" : "no");
  if (shownAs === "entries") return String(cell).replaceAll("|", ", ");
  return shownAs === "date" ? String(cell).split("/").map(date).join(" – ") : String(cell);
}

/** What people call a column: seconds, which are shown in minutes, are a length. */
export const labelOf = ({ name, unit }) => (name === unit ? say("length") : name.replaceAll("_", " "));

/** The same where it begins a line. */
export const headingOf = (column) => labelOf(column).replace(/^./u, (letter) => letter.toLocaleUpperCase(language));

/** The cell of a hit: a column that is called like a part of a hit has this name beside it. */
export const cellOf = (hit, { name }) => (`items.${name}` in hit ? hit[`items.${name}`] : hit[name]);

/** The picture of a hit in its square, or its title's first letter where it has none or it cannot be loaded; null
 *  where the catalog has none, or this was not asked for. */
export function picture(hit, columns) {
  const column = columns.find((one) => one.display === "image");
  if (!column || cellOf(hit, column) === undefined) return null;
  const src = address(cellOf(hit, column));
  const gone = (event) => event.target.replaceWith(initial(hit));
  const image = src && el("img", { src, alt: "", loading: "lazy", referrerpolicy: "no-referrer", width: 128, height: 128, onerror: gone });
  return el("span", { class: "picture" }, image || initial(hit));
}

/** In place of a picture, the first letter or digit of the title: drawn, not read out and not found by a search. */
function initial(hit) {
  const [letter = ""] = /[\p{L}\p{N}]\p{M}*/u.exec(hit.title || String(hit.id)) ?? [];
  return el("span", { class: "initial", "aria-hidden": "true", "data-letter": letter.toLocaleUpperCase(language) });
}

const linkOf = (columns) => columns.find((one) => one.display === "link");

/** The item's own address, by the first column of such; null for none. */
export function ownAddress(hit, columns) {
  const column = linkOf(columns);
  return column ? address(cellOf(hit, column)) : null;
}

// What the item costs, where the catalog tells it; other amounts of money have their names beside them.
const priceOf = (columns) => columns.find((column) => column.is_price);

const stockOf = (columns) =>
  columns.find(({ name, unit, shown_as: shownAs }) => STOCK.test(name) && !unit && ["yes/no", "number"].includes(shownAs));

const isEmpty = (cell) => (cell ?? "") === "";

/** What an item costs and whether it can be had, beside its title; null where nothing says so. */
export function offer(hit, columns) {
  const told = [price(hit, columns), stock(hit, columns)].filter(Boolean);
  return told.length ? el("div", { class: "offer" }, told) : null;
}

// The columns of prices of which some item has cents: then all are written with cents.
const withCents = new Set();

/** Look through rows that are shown together, before they are, for how their prices are written. */
export function readPrices(rows, columns) {
  const column = priceOf(columns);
  if (column && rows.some((row) => Number(cellOf(row, column) ?? 0) % 1)) withCents.add(column.name);
}

function price(hit, columns) {
  const column = priceOf(columns);
  const cell = column && cellOf(hit, column);
  if (isEmpty(cell)) return null;
  const shown = amount(Number(cell), column.unit, withCents.has(column.name));
  return el("p", { class: "price", title: text(`${column.name} ${cell}`).slice(0, 80) }, shown);
}

/** A price; one that has cents has them, however the others are written. */
const amount = (price, unit, hasCents) => money(price, unit, language, hasCents || price % 1 !== 0);

const inStock = (n) => (n > 0 ? say("nInStock", { n: numbers({}).format(n) }) : say(n ? "inStock" : "outOfStock"));

/** Only where there is a price: without one, "stock" may mean anything. */
function stock(hit, columns) {
  const column = priceOf(columns) && stockOf(columns);
  const cell = column && cellOf(hit, column);
  if (isEmpty(cell)) return null;
  const said = column.shown_as === "number" ? inStock(cell) : say(cell ? "inStock" : "outOfStock");
  return el("p", { class: cell ? "stock" : "stock out", title: text(`${column.name} ${cell}`).slice(0, 80) }, said);
}

/** The cells of some columns in one line, where there is anything in them: not what stands elsewhere. */
export function cells(hit, columns, find) {
  const apart = [priceOf(columns), linkOf(columns), priceOf(columns) && stockOf(columns)];
  const shown = columns.map((column) => [column, cellOf(hit, column)]).filter(([, cell]) => !isEmpty(cell));
  const made = shown.map(([column, cell]) => {
    const name = owned(labelOf(column), 40);
    if (column.display === "image" || (apart.includes(column) && isApart(column, cell))) return null;
    if (column.display && address(cell)) return link(name, address(cell));
    // A number says nothing without its column's name, unless it is the only length or amount.
    const only = column.unit && columns.find(({ unit }) => unit && unit in SECONDS === column.unit in SECONDS);
    const label = column.is_text || only === column ? null : [name, " "];
    const title = text(column.unit ? `${column.name} ${cell}` : column.name).slice(0, 80);
    // What is short does not leave its name at the end of a line.
    const together = label && !column.is_text ? "together" : null;
    return el("span", { title, class: together }, label, marked(written(column, cell), find, LONGEST));
  });
  return made.some(Boolean) ? el("p", { class: "cells quiet" }, made) : null;
}

/** Whether a cell of a price or an address is shown apart: text that is no address is not. */
const isApart = (column, cell) => !column.display || Boolean(address(cell));

const link = (name, to) => el("a", { href: to, rel: "noreferrer" }, name, " ", owned(to.host, 40));

/** A title for a small card: of an endless one its beginning, which ends with a word where words have blanks. */
export function shortTitle(title) {
  const whole = text(title);
  if (whole.length <= LONGEST_TITLE) return whole;
  const beginning = whole.slice(0, LONGEST_TITLE);
  return `${beginning.replace(/[,;:]?\s+\S*$/, "")}…`;
}

/** What the mouse tells of it: the whole where it was cut, otherwise nothing. */
export const wholeTitle = (title) => (shortTitle(title) === text(title) ? null : brief(title, 300));
