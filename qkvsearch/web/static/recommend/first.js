// Before anything is chosen: items that many people chose, and three choices to begin with.
import { byId, el, owned } from "../dom.js";
import { about, kindOf, pictureOf, readTogether } from "../item_card.js";
import { say } from "../words.js";
import { actions } from "./entry.js";

const EXAMPLES = 3;

/** Cards of items to choose from. rows: of `items`, with the cells that cards show. */
export function showPopular(rows, act) {
  const held = document.activeElement?.closest("#most-met > li")?.dataset.item;
  readTogether(rows);
  byId("most-met").replaceChildren(...rows.map((row) => card(row, act)));
  if (held !== undefined) byId("most-met").querySelector(`[data-item="${CSS.escape(held)}"] button`)?.focus({ preventScroll: true });
}

function card(row, act) {
  const id = String(row.id);
  const acts = el("div", { class: "acts" }, ...actions(id, row.title, act, true).childNodes);
  const body = [pictureOf(row), el("div", {}, about(row))].filter(Boolean);
  return el("li", { class: "hit card", "data-item": id }, el("div", { class: "about" }, body), acts);
}

/** Links that choose one of the items, each of another kind where there are several. */
export function showExamples(rows, isWanted) {
  byId("examples").hidden = !isWanted || !rows.length;
  const first = [...Map.groupBy(rows, kindOf).values()].map(([row]) => row);
  const links = [...new Set([...first, ...rows])]
    .slice(0, EXAMPLES)
    .map(({ id, title }) => el("a", { class: "chip", href: `?likes=${encodeURIComponent(id)}` }, owned(title, 80)));
  byId("examples").replaceChildren(el("span", { class: "quiet" }, say("tryThese")), ...links);
}
