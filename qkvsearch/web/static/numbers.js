// Numbers as a page shows them: rounded so that those that add up still do.

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

/** A number as it is shown, by itself. */
export const rounded = (value, digits = 3) => Number(value.toFixed(digits));

// The reason that is the same for every hit, as the API names it.
const AVERAGE_ITEM = "average item (subtracted)";

/** The values of reasons, rounded so that they add up to the score as it is shown. What is the same for every hit is
 *  rounded by itself. `reasons_adding_up` in Python is the same. */
export function reasonsAddingUp(reasons, score) {
  const values = reasons.map(({ value }) => value);
  const place = reasons.findIndex(({ text }) => text === AVERAGE_ITEM);
  if (place < 0 || values.length === 1 || !isSum(values, score)) return addingUp(values, score);
  const alone = rounded(values[place]);
  return roundedTo(values.toSpliced(place, 1), rounded(score) - alone).toSpliced(place, 0, alone);
}

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

/** An amount: by a code as the language writes it, by a sign as the catalog has it. */
export function money(amount, currency, language, hasCents = !Number.isInteger(amount)) {
  const digits = { minimumFractionDigits: hasCents ? 2 : 0, maximumFractionDigits: 2 };
  const isCode = /^[A-Z]{3}$/.test(currency);
  const format = new Intl.NumberFormat(language, isCode ? { ...digits, style: "currency", currency } : digits);
  return isCode ? format.format(amount) : currency + format.format(amount);
}
