// What a page shows where nothing was searched for yet, or nothing was found: items that many people chose, and
// searches to begin with.
import { byId, el, owned } from "../dom.js";
import { say } from "../words.js";
import { entries } from "./hits.js";

// So many examples, made of titles.
const EXAMPLES = 3;
const MOST_WORDS = 4;
const MOST_LETTERS = 30;
// Where the first clause of a title ends; a number in it is rarely a word to search for.
const CLAUSE = /[:;,.!?()[\]«»“”"|–—/、，。：；！？（）《》「」【】]/u;
const NUMBER = /(^|\s)[\p{N}.]+(?=\s|$)/gu;

/** Searches that find something, made of titles: their first clauses where these are short, else their beginnings. */
export function examplesOf(titles) {
  const clauses = titles
    .map((title) => title.split(CLAUSE).map((clause) => clause.replace(NUMBER, " ").replace(/\s+/g, " ").trim()).find(Boolean) ?? "")
    .filter(Boolean);
  const isShort = (clause) => clause.length <= MOST_LETTERS && clause.split(" ").length <= MOST_WORDS;
  const whole = clauses.filter(isShort);
  const begun = clauses.filter((clause) => !isShort(clause)).map((clause) => clause.split(" ").slice(0, 3).join(" ").slice(0, MOST_LETTERS));
  return [...new Set([...whole, ...begun])].slice(0, EXAMPLES);
}

/** The links to examples and the heading over the list of items. sort: their order; address(q): of a search. */
export function showFirst(rows, sort, address) {
  const links = examplesOf(rows.map((row) => String(row.title ?? ""))).map((q) => el("a", { class: "chip", href: address(q) }, owned(q)));
  byId("examples").replaceChildren(...(links.length ? [el("span", { class: "quiet" }, say("tryThese")), ...links] : []));
  byId("first-heading").textContent = headingOf(sort);
}

/** Below an empty list. options: as `showHits` has them. */
export function showPopular(rows, sort, options) {
  byId("popular").hidden = !rows.length;
  byId("popular-heading").textContent = headingOf(sort);
  byId("popular-items").replaceChildren(...entries(rows, { ...options, asTiles: true }));
}

// Without a log nothing is popular.
const headingOf = (sort) => say({ users: "popularItems", id: "firstItems" }[sort] ?? "newestItems");
