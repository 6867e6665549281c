// The search page: what its address says, what it asks, and what is done with the answers.
import { Refused, ask, latest, query } from "./api.js";
import { byId, el, onTyped, owned, text } from "./dom.js";
import { choices, named } from "./heads.js";
import { refusal } from "./server.js";
import { announce, begin, onKey, remember, state } from "./shell.js";
import { count, facts, say } from "./words.js";
import { headingOf, labelOf } from "./search/cells.js";
import { chip, showChosen, showFacets } from "./search/facets.js";
import { closeAround, hits, move, prepareReasons, showHits } from "./search/hits.js";
import { isAboutUser, prepare, suggests, translated } from "./search/notes.js";
import { turned } from "./search/range.js";

const PAGE = Math.min(20, facts.most);
// So many popular items, which fill rows of two, three and four.
const FEW = 12;
const REASONS = "qkvsearch-reasons";
// What only some answers need, once one of them is there.
const rare = { popular: null, suggestions: null };
let reasons = remembered();
const box = byId("q");
// What is asked for now, as the address has it.
const asked = read();
// What the server has, once it has said so: columns, users.
const has = { columns: [], addresses: [], newest: null, users: 0, like: null, popular: null };

/** What the address says. */
function read() {
  const said = state();
  const list = (name) => said.getAll(name).filter(Boolean);
  return {
    q: said.get("q") ?? "",
    prefix: said.get("prefix") === "true",
    anyway: said.get("anyway") === "true",
    weak: said.get("weak") === "true",
    filter: list("filter"),
    where: said.get("where") ?? "",
    heads: said.get("heads") ?? "",
    user: said.get("user") ?? "",
    similar: said.get("similar") ?? "",
    sort: said.get("sort") ?? "",
    distinct: said.get("distinct") ?? "",
    k: Math.min(Math.max(Math.round(Number(said.get("k"))) || PAGE, 1), facts.most),
    open: list("open"),
  };
}

/** The parameters of an address. */
function address(values = asked) {
  return query({ ...values, k: values.k === PAGE ? "" : values.k });
}

const counts = () => has.columns.map((column) => column.name).join(",");
const fields = () => [...has.columns, ...has.addresses].map((column) => column.name).join(",");
const common = (values) => ({ filter: values.filter, where: values.where });
const words = ({ q, prefix, anyway, weak, heads, user, distinct }) => ({ q, prefix, anyway, weak, heads, user, distinct });

/** The orders to choose from, each with its name: of what is there, or of what was found. */
function orders({ q }) {
  const found = [["", say("best")]];
  const all = [[has.users && "users", say("met")], [has.newest && `-${has.newest}`, say("newest")], ["id", say("byId")]];
  const columns = has.columns.filter((column) => column.is_ordered);
  const byColumn = columns.flatMap((column) => [
    [column.name, say(column.shown_as === "date" ? "oldestFirst" : "rising", { column: text(headingOf(column)) })],
    [`-${column.name}`, say(column.shown_as === "date" ? "newestFirst" : "falling", { column: text(headingOf(column)) })],
  ]);
  const before = q.trim() ? found : all.filter(([sort]) => sort);
  return [...before, ...byColumn.filter(([sort]) => before.every(([other]) => sort !== other))];
}

/** The one that is chosen, or the first. */
function order(values) {
  const names = orders(values).map(([sort]) => sort);
  return names.includes(values.sort) ? values.sort : names[0];
}

/** Whether nothing is asked for, not even an order of all items. */
const isFirst = (values) =>
  !values.q.trim() && !values.similar && !values.filter.length && !values.where && !values.sort && values.k === PAGE;

/** Items to look through; none for a token that may only search. */
function askItems(parameters) {
  const closed = (error) => {
    if (error.status !== 403) throw error;
    return { rows: [], total: 0, notes: [], isClosed: true };
  };
  return ask("items", parameters).catch(closed);
}

/** The most popular items, or the first ones of a catalog that nobody used. */
async function popular() {
  has.popular ??= await askItems({ k: Math.min(FEW, facts.most), sort: itemSort({ q: "" }), fields: fields() });
  return has.popular;
}

/** The answer, with the reasons of what the address says is open; without hits also with what is popular. */
async function answer(values) {
  const found = await listed(values);
  await prepare(found.notes);
  if (values.q.trim() && !found.hits.length && !values.offset) found.popular = (await popular()).rows;
  if (found.popular || isFirst(values)) rare.popular ??= await import("./search/popular.js");
  if (found.notes.some(suggests)) rare.suggestions ??= await import("./search/suggestions.js");
  const open = values.offset ? [] : found.hits.filter((hit) => values.open.includes(String(hit.id)));
  if (open.length) await prepareReasons();
  const explained = new Map();
  for (const hit of open) explained.set(hit.id, await explain(hit, values));
  return { ...found, explained };
}

/** The order of a listing, as the server calls it. */
const itemSort = (values) => (order(values) === "id" ? "" : order(values));

async function listed(values) {
  const page = { k: values.k, offset: values.offset, fields: fields(), ...common(values) };
  if (values.similar) {
    const found = await ask("similar", { items: values.similar, ...page });
    return { ...found, facets: {} };
  }
  if (values.q.trim()) {
    const asks = { ...words(values), ...page, sort: order(values) };
    const found = await ask("search", { ...asks, facets: counts(), snippet: true, matches: true });
    // A facet counts what one can list, which is more than the page that is shown.
    return isShortList(found, values) ? { ...found, hits: found.hits.slice(0, PAGE), facets: {} } : found;
  }
  const sort = itemSort(values);
  if (isFirst(values)) page.k = Math.min(FEW, facts.most);
  // One after the other: of a page no more than one question is under way.
  const listing = await askItems({ ...page, sort });
  const counted = values.offset ? { facets: null } : await ask("facets", common(values));
  return { ...listing, hits: listing.rows, facets: counted.facets };
}

// What a server says of a filter that it cannot use.
const OF_FILTER = /^`filter`/;
const OF_CONDITION = /^`where`/;

const run = latest(answer, show, async (error) => {
  setBusy(false);
  byId("hits").replaceChildren();
  byId("more").hidden = true;
  byId("popular").hidden = true;
  // A filter of dates is a condition too, which nobody typed.
  const isOfBoth = OF_CONDITION.test(error.message);
  const isCondition = isOfBoth && asked.where !== "";
  const isFilter = OF_FILTER.test(error.message) || (isOfBoth && !isCondition);
  const said = error.status === 403 ? say("forbidden") : refusal(error);
  const bad = isFilter ? [el("p", { class: "note bad" }, say("badFilter"))] : [];
  // What is wrong is said beside its field alone. Nothing was searched, so that nothing was not found.
  tell(isCondition ? say("notSearchedWhere") : isFilter ? say("notSearched") : said, bad);
  if (!isCondition) {
    fault("where", "condition", "");
    return;
  }
  const { where } = asked;
  const { faultOf } = await import("./search/conditions.js");
  if (asked.where !== where) return;
  fault("where", "condition", ended(say("badWhere", { detail: faultOf(error.message) })));
});

/** A sentence with the sign that ends it. */
const ended = (sentence) => (/[.?!。？！…]$/.test(sentence) ? sentence : `${sentence}${say("sentenceEnd")}`);

/** Ask for what `changes` say. step: a new entry in the history, which Back returns from. */
function go(changes, step = true) {
  Object.assign(asked, { k: PAGE, open: [] }, changes);
  remember(address(), step);
  controls();
  again();
}

function again() {
  setBusy(true);
  run({ ...asked, offset: 0 });
}

/** While an answer is under way it is not known what comes after it. The button for more keeps the
 *  keyboard's focus, which one that is disabled would lose. */
function setBusy(is) {
  byId("hits").setAttribute("aria-busy", String(is));
  byId("more").setAttribute("aria-disabled", String(is));
}

function more() {
  if (byId("more").getAttribute("aria-disabled") === "true") return;
  if (isFirst(asked)) {
    go({ sort: order(asked) });
    return;
  }
  const offset = hits().length;
  // Weak matches are below all others: what is there stays.
  if (asked.q.trim() && offset >= byId("more").dataset.total) asked.weak = true;
  asked.k = Math.min(offset + PAGE, facts.most);
  remember(address());
  setBusy(true);
  run({ ...asked, k: asked.k - offset, offset });
}

function show(found, values, newest) {
  const keep = values.offset > 0;
  // Further hits are those of another answer, with an id of its own.
  for (const hit of found.hits) hit.queryId = found.query_id;
  const options = {
    clicked,
    columns: [...has.columns, ...has.addresses],
    keep,
    asTiles: isFirst(values),
    explained: found.explained,
    similar: (hit) => `?${query({ ...kept(), similar: name(hit.id) })}`,
    explain: (hit) => explain(hit, values),
    gone: (hit) => gone(hit, values),
    opened: (open) => {
      asked.open = open;
      remember(address());
    },
  };
  showHits(found.hits, options);
  rare.popular?.showPopular(found.popular ?? [], order({ q: "" }), { ...options, keep: false });
  if (isFirst(values) && !found.isClosed) rare.popular.showFirst(found.hits, order(values), (q) => `?${query({ ...kept(), q })}`);
  if (found.facets) showFacets(has.columns, found.facets, asked.filter, (filter) => go({ filter }));
  if (!newest) return;
  setBusy(false);
  showMore(found, values);
  byId("done").textContent = say("showItems", { n: count(isShortList(found, values) ? hits().length : total(found, values)) });
  tell(counted(found, values), notes(found));
  const unknown = found.notes.find(isAboutUser);
  fault("user", "options", unknown ? translated(unknown) : "");
  fault("where", "condition", "");
  const help = helpWithout(found, values);
  if (help) byId("notes").append(help);
}

/** How many results there are on all pages, as far as they are listed. */
function total(found, values) {
  if (found.total_weak === undefined) return found.total ?? Infinity;
  return found.total + (values.weak || values.anyway ? found.total_weak : 0);
}

/** Whether nothing was found, and what comes nearest is shown instead: one page of it. */
const isShortList = (found, values) => found.total === 0 && (values.weak || values.anyway);

/** The button for what comes next: more results, or behind the last one those that match only weakly. */
function showMore(found, values) {
  const more = byId("more");
  const n = hits().length;
  // What no address can say is not listed.
  const isMore = !isShortList(found, values) && found.hits.length === values.k && n < Math.min(total(found, values), facts.most);
  const weak = found.total_weak && !values.weak && !values.anyway && n && n < facts.most ? found.total_weak : 0;
  more.hidden = !isMore && !weak;
  if (isFirst(values) && found.total > n) {
    more.hidden = false;
    more.textContent = say("allItems", { n: count(found.total) });
    return;
  }
  more.dataset.total = total(found, values);
  more.textContent = isMore || !weak ? say("more") : say("weaker", { n: count(weak) });
}

/** A button that leads to results where there are none; null where none does. */
function helpWithout({ no_hits: none, total_weak: weak }, values) {
  if (!none) return null;
  const button = (label, changes, said) => el("button", { type: "button", onclick: () => go(changes) }, say(label, said));
  const { operators = [] } = none;
  const cleared = none.where || none.filter ? { filter: [], where: "" } : {};
  if (operators.length) return button("leaveOut", { ...cleared, q: without(values.q, operators) }, { n: operators.length });
  if (none.where || none.filter) return button("clear", cleared);
  if (none.reason !== "not_answered" || values.anyway) return null;
  return button("nearest", weak ? { weak: true } : { anyway: true });
}

/** A query without these operators, which are as they were typed. */
function without(q, operators) {
  const left = operators.reduce((rest, operator) => rest.replace(operator, " "), q);
  return left.replace(/\s+/g, " ").trim();
}

/** Why there are no results, and what helps. */
function whyNone(none) {
  const name = none.operators ? `none_operators` : `none_${none.reason}`;
  const listed = (words) => text((words ?? []).map((word) => `“${word}”`).join(say("comma")));
  return say(name, { words: listed(none.operators ?? none.words), total: count(none.total ?? 0) });
}

/** Tell a server that logs searches which hit was clicked on. */
function clicked(hit) {
  if (!hit.queryId) return;
  const body = { query_id: hit.queryId, item: hit.id, position: hit.rank };
  // It counts, or it does not: whoever clicked has nothing to do with that.
  ask("clicks", {}, { method: "POST", body, keepalive: true }).catch(() => null);
}

/** What stays when a link leaves the query. */
const kept = () => ({ lang: state().get("lang") });

/** An id as the server reads it without doubt. */
const name = (id) => (String(id).includes(":") ? `id:${id}` : String(id));

function counted(found, values) {
  const n = count(hits().length);
  if (values.similar) return say("neighbours", { n });
  if (found.isClosed) return say("typeSomething");
  if (!values.q.trim()) {
    if (!found.total) return say("noneHere");
    if (isFirst(values)) return say("items", { n: count(found.total) });
    const filtered = values.filter.length || values.where;
    return say(filtered ? "thereFiltered" : "there", { n, total: count(found.total) });
  }
  if (!hits().length) return say("none");
  const listed = hits().length < total(found, values) ? "resultsOfMore" : "results";
  if (total(found, values) === found.total) return say(listed, { n, total: count(found.total) });
  if (isShortList(found, values)) return say("nearestOnly", { n });
  return say(`${listed}WithWeak`, { n, total: count(found.total), weak: count(found.total_weak) });
}

/** What of the query was read otherwise, and what else the server has to say. */
function notes(found) {
  const corrections = found.corrections ?? [];
  const made = corrections.map((one) => {
    const key = one.kind === "prefix" ? "unfinished" : "searchedFor";
    return say(key, { typed: text(one.typed), read: text(one.read) });
  });
  const others = found.notes.filter(
    (note) => !corrections.some((one) => note.includes(`“${one.typed}”`) && note.includes(`“${one.read}”`)),
  );
  // Why there is nothing is told once; and what the person's own field says, beside that.
  const reason = found.no_hits?.reason;
  const isTold = (note) => isAboutUser(note) || (reason && (note.startsWith("No hits:") || ["too_common", "no_texts"].includes(reason)));
  const why = found.no_hits ? [whyNone(found.no_hits)] : [];
  const told = others.filter((note) => !isTold(note)).map((note) => translated(note, suggested));
  const each = [...made, ...told];
  // Where nothing was found, one sentence after the other says why.
  const lines = why.length ? [[...each, ...why].flatMap((note) => [note, " "])] : each;
  return lines.map((line) => el("p", { class: "note" }, line));
}

/** A link to a query that the server suggests. */
function suggested(clause, unknown) {
  const to = (q) => `?${query({ ...asked, ...kept(), q, prefix: false, open: [], k: "" })}`;
  return rare.suggestions.suggestion(clause, { columns: has.columns, typed: asked.q, unknown, to });
}

/** What is wrong in a field of a menu: told beside it, where it can be seen. "" for nothing. */
function fault(field, menu, said) {
  const told = byId(`${field}-fault`);
  const isNew = said && told.textContent !== said;
  told.textContent = said;
  told.hidden = !said;
  byId(field).setAttribute("aria-invalid", String(Boolean(said)));
  // It may be in a menu that is itself folded.
  for (let one = isNew ? byId(menu) : null; one; one = one.parentElement.closest("details")) one.open = true;
}

/** The line above the results, told to who hears it with the notes. */
function tell(sentence, lines) {
  byId("status").textContent = sentence;
  byId("notes").replaceChildren(...lines);
  announce([sentence, ...lines.map((line) => line.textContent)].join(" "));
}

/** One hit with its reasons; null where another is there now, and all is asked for again. */
async function explain(hit, values) {
  const given = { ...common(values), rank: hit.rank };
  const found = values.similar
    ? await ask("explain/similar", { items: values.similar, ...given })
    : await ask("explain/search", { ...words(values), ...given, sort: order(values) });
  if (found.hit.id === hit.id) return found.hit;
  announce(say("changed"));
  again();
  return null;
}

// The questions about what would have to be gone: one after the other.
let asking = Promise.resolve();

/** A promise of the words without which a hit would not be listed; null where it is not by words. The promise is of
 *  null where there is no answer, or another hit is there now. */
function gone(hit, values) {
  if (values.similar || !values.q.trim() || order(values)) return null;
  const given = { ...words(values), ...common(values), k: values.offset + values.k, rank: hit.rank, explain: "smallest" };
  asking = asking.then(() => ask("explain/search", given)).then(
    (found) => (found.hit.id === hit.id ? found.hit.smallest : null),
    () => null,
  );
  return asking;
}

/** Whether bars and heads were switched on in this browser; is: what to remember, if it may. */
function remembered(is) {
  try {
    if (is !== undefined) localStorage.setItem(REASONS, is ? "yes" : "no");
    return localStorage.getItem(REASONS) === "yes";
  } catch {
    return Boolean(is);
  }
}

function showReasons(is) {
  reasons = remembered(is);
  if (!is && asked.heads) go({ heads: "" });
  controls();
}

/** The switch of reasons, the order, the menu of options, chips and links, as the state has them. */
function controls() {
  if (document.activeElement !== box) box.value = asked.q;
  const shown = reasons || Boolean(asked.heads);
  document.body.classList.toggle("why", shown);
  byId("why").setAttribute("aria-checked", String(shown));
  showHeads();
  const columns = has.columns.filter((column) => column.shown_as === "text");
  choose("sort", orders(asked), order(asked));
  choose("distinct", [["", say("all")], ...columns.map((one) => [one.name, say("oneOf", { column: text(labelOf(one)) })])], asked.distinct);
  byId("distinct").parentElement.hidden = !columns.length || !asked.q.trim();
  byId("user").value = asked.user;
  showChosen(has.columns, asked.filter, asked.where, (filter, where) => {
    byId("where").value = where;
    go({ filter, where });
  }, chips(columns));
  document.body.classList.toggle("is-similar", Boolean(asked.similar));
  byId("first").hidden = !isFirst(asked);
}

/** The entries of a list to choose from: [value, name] each. */
function choose(id, pairs, value) {
  byId(id).replaceChildren(...pairs.map(([name, label]) => el("option", { value: name }, label)));
  byId(id).value = value;
}

/** The heads that may rank alone; an address may name an encoder, which is a part of one of them. */
function showHeads() {
  const heads = [...new Set(["", ...choices(asked.user), asked.heads])];
  const button = (head) =>
    el("button", { type: "button", "aria-pressed": String(asked.heads === head), onclick: () => go({ heads: head }) }, head ? named(head) : say("headAll"));
  byId("heads").replaceChildren(...heads.map(button));
}

/** What was chosen beside filters, each with a button that takes it away. */
function chips(columns) {
  const made = asked.similar && has.like ? [has.like] : [];
  if (asked.similar) return made;
  if (asked.user) made.push(chip(owned(say("asUser", { user: text(asked.user) }), 120), () => personal("")));
  if (asked.heads) made.push(chip(say("headAlone", { head: named(asked.heads) }), () => go({ heads: "" })));
  const one = columns.find((column) => column.name === asked.distinct);
  if (one && asked.q.trim()) made.push(chip(owned(say("oneOf", { column: text(labelOf(one)) }), 120), () => go({ distinct: "" })));
  return made;
}

/** What the box has, as it is typed. */
function typed() {
  const q = box.value;
  if (q === asked.q && asked.prefix) return;
  go({ q, prefix: true, anyway: false, weak: false, similar: "" }, false);
}

function submitted(event) {
  event.preventDefault();
  go({ q: box.value, prefix: false, anyway: false, weak: false, similar: "", where: byId("where").value.trim(), user: byId("user").value.trim() });
}

function personal(user) {
  if (user === asked.user) return;
  const isLost = choices(asked.user).includes(asked.heads) && !choices(user).includes(asked.heads);
  go({ user, heads: isLost ? "" : asked.heads });
}

function listen() {
  onTyped(box, typed);
  byId("form").addEventListener("submit", submitted);
  byId("why").addEventListener("click", () => showReasons(byId("why").getAttribute("aria-checked") !== "true"));
  byId("more").addEventListener("click", more);
  for (const id of ["sort", "distinct"]) byId(id).addEventListener("change", () => go({ [id]: byId(id).value }));
  const user = byId("user");
  onTyped(user, () => user.value.trim() || personal(""));
  user.addEventListener("change", () => personal(user.value.trim()));
}

/** Filters stand open beside the results, and are folded above them where there is no room. */
function foldFilters() {
  const filters = byId("filters");
  const isWide = matchMedia("(min-width: 50.01rem)");
  const fold = () => {
    filters.open = isWide.matches;
  };
  fold();
  isWide.addEventListener("change", fold);
  byId("done").addEventListener("click", () => {
    filters.open = false;
    filters.querySelector("summary").focus();
  });
}

/** What opens over the page closes when somebody goes on elsewhere. */
function drops() {
  for (const drop of document.querySelectorAll(".drop")) {
    for (const kind of ["pointerdown", "focusin"]) {
      document.addEventListener(kind, ({ target }) => drop.contains(target) || (drop.open = false));
    }
  }
}

/** Close what is open over the page around an element; whether anything was. */
function closeDrops(element) {
  const drop = element.closest?.(".drop[open]");
  if (!drop) return false;
  drop.open = false;
  drop.querySelector("summary").focus();
  return true;
}

const inList = () => document.activeElement?.closest?.("#hits") !== null;
const elsewhere = (event) => event.target !== box && !inList() && event.target !== document.body;

function keys() {
  onKey("/", "/", say("helpSearch"), () => box.focus());
  onKey("ArrowDown", "↓ ↑", say("helpMove"), (event) => !elsewhere(event) && move(1));
  onKey("ArrowUp", "", "", (event) => {
    if (elsewhere(event) || event.target === box) return false;
    if (!move(-1)) box.focus();
    return true;
  });
  onKey("Enter", "Enter", say("helpOpen"), () => false);
  onKey("Escape", "Esc", say("helpEscape"), (event) => {
    if (closeDrops(event.target)) return true;
    if (closeAround(event.target)) return true;
    if (event.target === box) return false;
    box.focus();
    box.select();
    return true;
  });
}

/** What the server has. */
async function learn() {
  // A token that may only search learns nothing of the workspace.
  const closed = (error) => {
    if (error.status !== 403) throw error;
    return { users: 0, columns: [] };
  };
  const [info, there] = await Promise.all([ask("info").catch(closed), ask("facets")]);
  Object.assign(has, { columns: there.columns, addresses: there.addresses, newest: there.newest, users: info.users });
  byId("as-user").classList.remove("waiting");
  byId("as-user").hidden = !info.users;
  byId("condition").hidden = !info.columns.length;
  byId("where-names").textContent = info.columns.map((column) => text(column.name).slice(0, 60)).join(", ");
}

async function start() {
  document.body.classList.toggle("why", reasons || Boolean(asked.heads));
  byId("first").hidden = !isFirst(asked);
  document.body.classList.toggle("is-similar", Boolean(asked.similar));
  begin();
  keys();
  listen();
  drops();
  box.value = asked.q;
  byId("where").value = asked.where;
  byId("user").value = asked.user;
  byId("condition").open = Boolean(asked.where);
  foldFilters();
  try {
    await learn();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    tell(refusal(error), []);
  }
  if (asked.similar) await likeWhat();
  putInOrder();
  controls();
  again();
}

/** Turn the ranges of an address round that have their larger end first. */
function putInOrder() {
  const filter = asked.filter.map((one) => turned(one, has.columns));
  if (filter.every((one, place) => one === asked.filter[place])) return;
  asked.filter = filter;
  remember(address());
}

/** Whose neighbours are shown, as a chip that leads back. */
async function likeWhat() {
  const item = await ask(`items/${encodeURIComponent(asked.similar)}`).catch(() => ({ title: asked.similar }));
  const [before, after] = say("similarTo").split("{title}");
  const shown = el("span", {}, before, owned(item.title, 120), after);
  has.like = chip(shown, () => go({ similar: "" }));
}

start();
