// The page with the items in two dimensions: what is asked, what is placed, and what is said of it.
import { ask, latest, query, Refused } from "./api.js";
import { brief, byId, el, onTyped, owned, text } from "./dom.js";
import { family, named } from "./heads.js";
import { fields, useColumns, whole } from "./item_card.js";
import { headingOf } from "./search/cells.js";
import { MapCanvas } from "./map/canvas.js";
import { hideCard, showCard } from "./map/card.js";
import { laid, PLACE } from "./map/plane.js";
import { Points } from "./map/points.js";
import { drawLegend, drawNear } from "./map/side.js";
import { noted, refusal } from "./server.js";
import { announce, begin, onKey, remember, state } from "./shell.js";
import { count, facts, say, share } from "./words.js";

const NO_COLOUR = "-";
const K = 10;
// The head of tastes, which has no place for words.
const TASTE = "collaborative";
// A window as wide as this has a map that lies, another one a map that stands.
const WIDE = matchMedia("(min-width: 40rem)");
const given = state();
const chosen = Object.fromEntries(["query", "user", "head", "colour", "item"].map((name) => [name, given.get(name) ?? ""]));
let answer = null; // of the map with its items
let placed = null; // what is shown among them: {kind, hits, …}
let rowOf = new Map(); // of each id
let plane = laid([0], [0], WIDE.matches); // how the map lies in its box
let pinned = -1; // the item whose card stays, −1 for none

const map = new MapCanvas({ onHover: hover, onPick: pick, onMove: moved });

// --- what is asked ---

const askItems = latest((values) => ask("map", values), showItems, fail);
// A point and an item take each other's place, so that they wait for each other as well.
const askPlace = latest(
  ({ path, values }) => ask(path, values),
  (found, { path, values }) => (path === "similar" ? showItem : showPoint)(found, values),
  fail,
);

function asksItems() {
  keep();
  askItems({ head: chosen.head, colour: chosen.colour });
}

/** What is to be placed, if anything is. */
function asksPlace() {
  keep();
  const { query: words, user, head, item } = chosen;
  if (item !== "") askPlace({ path: "similar", values: { items: item, k: K, fields: fields() } });
  else if (words.trim() || user.trim()) {
    const values = { head, query: words.trim() ? words : "", user, k: K, items: "false", fields: fields() };
    askPlace({ path: "map", values });
  } else {
    askPlace.forget();
    notes(answer?.notes ?? []);
    place(null);
  }
}

function keep() {
  remember(query(chosen));
}

/** What was asked for cannot be had: where it is no such user, in the words of this page. */
function fail(error, asked) {
  const { user } = asked?.values ?? {};
  const isUnknown = error.status === 404 && Boolean(user);
  forgive();
  const note = byId(isUnknown ? "user-fault" : "failed");
  if (isUnknown) {
    const [before, after] = say("noUser").split("{user}");
    note.replaceChildren(before, owned(user, 80), after);
  } else note.replaceChildren(say("failed", { detail: refusal(error) }));
  note.hidden = false;
  byId("user").setAttribute("aria-invalid", String(isUnknown));
  announce(note.textContent);
  document.body.dataset.ready = "";
  // What was placed before is not what was asked for.
  if (asked?.path) place(null);
}

// --- what is shown ---

function showItems(found) {
  const isOther = answer?.head !== found.head || answer?.built !== found.built;
  answer = found;
  rowOf = new Map(found.items.ids.map((id, row) => [String(id), row]));
  options("head", found.heads, found.head, (name) => name);
  showSenses(found);
  const column = found.colour?.column ?? NO_COLOUR;
  options("colour", [...new Set([NO_COLOUR, ...found.columns, column])], column, (name) =>
    name === NO_COLOUR ? say("noColour") : text(headingOf({ name })).slice(0, 60),
  );
  const shares = { n: count(found.n), share: share(found.neighbours_kept), head: found.head };
  const groups = say("groups", { words: found.labels.map((label) => text(label.words)).join("; ") });
  byId("explained").textContent = say("explained", shares);
  byId("over").setAttribute("aria-label", `${say("canvas", { n: count(found.n) })} ${groups}`);
  notes(found.notes);
  layOut(isOther);
  drawLegend(found.colour);
  byId("waits").hidden = true;
  document.body.dataset.ready = "";
  if (isOther || placed === null) asksPlace();
}

/** Lay the map into its box. isOther: whether all of it is to be shown. */
function layOut(isOther) {
  const { items, colour, labels } = answer;
  plane = laid(items.x, items.y, WIDE.matches);
  byId("beside").style.setProperty("--shape", plane.shape);
  const places = items.x.map((x, row) => plane.at(x, items.y[row]));
  const [x, y] = [0, 1].map((axis) => places.map((place) => place[axis]));
  Object.assign(answer, { places });
  map.resize();
  map.load(new Points(x, y), colour, isOther, labels.map((label) => ({ ...label, place: plane.at(label.x, label.y) })));
}

/** What is near means: the same names as the reasons of a search have. */
function showSenses({ heads, head }) {
  const senses = [...new Set(heads.map(family))];
  options("sense", senses, family(head), named);
  byId("sense-field").hidden = senses.length < 2;
}

/** What failed before is told no more. */
function forgive() {
  byId("failed").hidden = byId("user-fault").hidden = true;
  byId("user").setAttribute("aria-invalid", "false");
}

/** What an answer says beside its hits. */
function notes(sentences) {
  forgive();
  byId("notes").replaceChildren(...sentences.map((note) => el("p", { class: "note" }, noted(note))));
}

function options(id, names, value, label) {
  byId(id).replaceChildren(...names.map((name) => el("option", { value: name }, label(name))));
  byId(id).value = value;
}

function showPoint(found, asked) {
  // Another head's place is none on this one's map; once that is there, it is asked for again.
  if (asked.head !== chosen.head) return;
  // A build was published meanwhile: what is drawn is of the one before.
  if (answer !== null && found.built !== answer.built) asksItems();
  else if (answer !== null && found.head !== answer.head) {
    asksItems();
    return;
  }
  notes(found.notes);
  if (found.point === null) {
    place(null);
    announce(say("nothing"));
    return;
  }
  const isQuery = asked.query !== "";
  place({
    kind: isQuery ? "queryHere" : "userHere",
    from: plane.at(found.point.x, found.point.y),
    name: isQuery ? asked.query : asked.user,
    heading: isQuery
      ? say("nearQuery", { query: text(asked.query) })
      : say("nearUser", { user: text(asked.user) }),
    hits: found.point.hits.map((hit) => ({ ...hit, [PLACE]: plane.at(hit.x, hit.y) })),
    said: say("linesSaid", { head: found.head }),
  });
}

function showItem(found, asked) {
  const row = rowOf.get(String(asked.items));
  notes(found.notes);
  if (row === undefined) {
    place(null);
    return;
  }
  const { titles } = answer.items;
  place({
    kind: "item",
    from: answer.places[row],
    name: titles[row],
    heading: say("nearItem", { title: text(titles[row]).slice(0, 80) }),
    hits: found.hits.map((hit) => {
      const at = rowOf.get(String(hit.id));
      return { ...hit, [PLACE]: at === undefined ? null : answer.places[at] };
    }),
    said: say("itemSaid"),
  });
}

/** Something is among the items, with its lines; or nothing, and the middle's are listed. */
function place(what) {
  placed = what;
  const hadFocus = byId("near").contains(document.activeElement) || byId("clear") === document.activeElement;
  byId("clear").hidden = what === null;
  byId("points").classList.toggle("behind", what !== null);
  if (what?.kind !== "item") unpin();
  const drawn = what?.hits.filter((hit) => hit[PLACE] !== null) ?? [];
  map.mark({ from: what?.from ?? null, name: what?.name ?? "", hits: drawn });
  byId("near-said").textContent = what?.said ?? "";
  // What had the focus is gone with the former list.
  if (hadFocus) byId(what === null ? "over" : "clear").focus();
  if (what === null) {
    listMiddle();
    return;
  }
  middle = null;
  drawNear(what.heading, what.hits, rows);
  const who = what.kind === "item" ? text(what.name) : say(what.kind);
  if (what.hits.length) announce(say("placed", { who, n: drawn.length, title: brief(what.hits[0].title) }));
}

const rows = {
  pick: (row) => choose(String(row.id)),
  look: (row) => map.mark({ marked: row?.[PLACE] ?? null }),
};

/** List the items of the middle once their cells are there, which an answer of the map has not; return the first. */
function listMiddle() {
  if (answer === null) return;
  const near = map.middle(K).map(itemOf);
  if (middle === null) drawNear(say("middle"), [], rows);
  middle = near;
  Promise.all(near.map(({ id }) => whole(String(id)))).then((cells) => {
    // Meanwhile another place may be the middle, or something else be listed.
    if (middle !== near) return;
    // The whole cell of the colour's column: a list has its first entry alone as its colour.
    const shown = near.map((row, place) => ({ ...row, ...cells[place], id: row.id, title: row.title, row: row.row }));
    drawNear(say("middle"), shown, rows);
  });
  return near[0];
}

/** An item by its row, with the value that gives it its colour among its cells. A range is no value. */
function itemOf(row) {
  const { items, colour, places } = answer;
  const value = colour?.kind === "ranges" ? undefined : colour?.labels[colour.codes[row]];
  const cells = value === undefined ? {} : { [colour.column]: value };
  return { ...cells, id: items.ids[row], title: items.titles[row], [PLACE]: places[row], row };
}

let settling = 0;
// Whose items are listed where nothing was placed; null where something else is listed.
let middle = null;

/** The map has been moved: what stood beside an item is gone, and once it rests, what is in the middle is told. */
function moved() {
  unpin();
  clearTimeout(settling);
  settling = setTimeout(() => {
    const nearest = placed === null ? listMiddle() : null;
    if (!nearest || !map.hasKeyboard()) return;
    announce(text(nearest.title));
    card(nearest.row);
  }, 200);
}

/** The card of an item, and a ring around it. Beside the mouse; else beside the item. */
function card(row, px, py) {
  const { colour } = answer;
  const value = colour && (colour.labels[colour.codes[row]] ?? say("other"));
  const below = colour ? el("small", {}, owned(headingOf({ name: colour.column }), 40), ": ", owned(value)) : null;
  map.mark({ marked: answer.places[row] });
  const { width, height } = map.view;
  const [x, y] = px === undefined ? map.view.toScreen(...answer.places[row]) : [px, py];
  showCard({ id: String(answer.items.ids[row]), title: answer.items.titles[row] }, below, { px: x, py: y, width, height });
}

/** The mouse is on an item, or on none: then the card of the chosen one is back. */
function hover(row, px, py) {
  if (row >= 0) card(row, px, py);
  else if (pinned >= 0) card(pinned);
  else {
    hideCard();
    map.mark({ marked: null });
  }
}

function unpin() {
  pinned = -1;
  hideCard();
  map.mark({ marked: null });
}

// --- what is chosen ---

/** An item of the map: its card stays, until it is chosen again. */
function pick(row) {
  const id = String(answer.items.ids[row]);
  const isSame = chosen.item === id;
  choose(isSame ? "" : id);
  if (isSame) return;
  pinned = row;
  card(row);
}

/** An item takes the place of a query and a user. */
function choose(id) {
  askPlace.forget();
  Object.assign(chosen, { item: id, query: "", user: "" });
  fill();
  asksPlace();
}

function clear() {
  choose("");
  map.showAll();
}

function fill() {
  for (const id of ["query", "user"]) byId(id).value = chosen[id];
}

function start() {
  // Without a log there are neither users nor tastes. Nothing moves once the map says so.
  for (const id of ["user-field", "sense-field"]) byId(id).hidden = !facts.users;
  onTyped(byId("query"), () => {
    Object.assign(chosen, { query: byId("query").value, user: "", item: "" });
    byId("user").value = "";
    if (chosen.query.trim() && chosen.head === TASTE) {
      chosen.head = "";
      asksItems();
    }
    asksPlace();
  });
  // Ids have no beginnings that could be asked for.
  const takeUser = () => {
    if (byId("user").value === chosen.user) return;
    Object.assign(chosen, { user: byId("user").value, query: "", item: "" });
    byId("query").value = "";
    asksPlace();
  };
  byId("user").addEventListener("change", takeUser);
  byId("user").addEventListener("search", takeUser);
  for (const id of ["head", "colour"]) {
    byId(id).addEventListener("change", () => {
      chosen[id] = byId(id).value;
      asksItems();
    });
  }
  byId("sense").addEventListener("change", ({ target }) => {
    // The first is the one that the server takes where none is named.
    chosen.head = target.value === TASTE ? TASTE : "";
    if (chosen.head === TASTE && chosen.query) {
      Object.assign(chosen, { query: "" });
      fill();
      place(null);
    }
    asksItems();
  });
  byId("asked").addEventListener("submit", (event) => {
    event.preventDefault();
    takeUser();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => answer && drawLegend(answer.colour));
  WIDE.addEventListener("change", () => {
    if (answer === null) return;
    layOut(true);
    asksPlace();
  });
  byId("clear").addEventListener("click", clear);
  const sizes = { in: () => map.zoom(1.5), out: () => map.zoom(1 / 1.5), all: () => map.showAll() };
  for (const button of byId("zoom").children) button.addEventListener("click", sizes[button.value]);
  onKey("/", "/", say("helpSearch"), () => byId("query").select());
  onKey("+", "+ − 0", say("zoom"), sizes.in);
  onKey("=", "", "", sizes.in);
  onKey("-", "", "", sizes.out);
  onKey("0", "", "", sizes.all);
  onKey("none", "← ↑ ↓ →", say("pan"), () => false);
  onKey("none", "Enter", say("pick"), () => false);
  onKey("Escape", "Esc", say("helpEscape"), (event) => {
    if (event.target.matches("input")) return false; // it empties itself
    if (placed !== null) clear();
    byId("query").focus();
    return true;
  });
  begin();
  fill();
}

async function open() {
  start();
  try {
    useColumns(await ask("facets"));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    fail(error);
    return;
  }
  asksItems();
}

open();
