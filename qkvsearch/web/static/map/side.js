// Beside the map: what its colours mean, and the items that it is about, as the search page shows them.
import { byId, el, owned } from "../dom.js";
import { about, pictureOf, readTogether } from "../item_card.js";
import { labelOf } from "../search/cells.js";
import { say } from "../words.js";
import { sprites } from "./colours.js";
import { PLACE } from "./plane.js";

const SIZE = 16;

/** The mark of a code as it is in the map, for a list. made: of `sprites`. */
function mark(drawn) {
  drawn.style.width = drawn.style.height = `${drawn.width / devicePixelRatio}px`;
  drawn.setAttribute("aria-hidden", "true");
  return drawn;
}

/** The legend of an answer's `colour`, which may be null. */
export function drawLegend(colour) {
  byId("legend-box").hidden = colour === null;
  byId("legend-said").hidden = colour === null;
  if (colour === null) return;
  byId("legend-title").replaceChildren(owned(say("byColumn", { column: labelOf({ name: colour.column }) }), 80));
  const made = sprites(colour.kind, colour.labels.length, SIZE, devicePixelRatio);
  const hasOthers = colour.codes.some((code) => code < 0);
  const names = hasOthers ? [...colour.labels, say("other")] : colour.labels;
  byId("legend").replaceChildren(...names.map((name, code) => el("li", {}, mark(made[code]), owned(name))));
  byId("legend-said").textContent = say(colour.kind === "ranges" ? "legendRanges" : "legendValues");
}

/** The list under a heading. rows: items, with their cells where these are known; `pick(row)` chooses one, `look(row)`
 *  points at it. */
export function drawNear(heading, rows, { pick, look }) {
  readTogether(rows);
  byId("near-title").replaceChildren(owned(heading, 160));
  byId("near").replaceChildren(...rows.map((row) => line(row, pick, look)));
}

function line(row, pick, look) {
  const choose = el("button", { type: "button", class: "plain pick", "aria-label": say("pickTitle", { title: row.title }), onclick: () => pick(row) }, say("pickThis"));
  const where = row[PLACE] === null ? el("span", { class: "quiet" }, say("notDrawn")) : choose;
  const said = el("div", {}, about(row), el("p", {}, where));
  return el(
    "li",
    { "data-item": String(row.id), onmouseenter: () => look(row), onmouseleave: () => look(null), onfocusin: () => look(row), onfocusout: () => look(null) },
    pictureOf(row),
    said,
  );
}
