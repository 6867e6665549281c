// The page's sentences, in the reader's language, and numbers as people read them.
const words = JSON.parse(document.getElementById("words").textContent);

/** What the server said about itself for this page. */
export const facts = JSON.parse(document.getElementById("facts").textContent);

/** A sentence by its name, with {names} filled in. */
export function say(name, values = {}) {
  const sentence = words[name];
  if (sentence === undefined) throw new Error(`no words for ${name}`);
  return sentence.replace(/\{(\w+)\}/g, (whole, key) => (key in values ? values[key] : whole));
}

/** Whether there is one of this name. */
export const knows = (name) => Object.hasOwn(words, name);

const language = document.documentElement.lang;
const counts = new Intl.NumberFormat(language);
const shares = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 1 });

/** 12,345 */
export const count = (n) => counts.format(n);

/** 12.3% */
export const share = (x) => shares.format(x);

/** A number of `digits` decimals, with a minus that is one. */
export const number = (x, digits = 2) => x.toFixed(digits).replace("-", "−");

/** With its sign: what it adds or takes away. */
export const signed = (x, digits = 3) => (x < 0 ? number(x, digits) : `+${number(x, digits)}`);
