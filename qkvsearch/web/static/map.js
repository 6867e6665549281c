// The page with the items in two dimensions: what is asked, what is placed, and what is said of it.
import { ask, latest, query } from "./api.js";
import { brief, byId, el, onTyped, owned, text } from "./dom.js";
import { MapCanvas } from "./map/canvas.js";
import { Points } from "./map/points.js";
import { drawLegend, drawNear } from "./map/side.js";
import { announce, begin, onKey, remember, state } from "./shell.js";
import { count, facts, say, share } from "./words.js";

const NO_COLOUR = "-";
const K = 10;
const given = state();
const chosen = Object.fromEntries(["query", "user", "head", "colour", "item"].map((name) => [name, given.get(name) ?? ""]));
let answer = null; // of the map with its items
let placed = null; // what is shown among them: {kind, hits, …}
let rowOf = new Map(); // of each id

const map = new MapCanvas({ onHover: hover, onPick: pick, onMove: settle });

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
  if (item !== "") askPlace({ path: "similar", values: { items: item, k: K } });
  else if (words.trim() || user.trim()) {
    const values = { head, query: words.trim() ? words : "", user, k: K, items: "false" };
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

function fail(error) {
  byId("failed").textContent = say("failed", { detail: text(error.message) });
  byId("failed").hidden = false;
  announce(error.message);
}

// --- what is shown ---

function showItems(found) {
  const isOther = answer?.head !== found.head || answer?.built !== found.built;
  answer = found;
  rowOf = new Map(found.items.ids.map((id, row) => [String(id), row]));
  options("head", found.heads, found.head, (name) => name);
  const column = found.colour?.column ?? NO_COLOUR;
  options("colour", [...new Set([NO_COLOUR, ...found.columns, column])], column, (name) =>
    name === NO_COLOUR ? say("noColour") : text(name).slice(0, 60),
  );
  const shares = { n: count(found.n), share: share(found.neighbours_kept), head: found.head };
  const groups = say("groups", { words: found.labels.map((label) => text(label.words)).join("; ") });
  byId("explained").textContent = say("explained", shares);
  byId("over").setAttribute("aria-label", `${say("canvas", { n: count(found.n) })} ${groups}`);
  notes(found.notes);
  map.load(new Points(found.items.x, found.items.y), found.colour, isOther, found.labels);
  drawLegend(found.colour);
  if (isOther || placed === null) asksPlace();
}

/** What an answer says beside its hits; what failed before it is told no more. */
function notes(sentences) {
  byId("failed").hidden = true;
  byId("notes").replaceChildren(...sentences.map((note) => el("p", { class: "note" }, owned(note, 1000))));
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
    from: [found.point.x, found.point.y],
    name: isQuery ? asked.query : asked.user,
    heading: isQuery
      ? say("nearQuery", { head: found.head, query: text(asked.query) })
      : say("nearUser", { head: found.head, user: text(asked.user) }),
    hits: found.point.hits,
    said: say("linesSaid"),
  });
}

function showItem(found, asked) {
  const row = rowOf.get(String(asked.items));
  notes(found.notes);
  if (row === undefined) {
    place(null);
    return;
  }
  const { x, y, titles } = answer.items;
  place({
    kind: "item",
    from: [x[row], y[row]],
    name: titles[row],
    heading: say("nearItem", { title: text(titles[row]).slice(0, 80) }),
    hits: found.hits.map((hit) => {
      const at = rowOf.get(String(hit.id));
      return { ...hit, x: at === undefined ? null : x[at], y: at === undefined ? null : y[at] };
    }),
    said: say("itemSaid"),
  });
}

/** Something is among the items, with its lines; or nothing, and the middle's are listed. */
function place(what) {
  placed = what;
  const hadFocus = byId("near").contains(document.activeElement) || byId("clear") === document.activeElement;
  byId("clear").hidden = what === null;
  const drawn = what?.hits.filter((hit) => hit.x !== null) ?? [];
  map.mark({ from: what?.from ?? null, name: what?.name ?? "", hits: drawn });
  byId("near-said").textContent = what?.said ?? "";
  // What had the focus is gone with the former list.
  if (hadFocus) byId(what === null ? "over" : "clear").focus();
  if (what === null) {
    listMiddle();
    return;
  }
  drawNear(what.heading, what.hits, "score", rows);
  const who = what.kind === "item" ? text(what.name) : say(what.kind);
  if (what.hits.length) announce(say("placed", { who, n: drawn.length, title: brief(what.hits[0].title) }));
}

const rows = {
  pick: (row) => choose(String(row.id)),
  look: (row) => map.mark({ marked: row && row.x !== null ? [row.x, row.y] : null }),
};

function listMiddle() {
  if (answer === null) return;
  const { ids, titles, x, y } = answer.items;
  const near = map.middle(K).map((i) => ({
    id: ids[i], title: titles[i], x: x[i], y: y[i], distance: Math.hypot(x[i] - map.view.x, y[i] - map.view.y),
  }));
  drawNear(say("middle"), near, "distance", rows);
  return near[0];
}

let settling = 0;

/** The map has been moved: once it rests, what is in the middle is told. */
function settle() {
  clearTimeout(settling);
  settling = setTimeout(() => {
    const nearest = placed === null ? listMiddle() : null;
    const hasFocus = document.activeElement === byId("over");
    if (nearest && hasFocus) announce(text(nearest.title));
  }, 200);
}

/** A name beside the mouse. */
function hover(i, px, py) {
  const tip = byId("tip");
  tip.hidden = i < 0;
  map.mark({ marked: i < 0 ? null : [answer.items.x[i], answer.items.y[i]] });
  if (i < 0) return;
  const { colour } = answer;
  const value = colour && (colour.labels[colour.codes[i]] ?? say("other"));
  const below = colour ? el("small", {}, owned(colour.column, 40), ": ", owned(value)) : null;
  tip.replaceChildren(owned(answer.items.titles[i]), below ?? "");
  const { width, height } = map.view;
  const left = px > width / 2 ? px - tip.offsetWidth - 14 : px + 14;
  const top = py > height / 2 ? py - tip.offsetHeight - 10 : py + 10;
  tip.style.transform = `translate(${Math.max(left, 0)}px, ${Math.max(top, 0)}px)`;
}

// --- what is chosen ---

function pick(i) {
  const id = String(answer.items.ids[i]);
  choose(chosen.item === id ? "" : id);
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
  byId("user-field").hidden = !facts.users;
  for (const [id, other] of [["query", "user"], ["user", "query"]]) {
    onTyped(byId(id), () => {
      Object.assign(chosen, { [id]: byId(id).value, [other]: "", item: "" });
      byId(other).value = "";
      asksPlace();
    });
  }
  for (const id of ["head", "colour"]) {
    byId(id).addEventListener("change", () => {
      chosen[id] = byId(id).value;
      asksItems();
    });
  }
  byId("asked").addEventListener("submit", (event) => event.preventDefault());
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
  asksItems();
}

start();
