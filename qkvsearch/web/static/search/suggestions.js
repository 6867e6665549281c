// Queries that the server suggests: links that ask for them, called as a person reads them.
import { el, owned } from "../dom.js";
import { headingOf, valueOf } from "./cells.js";

// A condition on a column, as it is typed: brand:Acme, "blue heron" in quotes, added:2020..2029.
const CONDITION = /^(?<name>[^\s:"]+):(?<value>.+)$/s;
const WORD_ENDS = "(?=\\s|$)";
const escaped = (letters) => letters.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/** A link for one suggested query. columns: of the catalog; typed: what is asked for now; unknown: the name of a column
 *  that there is not, in place of which it is suggested; to(q): the address that asks for a query. */
export function suggestion(clause, { columns, typed, unknown, to }) {
  return el("a", { href: to(instead(typed, clause, unknown)) }, owned(called(clause, columns), 120));
}

/** "Brand: Acme" for brand:Acme. */
function called(clause, columns) {
  const { name, value } = CONDITION.exec(clause)?.groups ?? {};
  if (!name) return clause;
  const column = columns.find((one) => one.name.toLowerCase() === name.toLowerCase()) ?? { name };
  return `${headingOf(column)}: ${valueOf(column, value.replace(/^"(.*)"$/s, "$1"))}`;
}

/** What is typed with the suggestion in place of what it corrects, or behind it. */
function instead(typed, clause, unknown) {
  const { name, value } = CONDITION.exec(clause)?.groups ?? {};
  const field = name && `(?<=^|[\\s-])${escaped(unknown ?? name)}:(?:"[^"]*"|\\S*)${WORD_ENDS}`;
  const word = value && `(?<=^|\\s)${escaped(value)}${WORD_ENDS}`;
  const phrase = !name && '"[^"]*"';
  for (const pattern of [field, word, phrase].filter(Boolean)) {
    const found = new RegExp(pattern, "i");
    if (found.test(typed)) return typed.replace(found, () => clause);
  }
  return `${typed.trim()} ${clause}`;
}
