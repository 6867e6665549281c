// What people searched for: the most frequent queries, those without hits, and those whose first hits nobody clicks on.
import { ask } from "./api.js";
import { code, withCode } from "./code.js";
import { el, owned, text } from "./dom.js";
import { command, fillPage } from "./filled.js";
import { noted } from "./server.js";
import { state } from "./shell.js";
import { row, table } from "./tables.js";
import { count, facts, say } from "./words.js";

const MOST = Math.min(50, facts.most);

/** A word of a command as a shell reads it: a stranger's query must not be another command. */
const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;

/** The query, as a link to its answers. */
function asked(query) {
  const to = new URLSearchParams({ q: query });
  const spoken = state().get("lang");
  if (spoken) to.set("lang", spoken);
  return el("a", { href: `${facts.root}/?${to}` }, owned(query, 120));
}

const numbers = (...values) => values.map((value) => el("span", { class: "number" }, count(value)));

/** Why there are no hits. */
function why({ reason, words, conditions }) {
  if (reason === "unknown_words") return say("unknownWords", { words: text(words.join(", ")) });
  if (reason === "filtered_out") return say("filteredOut", { conditions: text(conditions.join(", ")) });
  if (reason === "not_answered") return say("notAnswered");
  return text(reason ?? "").replaceAll("_", " ");
}

const clicked = (found) =>
  found.clicked.map((item) => el("div", {}, owned(item.title ?? item.id, 120), ` (${count(item.clicks)})`));

/** What to add to the synonyms or the rules, and what visitors searched for next. */
function advice(found) {
  const lines = [];
  if (found.synonyms) lines.push([say("synonyms"), " ", code(text(found.synonyms))]);
  if (found.pin) lines.push([say("pin"), " ", code(text(`rules add --pin ${quoted(found.pin)}`))]);
  for (const next of found.next) lines.push([say("next"), " ", asked(next.query), ` (${count(next.searches)})`]);
  if (!lines.length && found.reason === "unknown_words") lines.push([say("anySynonym")]);
  if (!lines.length && found.problem === "no_clicks") lines.push([say("anyPin")]);
  return lines.map((line) => el("div", {}, ...line));
}

const frequent = (found) => row(asked(found.query), ...numbers(found.searches, found.total, found.clicks));
const missed = (found) => row(asked(found.query), ...numbers(found.searches), why(found), advice(found));
const ignored = (found) => row(asked(found.query), ...numbers(found.searches), clicked(found), advice(found));

// The lists: `only` of the API, the names of their columns, and their rows.
const LISTS = [
  { title: "frequent", only: "", columns: ["query", "searches", "hits", "clicks"], made: frequent },
  { title: "noHits", only: "no_hits", columns: ["query", "searches", "why", "todo"], made: missed },
  { title: "noClicks", only: "no_clicks", columns: ["query", "searches", "clickedOn", "todo"], made: ignored },
];

function section({ title, columns, made }, listing) {
  const name = say(title);
  const n = listing.rows.length;
  const counted = say(n < listing.total ? "some" : "all", { n: count(n), total: count(listing.total) });
  const shown = n
    ? [table(name, columns.map((one) => say(one)), listing.rows.map(made)), el("p", { class: "quiet" }, counted)]
    : [el("p", { class: "quiet" }, say("none"))];
  return el("section", {}, el("h2", {}, name), ...shown);
}

async function lists() {
  const sections = [];
  let first = null;
  // One after the other: of a page no more than one question is under way.
  for (const list of LISTS) {
    const listing = await ask("searches", { k: MOST, only: list.only });
    first ??= listing;
    sections.push(section(list, listing));
  }
  const nodes = [
    el("p", { class: "quiet" }, facts.logged ? say("kept", { days: count(facts.days) }) : withCode(say("off"))),
    ...first.notes.map((note) => el("p", { class: "note bad" }, noted(note))),
    ...sections,
    el("p", { class: "quiet" }, say("counting")),
    command("searches"),
    command("evaluate search --from-clicks"),
  ];
  return { nodes, said: say("all", { n: count(first.rows.length), total: count(first.total) }) };
}

fillPage(lists);
