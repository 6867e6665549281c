// The recommendations: cards in groups by what they rest on, changed in place, what is new marked.
import { brief, byId, el } from "../dom.js";
import { about, pictureOf, readTogether } from "../item_card.js";
import { announce } from "../shell.js";
import { ShownNumbers } from "../waterfall.js";
import { number, say } from "../words.js";
import { actions } from "./entry.js";
import { groupsOf, reasonOf } from "./groups.js";
import { everyPart, gone, waterfall } from "./reasons.js";

const shown = new Map();

/** The ids that are listed, by rank. */
export const listed = () => [...shown.keys()];

/** Show `hits`. marks: by id {text, kind, more}. act: {like, dislike, rate, leaveOut} of (id, title), leaveOutAll of pairs of these;
 *  full(rank): a promise of the hit at this rank with all its reasons. */
export function showHits(hits, marks, act, full) {
  const list = byId("hits");
  const held = list.contains(document.activeElement) ? document.activeElement : null;
  const place = held ? cards().indexOf(held.closest("[data-item]")) : -1;
  const before = new Map(shown);
  readTogether(hits);
  shown.clear();
  for (const hit of hits) {
    const id = String(hit.id);
    const entry = before.get(id) ?? makeEntry(id, act);
    shown.set(id, entry);
    entry.update(hit, marks.get(id), full);
  }
  list.replaceChildren(...groupsOf(hits).map(group));
  keepFocus(held, place);
}

/** A heading and the cards below it. */
function group({ key, heading, hits }) {
  const title = el("h3", { class: "rests-on" }, heading);
  return el("section", { "data-group": key }, title, el("ol", { class: "cards", role: "list" }, hits.map((hit) => shown.get(String(hit.id)).item)));
}

const cards = () => [...byId("hits").querySelectorAll("[data-item]")];

/** Whatever moved or went, the keyboard stays in the list, at the same place. */
function keepFocus(held, place) {
  if (held === null) return;
  if (held.isConnected) held.focus({ preventScroll: true });
  else cards()[Math.min(place, shown.size - 1)]?.querySelector(".title").focus();
}

function makeEntry(id, act) {
  const body = el("div", { class: "about" });
  const acts = el("div", { class: "acts" });
  const why = el("button", { type: "button", class: "plain opens", "aria-expanded": "false", "aria-controls": `all-${id}` }, say("why"));
  const reason = el("span", { class: "reason-line" });
  const all = el("div", { class: "all", hidden: true, id: `all-${id}` });
  const item = el("li", { class: "hit card", "data-item": id }, body, el("p", { class: "because" }, reason, " ", why), all, acts);
  let load = null;
  function setOpen(open) {
    why.setAttribute("aria-expanded", String(open));
    all.hidden = !open;
    if (open) load();
  }
  why.addEventListener("click", () => setOpen(all.hidden));

  function update(hit, marked, full) {
    const held = body.contains(document.activeElement);
    body.replaceChildren(...bodyOf(hit, marked));
    if (held) body.querySelector(".title").focus({ preventScroll: true });
    reason.replaceChildren(...reasonOf(hit));
    why.setAttribute("aria-label", say("whyTitle", { title: brief(hit.title) }));
    if (!acts.contains(document.activeElement)) acts.replaceChildren(...actions(id, hit.title, act, true).childNodes);
    load = () => explain(all, hit, act, full);
    if (!all.hidden) load();
  }
  return { item, update };
}

/** What a card says of the item, and of its place in the list. */
function bodyOf(hit, marked) {
  const kind = `mark-new ${marked?.kind ?? ""}`;
  const mark = marked?.text ? el("p", { class: kind, title: marked.more || null }, marked.text) : null;
  const facts = [predicted(hit), hit.cold ? say("cold") : ""].filter(Boolean).join(" · ");
  const said = el("div", {}, about(hit, "h4"), facts ? el("p", { class: "quiet" }, facts) : null, mark);
  return [pictureOf(hit), said].filter(Boolean);
}

/** The reasons that are known at once, and then what the server says when it is asked for them all. */
async function explain(place, hit, act, full) {
  const numbers = new ShownNumbers();
  const first = waterfall(hit, act.leaveOut, numbers);
  place.replaceChildren(first);
  announce(say("explained", { title: brief(hit.title), score: number(hit.score, 3) }));
  const found = await full(hit.rank);
  // Meanwhile another list may have come.
  if (!found || found.id !== hit.id || first.parentElement !== place) return;
  const more = found.because.length > hit.because.length ? everyPart(found, act.leaveOut, numbers) : null;
  place.append(...[more, gone(found, act.leaveOutAll)].filter(Boolean));
}

/** Open or close the reasons of an item that is listed. */
export function toggleWhy(id) {
  byId("hits").querySelector(`[data-item="${CSS.escape(id)}"] .opens`)?.click();
}

function predicted(hit) {
  if (hit.predicted_rating === undefined) return "";
  return say("predicted", { rating: number(hit.predicted_rating, 1) });
}
