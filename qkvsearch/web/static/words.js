// The page's sentences, in the reader's language, and numbers as people read them.
const words = JSON.parse(document.getElementById("words").textContent);

/** What the server said about itself for this page. */
export const facts = JSON.parse(document.getElementById("facts").textContent);

// {n} is a value, and {n:result|results} the word that goes with it: the first one if it is 1.
const FIELD = /\{(\w+)(?::([^|}]*)\|([^}]*))?\}/g;

/** A sentence by its name, with the fields filled in. */
export function say(name, values = {}) {
  const sentence = words[name];
  if (sentence === undefined) throw new Error(`no words for ${name}`);
  return sentence.replace(FIELD, (whole, key, one, several) => {
    if (!(key in values)) return whole;
    if (one === undefined) return values[key];
    return String(values[key]) === "1" ? one : several;
  });
}

/** Whether there is one of this name. */
export const knows = (name) => Object.hasOwn(words, name);

const language = document.documentElement.lang;
const counts = new Intl.NumberFormat(language);
const shares = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 1 });

const lists = new Intl.ListFormat(language);

/** "a, b and c" as nodes, what is listed made by `node`. */
export const listedAs = (names, node) =>
  lists.formatToParts(names.map(String)).map(({ type, value }) =>
    // Chinese puts nothing around its "and", where names may have blanks.
    type === "element" ? node(value) : value.replace(/^([和及])$/, " $1 "),
  );

/** 12,345 */
export const count = (n) => counts.format(n);

/** 12.3% */
export const share = (x) => shares.format(x);

/** A number of `digits` decimals, with a minus that is one. */
export const number = (x, digits = 2) => x.toFixed(digits).replace("-", "−");

/** With its sign: what it adds or takes away. What rounds to zero has no minus. */
export const signed = (x, digits = 3) => {
  const shown = number(x, digits);
  if (Number(x.toFixed(digits)) === 0) return `+${shown.replace("−", "")}`;
  return x < 0 ? shown : `+${shown}`;
};

// float32's share, as the tests of the engine allow it.
const TOLERANCE = 1e-4;

/** Whether numbers are the parts of this total. */
export function isSum(values, total) {
  const sum = values.reduce((a, b) => a + b, 0);
  const size = values.reduce((a, b) => a + Math.abs(b), 0);
  return Math.abs(sum - total) <= TOLERANCE * Math.max(1, size);
}

/** The numbers rounded so that they add up to the rounded total. Numbers that do not add up to it are rounded each by
 *  itself: what is missing must be seen. `adding_up` in Python is the same. */
export function addingUp(values, total, digits = 3) {
  if (isSum(values, total)) return roundedTo(values, total, digits);
  const unit = 10 ** digits;
  return values.map((value) => Math.round(value * unit) / unit);
}

/** The numbers rounded so that they add up to the rounded total, whatever they add up to: each is rounded down, and
 *  the units that are then missing go to those that lost most. */
export function roundedTo(values, total, digits = 3) {
  if (!values.length) return [];
  const unit = 10 ** digits;
  const rounded = values.map((value) => Math.floor(value * unit));
  const lost = values.map((value, place) => value * unit - rounded[place]);
  const missing = Math.round(Number(total.toFixed(digits)) * unit) - rounded.reduce((a, b) => a + b, 0);
  const each = Math.floor(missing / values.length);
  const more = missing - each * values.length;
  const places = values.map((_, place) => place).sort((a, b) => lost[b] - lost[a] || a - b);
  for (const [order, place] of places.entries()) rounded[place] += each + (order < more ? 1 : 0);
  return rounded.map((value) => value / unit);
}
