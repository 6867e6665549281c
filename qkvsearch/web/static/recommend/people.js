// Whom it is for: what the visitor chose, and the history of a user of the log.
import { ask } from "../api.js";
import { brief, byId, el, owned } from "../dom.js";
import { count, facts, number, say } from "../words.js";
import { choice, chosen, rename } from "./choice.js";
import { actions, rating, ratingsOf, standing } from "./entry.js";
import { isRated } from "./ratings.js";

const PAGE = 20;
// What is known of the history, and whose it is.
let owner = "";
let rows = [];
let total = 0;

/** Titles by id, from wherever one was met. */
export const titles = new Map();
/** Ids in the address that the catalog does not have. */
export const missing = new Set();

export const titleOf = (id) => titles.get(id) ?? id;

/** Titles of ids that only the address named. */
export async function learnTitles() {
  const unknown = [...new Set([...chosen.keys(), ...choice.without])].filter((id) => !titles.has(id) && !missing.has(id));
  for (let start = 0; start < unknown.length; start += 6) {
    await Promise.all(unknown.slice(start, start + 6).map(learnTitle));
  }
}

async function learnTitle(id) {
  try {
    const found = await ask(`items/${encodeURIComponent(id)}`);
    const own = String(found.id);
    titles.set(own, found.title);
    if (own !== id) rename(id, own);
  } catch (error) {
    if (error.status === 404) missing.add(id);
    else throw error;
  }
}

/** One line: a title that a click leaves out or brings back, what is known, and what can be done. */
function entry(id, title, facts, act, more) {
  const isOut = choice.without.has(id);
  return el(
    "li",
    { class: isOut ? "entry out" : "entry", "data-item": id },
    el(
      "button",
      { type: "button", class: "plain title", "aria-pressed": String(isOut), title: say(isOut ? "bringBack" : "leaveOut"), onclick: () => act.leaveOut(id, title) },
      owned(title, 120),
    ),
    el("span", { class: "quiet" }, facts),
    more,
  );
}

/** The visitor's own list. */
export function showChosen(act) {
  const held = heldIn("chosen");
  byId("chosen-part").hidden = !chosen.size;
  byId("chosen").replaceChildren(
    ...[...chosen].map(([id]) => {
      const title = titleOf(id);
      const remove = el(
        "button",
        { type: "button", class: "sign", title: say("remove"), "aria-label": say("actOn", { act: say("remove"), title: brief(title) }), onclick: () => act.remove(id, title) },
        "×",
      );
      const told = missing.has(id) ? say("notHere") : standing(id);
      const rates = isRated() ? ratingsOf(id, title, act) : null;
      return entry(id, title, told, act, el("span", { class: "acts" }, rates, remove));
    }),
  );
  giveBack("chosen", held);
}

/** What a user did, from the beginning, or `more` of it. Raises `Refused`. */
export async function loadHistory(more = false) {
  const user = choice.user;
  if (user !== owner) [owner, rows, total] = [user, [], 0];
  if (!user) return;
  const before = more ? rows : [];
  const k = Math.min(PAGE, facts.most);
  const found = await ask(`users/${encodeURIComponent(user)}/history`, { k, offset: before.length });
  if (user !== choice.user) return;
  rows = [...before, ...found.rows];
  total = found.total;
  for (const row of found.rows) titles.set(String(row.id), row.title);
}

/** That list. */
export function showHistory(act) {
  const held = heldIn("history");
  byId("history-part").hidden = !choice.user;
  byId("user-now").hidden = !choice.user;
  byId("user-name").replaceChildren(owned(choice.user, 60));
  byId("history-heading").replaceChildren(say("historyOf"), " ", owned(choice.user, 60));
  byId("history-count").textContent = say("historyShown", { n: count(rows.length), total: count(total) });
  byId("history-more").hidden = rows.length >= total;
  byId("history").replaceChildren(
    ...rows.map((row) => entry(String(row.id), row.title, told(row), act, actions(String(row.id), row.title, act))),
  );
  giveBack("history", held);
}

/** What is known of one row, the visitor's own word first. */
function told(row) {
  const parts = [standing(String(row.id))];
  if (row.rating !== null && row.rating !== undefined) parts.push(say("ratedThen", { rating: rating(row.rating) }));
  if (row.weight !== null && row.weight !== undefined) parts.push(say("weighed", { weight: number(row.weight, 1) }));
  if (row.confidence === 0) parts.push(say("countsNothing"));
  return parts.filter(Boolean).join(" · ");
}

/** Where the keyboard is in a list that is about to be made again. */
function heldIn(list) {
  const held = document.activeElement;
  if (!byId(list).contains(held)) return null;
  const item = held.closest("[data-item]");
  const place = [...byId(list).children].indexOf(item);
  return { id: item.dataset.item, place, control: [...item.querySelectorAll("button, select")].indexOf(held) };
}

function giveBack(list, held) {
  if (held === null) return;
  const items = [...byId(list).children];
  const item = items.find((one) => one.dataset.item === held.id) ?? items[Math.min(held.place, items.length - 1)];
  const same = item?.dataset.item === held.id;
  const control = item?.querySelectorAll("button, select")[same ? held.control : 0] ?? byId("box");
  control.focus({ preventScroll: true });
}
