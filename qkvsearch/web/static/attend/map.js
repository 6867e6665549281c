// The map of a head: a table of numbers on shades, or shades alone where words are many.
import { el, text } from "../dom.js";
import { say } from "../words.js";
import { shade } from "./heads.js";
import { tint } from "./shades.js";

// More rows and columns than this are no table that anyone reads.
export const MOST = 64;
const STANDS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;

/** The map in `box`. `look(i)` and `choose(i)`: a row is pointed at, or chosen. */
export class WeightMap {
  constructor(box, { look, choose }) {
    this.box = box;
    this.on = { look, choose };
  }

  draw(words, weights, name) {
    this.rows = [];
    if (words.length > MOST) {
      const canvas = el("canvas", { class: "map", role: "img", "aria-label": name });
      shade(canvas, weights);
      this.box.replaceChildren(canvas);
      return;
    }
    // Letters lie on their side and are read from below; characters of East Asia stand, from above.
    const heading = words.map((word) => el("th", { scope: "col", class: STANDS.test(word) ? "stands" : null }, text(word)));
    this.rows = weights.map((row, i) =>
      el(
        "tr",
        { onmouseenter: () => this.on.look(i), onclick: () => this.on.choose(i) },
        el("th", { scope: "row" }, text(words[i])),
        row.map(cell),
      ),
    );
    const table = el(
      "table",
      { class: "map" },
      el("caption", { class: "hidden-visually" }, name),
      el("thead", {}, el("tr", {}, el("td"), heading)),
      el("tbody", {}, this.rows),
    );
    this.box.replaceChildren(table);
  }

  /** Mark the row of the chosen word. */
  show(i) {
    this.rows.forEach((row, place) => row.classList.toggle("chosen", place === i));
  }
}

function cell(weight) {
  if (weight === null) return el("td", { class: "off" }, el("span", { class: "hidden-visually" }, say("hidden")), "·");
  return el("td", { style: { background: tint(weight) } }, Math.round(weight * 100));
}
