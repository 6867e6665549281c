// The table of words against themselves in another text.
import { el, svg, text } from "../dom.js";
import { number, say } from "../words.js";

/** A row a word: its cosine before any attention and after each layer, as a line and in numbers. */
export function cosineTable({ words, cosines }) {
  const last = cosines.length - 1;
  const courses = words.map((word, i) => ({ word, course: cosines.map((row) => row[i]) }));
  courses.sort((a, b) => a.course[last] - b.course[last]);
  const lowest = Math.min(0, ...cosines.flat());
  const depths = cosines.map((_, depth) => el("th", { scope: "col", class: "number" }, depth ? String(depth) : say("before")));
  const rows = courses.map(({ word, course }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, text(word)),
      el("td", {}, sparkline(course, lowest, say("cosineOf", {
        word: text(word), first: number(course[0]), last: number(course[last]),
      }))),
      ...course.map((cosine) => el("td", { class: "number" }, number(cosine))),
    ),
  );
  const heading = [el("th", { scope: "col" }, say("shared")), el("th", { scope: "col" }, say("course")), ...depths];
  return el("table", { class: "data" }, el("thead", {}, el("tr", {}, heading)), el("tbody", {}, rows));
}

function sparkline(course, lowest, name) {
  const x = (place) => 4 + (112 * place) / Math.max(course.length - 1, 1);
  const y = (cosine) => 3 + 22 * (1 - (cosine - lowest) / (1 - lowest));
  const points = course.map((cosine, place) => `${x(place).toFixed(1)},${y(cosine).toFixed(1)}`).join(" ");
  return svg(
    "svg",
    { width: 120, height: 28, viewBox: "0 0 120 28", role: "img", "aria-label": name },
    svg("line", { class: "axis", x1: 4, x2: 116, y1: y(1), y2: y(1) }),
    svg("line", { class: "axis", x1: 4, x2: 116, y1: y(0), y2: y(0) }),
    svg("polyline", { points }),
  );
}
