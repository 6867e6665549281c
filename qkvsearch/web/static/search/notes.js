// What the server notes of a search, in the language of the page.
import { el, text } from "../dom.js";
import { noted } from "../server.js";
import { say } from "../words.js";

// Sentences of the engine (`rank/`), with names for what stands in them, and what they are called here. The first one
// that matches counts.
const NOTES = [
  [/^No text has (?<words>.+)\.$/, "note_noText"],
  [/^No searched text has “(?<word>.+?)”, but column (?<column>.+), which is not searched, has: (?<clause>.+) asks for it, and /, "note_asks"],
  [/^No searched text has “(?<word>.+?)”, but column (?<column>.+), which is not searched, has: /, "note_unsearched"],
  [/^No searched text has (?<words>“.+”)\.$/, "note_noText"],
  [/^No item has “(?<typed>.+)”: searched for “(?<read>.+)”\.$/, "searchedFor"],
  [/^No item has “(?<typed>.+)”: read as “(?<read>.+)”\.$/, "note_readAs"],
  [/^(?<typed>.+) was read as (?<read>.+): the smaller end comes first\.$/, "note_turned"],
  [/^(?<typed>.+) was read as words: column '(?<column>.+)' is .+, and has no ranges\.$/, "note_noRanges"],
  [/^No item has all of this\.$/, "note_notAll"],
  [/^No item has (?<clause>.+): column '(?<column>.+)' is [^:]+, and only numbers are compared\.$/, "note_noNumber"],
  [/^No item has (?<clause>.+)\. Its words were searched without the quotation marks\.$/, "note_noPhrase"],
  [/^No item has (?<clause>.+)\.$/, "note_noItem"],
  [/^There is no column “(?<name>.+)”\. Did you mean (?<query>.+)\?$/, "note_noColumn"],
  [/^Did you mean (?<query>.+)\?$/, "didYouMean"],
  [/^These words are too common to be searched for alone\.$/, "note_tooCommon"],
  [/^These items have no texts to search\./, "none_no_texts"],
  [/^Only the first (?<n>[\d,]+) operators count; (?<more>[\d,]+) more /, "note_operators"],
  [/^Only the first (?<n>[\d,]+) words of synonyms count/, "note_synonyms"],
  [/^(?<n>[\d,]+) words begin with “(?<word>.+)”; the (?<most>[\d,]+) most /, "note_beginnings"],
  [/^The query is longer than \S+ (?<limit>\d+) tokens: /, "note_long"],
  [/^Nothing in the catalog answers this: /, "note_nearest"],
  [/^`sort`: there are no interactions with these items\.$/, "note_noUsers"],
  [/^Rule (?<n>\d+) is skipped(?: in part)?: (?<why>.+)\.$/, "note_rule"],
  [/^No user '(?<user>.*)' here/, "note_noUser"],
];

// Queries that are suggested: "year:1990..1999 or added:1990..1999".
const OR = / or (?=[^\s:]+:)/;

// The fields that are queries, of the sentences that have such.
const SUGGESTS = { didYouMean: "query", note_noColumn: "query", note_asks: "clause" };

// Why a rule is skipped may be what is wrong with its condition, which is rare: asked for where there is one.
let faultOf = text;

/** Fetch what these notes need to be translated. */
export async function prepare(notes) {
  if (notes.some((note) => note.startsWith("Rule "))) ({ faultOf } = await import("./conditions.js"));
}

const written = {
  words: (names) => names.replaceAll("”, “", `”${say("comma")}“`),
  query: (queries) => queries.split(OR).join(say("or")),
  why: (said) => faultOf(said),
};

/** A note as a page shows it: text, or an element where it suggests queries, or only the server's English says it.
 *  suggested(clause, unknown): a link for a suggested query. */
export function translated(note, suggested = null) {
  for (const [pattern, name] of NOTES) {
    const found = pattern.exec(note);
    if (!found) continue;
    const values = Object.entries(found.groups ?? {}).map(([key, value]) => [key, text(written[key]?.(value) ?? value)]);
    const field = suggested && SUGGESTS[name];
    const sentence = say(name, Object.fromEntries(values.filter(([key]) => key !== field)));
    return field ? withLinks(sentence, field, found.groups, suggested) : sentence;
  }
  return noted(note);
}

/** Whether a note suggests queries. */
export const suggests = (note) => SUGGESTS[NOTES.find(([pattern]) => pattern.test(note))?.[1]] !== undefined;

/** A sentence with links in place of its field. */
function withLinks(sentence, field, groups, suggested) {
  const [before, after] = sentence.split(`{${field}}`);
  const links = groups[field].split(OR).map((clause) => suggested(clause, groups.name));
  return el("span", {}, before, links.flatMap((link, place) => (place ? [say("or"), link] : [link])), after);
}

/** Whether a note says that there is no such user. */
export const isAboutUser = (note) => /^No user '/.test(note);
