// The list of recommendations: changed in place, each hit with its reasons, what is new marked.
import { byId, el, owned } from "../dom.js";
import { number, say } from "../words.js";
import { actions } from "./entry.js";
import { inFull, inShort, longest } from "./reasons.js";

const shown = new Map();

/** The ids that are listed, in order. */
export const listed = () => [...shown.keys()];

/** Show `hits`. marks: by id {text, kind, more}. act: {like, dislike, rate, leaveOut} of (id, title), leaveOutAll of pairs of these;
 *  full(rank): a promise of the hit at this rank with all its reasons. */
export function showHits(hits, marks, act, full) {
  const list = byId("hits");
  const held = list.contains(document.activeElement) ? document.activeElement : null;
  const place = held ? listed().indexOf(held.closest("[data-item]").dataset.item) : -1;
  const scores = { most: Math.max(0, ...hits.map((hit) => hit.score)), reason: longest(hits) };
  const before = new Map(shown);
  shown.clear();
  for (const hit of hits) {
    const id = String(hit.id);
    const entry = before.get(id) ?? makeEntry(id, act);
    before.delete(id);
    shown.set(id, entry);
    entry.update(hit, marks.get(id), scores, full);
  }
  for (const gone of before.values()) gone.item.remove();
  let at = list.firstElementChild;
  for (const { item } of shown.values()) {
    if (item === at) at = at.nextElementSibling;
    else list.insertBefore(item, at);
  }
  keepFocus(held, place);
}

/** Whatever moved or went, the keyboard stays in the list, at the same place. */
function keepFocus(held, place) {
  if (held === null) return;
  if (held.isConnected) held.focus({ preventScroll: true });
  else [...shown.values()][Math.min(place, shown.size - 1)]?.title.focus();
}

function makeEntry(id, act) {
  const rank = el("span", { class: "rank" });
  const title = el("button", { type: "button", class: "plain title", "aria-expanded": "false" });
  const mark = el("span", { class: "mark-new" });
  const facts = el("span", { class: "quiet facts" });
  const fill = el("span", { class: "bar-fill" });
  const score = el("span", { class: "value" });
  const acts = el("span", { class: "acts" });
  const why = el("div", { class: "why" });
  const all = el("div", { class: "all", hidden: true, id: `all-${id}` });
  title.setAttribute("aria-controls", all.id);
  const item = el(
    "li",
    { class: "hit card", "data-item": id },
    el("div", { class: "head" }, rank, title, mark, acts),
    el("div", { class: "score" }, el("span", { class: "quiet" }, say("score")), el("span", { class: "bar-room", "aria-hidden": "true" }, fill), score, facts),
    why,
    all,
  );
  const entry = { item, title };
  let load = null;
  function setOpen(open) {
    title.setAttribute("aria-expanded", String(open));
    all.hidden = !open;
    why.hidden = open;
    if (open) load();
  }
  title.addEventListener("click", () => setOpen(all.hidden));
  entry.update = (hit, marked, scores, full) => {
    rank.textContent = `${hit.rank}.`;
    title.replaceChildren(owned(hit.title));
    mark.className = `mark-new ${marked?.kind ?? ""}`;
    mark.textContent = marked?.text ?? "";
    facts.textContent = [marked?.more, predicted(hit), hit.cold ? say("cold") : ""].filter(Boolean).join(" · ");
    fill.style.setProperty("width", `${scores.most > 0 ? Math.max(0, (100 * hit.score) / scores.most) : 0}%`);
    score.textContent = number(hit.score, 3);
    const made = actions(id, hit.title, act);
    if (!acts.contains(document.activeElement)) acts.replaceChildren(...made.childNodes);
    why.replaceChildren(...inShort(hit, scores.reason, act.leaveOut));
    load = async () => {
      const found = await full(hit.rank);
      if (found && String(found.id) === id) all.replaceChildren(...inFull(found, act.leaveOut, act.leaveOutAll));
    };
    if (!all.hidden) load();
  };
  return entry;
}

function predicted(hit) {
  if (hit.predicted_rating === undefined) return "";
  return say("predicted", { rating: number(hit.predicted_rating, 1) });
}
