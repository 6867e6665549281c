// Beside the map: what its colours mean, and the same in words and numbers for whoever cannot see it.
import { byId, el, owned, text } from "../dom.js";
import { number, say } from "../words.js";
import { sprites } from "./colours.js";

/** The legend of an answer's `colour`, which may be null. */
export function drawLegend(colour) {
  byId("legend-box").hidden = colour === null;
  if (colour === null) return;
  byId("legend-title").replaceChildren(owned(say("byColumn", { column: colour.column }), 80));
  const made = sprites(colour.kind, colour.labels.length, 14, devicePixelRatio);
  const names = [...colour.labels, say("other")];
  byId("legend").replaceChildren(
    ...names.map((name, code) => {
      const drawn = made[code];
      drawn.style.width = drawn.style.height = `${drawn.width / devicePixelRatio}px`;
      return el("li", {}, drawn, owned(name));
    }),
  );
  for (const canvas of byId("legend").querySelectorAll("canvas")) canvas.setAttribute("aria-hidden", "true");
  byId("legend-said").textContent = say(colour.kind === "ranges" ? "legendRanges" : "legendValues");
}

/** The table under a heading: a row an item, `amount` as it is said, `kind` what it is. `pick(row)`
 *  chooses one, `look(row)` points at it. */
export function drawNear(heading, rows, kind, { pick, look }) {
  byId("near-title").replaceChildren(owned(heading, 160));
  const columns = el(
    "tr",
    {},
    el("th", { scope: "col" }, say("title")),
    el("th", { scope: "col", class: "number" }, say(kind)),
  );
  const lines = rows.map((row) => {
    const choose = el(
      "button",
      { type: "button", class: "plain", onclick: () => pick(row), onfocus: () => look(row), onblur: () => look(null) },
      owned(row.title, 100),
    );
    const where = row.x === null ? el("small", { class: "quiet" }, ` (${say("notDrawn")})`) : null;
    return el(
      "tr",
      { onmouseenter: () => look(row), onmouseleave: () => look(null) },
      el("td", {}, choose, where),
      el("td", { class: "number far" }, number(row[kind], 3)),
    );
  });
  byId("near").replaceChildren(
    el("caption", { class: "hidden-visually" }, text(heading)),
    el("thead", {}, columns),
    el("tbody", {}, lines),
  );
}
