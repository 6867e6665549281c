// Tables of pages that list what the server has.
import { el } from "./dom.js";
import { say } from "./words.js";

/** A table that scrolls by itself where it is wider than the window. */
export function table(name, headings, rows) {
  const head = el("tr", {}, headings.map((heading) => el("th", { scope: "col" }, heading)));
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": say("scrolls", { name }) },
    el("table", {}, el("thead", {}, head), el("tbody", {}, rows)),
  );
}

/** A row, which its first cell is the heading of. */
export const row = (...cells) => el("tr", {}, cells.map((cell, place) => el(place ? "td" : "th", { scope: place ? null : "row" }, cell)));
