// The page's sentences, in the reader's language, and numbers as people read them.
import { filled } from "./sentences.js";
export { addingUp, isSum, number, signed } from "./numbers.js";

const words = JSON.parse(document.getElementById("words").textContent);

/** What the server said about itself for this page. */
export const facts = JSON.parse(document.getElementById("facts").textContent);

/** A sentence by its name, with the fields filled in. */
export function say(name, values = {}) {
  const sentence = words[name];
  if (sentence === undefined) throw new Error(`no words for ${name}`);
  return filled(sentence, values);
}

/** Whether there is one of this name. */
export const knows = (name) => Object.hasOwn(words, name);

const language = document.documentElement.lang;
const counts = new Intl.NumberFormat(language);
const shares = new Intl.NumberFormat(language, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });

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
