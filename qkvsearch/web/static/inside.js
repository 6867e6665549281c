// What the workspace was built from: facts, heads as bars, columns, builds.
import { ask } from "./api.js";
import { el, owned } from "./dom.js";
import { command, fillPage } from "./filled.js";
import { row, table } from "./tables.js";
import { count, number, say, share } from "./words.js";

const language = document.documentElement.lang;
const dates = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
/** A moment in the reader's zone; the exact one stays beside it. */
const moment = (value) => el("time", { datetime: value, title: value }, dates.format(new Date(value)));
// What the engine says of itself is English.
const english = (value) => el("span", { lang: "en" }, owned(value, 1000));
// What it says most often of a choice, with names for what stands in it, and what that is called here.
const REASONS = [
  [/^your choice$/, "chosenByYou"],
  [/^guessed from (?<n>[\d,]+) texts?$/, "guessedFrom"],
  [/^(?<n>[\d,]+) texts? do not clearly have another$/, "noOther"],
  [/^no letters to detect it by$/, "noLetters"],
  [/^(?<n>[\d,]+) letters? (?:is|are) too few to detect it by$/, "fewLetters"],
];
/** A reason in the language of the page where it has one, otherwise in English. */
function reasonOf(reason) {
  for (const [pattern, name] of REASONS) {
    const found = pattern.exec(reason);
    if (found) return el("span", {}, say(name, found.groups ?? {}));
  }
  return english(reason);
}
const section = (title, ...children) => el("section", {}, el("h2", {}, title), ...children);

// --- what is there ---

const why = (value, reason) =>
  reason ? [owned(value), el("span", { class: "quiet" }, " (", reasonOf(reason), ")")] : [owned(value)];

function counts(info) {
  const [least, most] = info.rating_scale ?? [];
  const facts = [
    ["items", count(info.items)],
    ["users", count(info.users)],
    ["interactions", count(info.interactions)],
    ["recorded", count(info.recorded)],
    ["built", moment(info.built)],
    ["encoder", why(info.encoder, info.encoder_chosen)],
    ["language", why(info.language, info.language_chosen)],
    ["scale", info.rating_scale && say("scaleRange", { least, most })],
    ["nextItem", info.next_item && english(plain(info.next_item))],
    ["cut", info.texts_cut && english(plain(info.texts_cut))],
    ["size", say("megabytes", { megabytes: count(info.megabytes) })],
    ["segments", count(info.segments)],
    ["format", String(info.format)],
  ];
  const list = facts
    .filter(([, value]) => value)
    .map(([name, value]) => el("div", {}, el("dt", {}, say(name)), el("dd", {}, value)));
  return section(say("counts"), el("dl", { class: "facts" }, list));
}

const plain = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));

// --- heads ---

function bars(weights) {
  const all = Object.values(weights).reduce((sum, weight) => sum + weight, 0) || 1;
  return el(
    "ul",
    { class: "bars" },
    Object.entries(weights).map(([name, weight]) =>
      el(
        "li",
        {},
        el("span", { class: "what" }, owned(name)),
        el("span", { class: "track" }, el("span", { class: "amount", style: { width: `${(100 * weight) / all}%` } })),
        el("span", { class: "value" }, number(weight, 3)),
      ),
    ),
  );
}

function heads(info) {
  const from = el("p", { class: "quiet" }, say("given"));
  const made = Object.entries(info.column_weights ?? {}).map(([head, weights]) =>
    el("div", {}, el("h3", {}, owned(head)), bars(weights)),
  );
  const keys = made.length
    ? [el("h2", {}, say("keys")), el("p", { class: "quiet" }, say("keysWhy")), el("div", { class: "several" }, made)]
    : [];
  return section(say("heads"), el("p", { class: "quiet" }, say("headsWhy")), bars(info.head_weights), from, ...keys);
}

/** The heads of a recommendation; null where there is one, or none. */
function recommendHeads(info) {
  const { shares = {}, alone = {} } = info.recommend_heads ?? {};
  const names = Object.keys(shares);
  if (!names.length) return null;
  const figures = names.map((name) => `${name} ${number(alone[name] ?? 0, 3)}`).join(", ");
  const reached = alone.fused === undefined ? say("tooFew") : say("alone", { figures, together: number(alone.fused, 3) });
  return section(say("recommendHeads"), el("p", { class: "quiet" }, say("recommendWhy")), bars(shares), el("p", { class: "quiet" }, reached));
}

// --- columns ---

function columns(title, records, searched) {
  if (!records.length) return null;
  const headings = ["name", "role", "type", "empty", "example", "changed"].map((name) => say(name));
  const rows = records.map((column) => {
    const uses = [column.role || say("filters"), ...(searched.includes(column.name) ? [say("searched")] : [])];
    const changed = Object.entries(column.changed).map(([what, n]) => el("div", {}, english(what), ` ${count(n)}`));
    return row(owned(column.name), uses.join(", "), column.type, share(column.empty), owned(column.example), changed);
  });
  return section(title, table(title, headings, rows));
}

// --- how good, and builds ---

function measured(info) {
  const found = info.tuned
    ? [
        el("p", {}, say("tuned", { protocol: info.tuned.protocol })),
        el("ul", { lang: "en" }, Object.entries(info.tuned.settings).map(([name, value]) => el("li", {}, `${name} = ${plain(value)}`))),
      ]
    : [el("p", {}, say("untuned")), command("tune")];
  const how = info.interactions ? [...found, el("p", {}, say("notMeasured")), command("evaluate recommend")] : [el("p", {}, say("notMeasured"))];
  return section(say("measured"), ...how, command("evaluate search --queries queries.tsv --qrels qrels.tsv"));
}

function builds(listing) {
  const headings = ["build", "created", "command", "items", "segments", "added"].map((name) => say(name));
  const rows = listing.rows.map((one) => {
    const name = one.current ? [owned(one.id), " ", el("span", { class: "current" }, say("current"))] : [owned(one.id)];
    const sizes = [one.segments, one.megabytes].map((size) => (size === null ? "–" : count(size)));
    return row(name, moment(one.created), owned(one.command), count(one.items), ...sizes);
  });
  const notes = listing.notes.map((note) => el("p", { class: "note bad" }, english(note)));
  return section(say("builds"), ...notes, table(say("builds"), headings, rows), el("p", { class: "quiet" }, say("rollback")), command("rollback BUILD"));
}

async function sections() {
  const [info, listing] = await Promise.all([ask("info"), ask("builds")]);
  const nodes = [
    counts(info),
    heads(info),
    recommendHeads(info),
    columns(say("columns"), info.columns, info.searched_columns),
    columns(say("logColumns"), info.interaction_columns, []),
    section(say("read"), el("ul", { lang: "en" }, info.rows.map((line) => el("li", {}, owned(line, 2000))))),
    measured(info),
    builds(listing),
  ];
  return { nodes, said: say("shown", { items: count(info.items), heads: count(Object.keys(info.head_weights).length) }) };
}

fillPage(sections);
