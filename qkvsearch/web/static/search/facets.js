// Facets to click, and what was chosen of them. Values are those of the server, which reads them back.
import { byId, el, owned, text } from "../dom.js";
import { count, say } from "../words.js";
import { headingOf, valueOf } from "./cells.js";
import { dates, onceTyped, slider } from "./range.js";

const FEW = 6;
// As many values of a column as the server tells at most.
const MOST = 20;
const opened = new Set();

/** The lists. columns: {name, shown_as, is_text, unit} each; facets: counts by column; chosen: "column:value" each;
 *  change: told the new list of these. */
export function showFacets(columns, facets, chosen, change) {
  onceTyped(() => drawFacets(columns, facets, chosen, change));
}

function drawFacets(columns, facets, chosen, change) {
  const focused = document.activeElement?.dataset?.filter;
  const again = () => showFacets(columns, facets, chosen, change);
  const groups = columns.map((column) => group(column, facets[column.name] ?? {}, chosen, change, again));
  byId("facets").replaceChildren(...groups.filter((one) => one !== null));
  if (focused) byId("facets").querySelector(`[data-filter="${CSS.escape(focused)}"]`)?.focus();
}

const chosenOf = (column, chosen) =>
  chosen.filter((one) => one.startsWith(`${column.name}:`)).map((one) => one.slice(column.name.length + 1));

/** Texts by their counts, numbers and dates by their size: an object has what looks like a whole number first. */
function inOrder(column, counts) {
  const values = Object.keys(counts);
  if (column.is_text) return values.sort((one, other) => counts[other] - counts[one]);
  if (!column.is_ordered) return values;
  return values.sort((one, other) => Number.parseFloat(one) - Number.parseFloat(other));
}

function group(column, counts, chosen, change, again) {
  const mine = chosenOf(column, chosen);
  const others = chosen.filter((one) => !one.startsWith(`${column.name}:`));
  const put = (value) => change(value ? [...others, `${column.name}:${value}`] : others);
  const range = slider(column, counts, mine, put);
  if (range) return el("fieldset", {}, range);
  // What was chosen stays, even where nothing has it any more.
  const values = [...new Set([...mine.filter((value) => !(value in counts)), ...inOrder(column, counts)])];
  if (!values.length) return null;
  const all = opened.has(column.name);
  const rows = values
    .filter((value, place) => all || place < FEW || mine.includes(value))
    .map((value) => row(column, value, counts[value], chosen, change));
  const cut = all && Object.keys(counts).length === MOST;
  return el(
    "fieldset",
    {},
    el("legend", {}, owned(headingOf(column), 60)),
    dates(column, counts, mine, put),
    el("ul", {}, rows),
    cut ? el("p", { class: "quiet" }, say("mostFrequent", { n: MOST })) : null,
    values.length > FEW ? toggle(column, all, values.length, again) : null,
  );
}

function row(column, value, n, chosen, change) {
  const filter = `${column.name}:${value}`;
  const box = el("input", { type: "checkbox", checked: chosen.includes(filter), "data-filter": filter });
  box.addEventListener("change", () =>
    change(box.checked ? [...chosen, filter] : chosen.filter((one) => one !== filter)),
  );
  const counted = el("span", { class: "quiet" }, n === undefined ? "" : count(n));
  return el("li", {}, el("label", {}, box, el("span", {}, owned(valueOf(column, value), 80)), counted));
}

function toggle(column, all, n, again) {
  const run = () => {
    if (all) opened.delete(column.name);
    else opened.add(column.name);
    again();
  };
  const attributes = { type: "button", class: "plain", "aria-expanded": String(all), onclick: run };
  attributes["data-filter"] = `${column.name} `;
  return el("button", attributes, all ? say("fewer") : say("allOf", { n: count(n) }));
}

/** A button with what it takes away. */
export const chip = (label, without) =>
  el("button", { type: "button", class: "chip", onclick: without }, label, el("span", { "aria-hidden": "true" }, " ×"));

/** What was chosen, each with a button that takes it away; others: such buttons that come first. */
export function showChosen(columns, chosen, where, change, others = []) {
  const chips = chosen.map((filter) => {
    const column = columns.find((one) => filter.startsWith(`${one.name}:`)) ?? { name: filter.split(":")[0] };
    const value = text(valueOf(column, filter.slice(column.name.length + 1))).slice(0, 80);
    const name = text(`${headingOf(column)}: ${value}`).slice(0, 120);
    const made = chip(owned(name), () => change(chosen.filter((one) => one !== filter), where));
    made.setAttribute("aria-label", say("drop", { filter: name }));
    return made;
  });
  if (where) chips.push(chip(owned(where, 120), () => change(chosen, "")));
  byId("n-filters").textContent = chips.length ? `(${count(chips.length)})` : "";
  if (chips.length > 1) chips.push(el("button", { type: "button", class: "plain clear", onclick: () => change([], "") }, say("clear")));
  byId("chosen").replaceChildren(...others, ...chips);
}
