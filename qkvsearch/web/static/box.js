// A search box for the pages of other sites: one tag, no framework, no cookies. `box.py` makes one script of this, of
// the modules that it imports, and of `TEXTS`, the sentences of all languages.
//
// A combobox whose list is a grid (WAI-ARIA APG): a row for each hit, with a cell for the hit and one for its reasons.
// The focus stays in the input, and `aria-activedescendant` says which cell the keys are at.
import { address, brief, el, isComposing, onTyped, owned } from "./dom.js";
import { money, number, reasonsAddingUp, signed } from "./numbers.js";
import { translated } from "./search/translated.js";
import { filled } from "./sentences.js";

/* global TEXTS */
const HITS = 6;
const WAIT_MS = 150;
// The names between the braces of a template such as https://shop.example/item/{id}.
const BRACES = /\{([^{}]+)\}/g;
const STYLE = `
  :host { display: block; position: relative; max-width: 40rem; }
  * { box-sizing: border-box; }
  [hidden] { display: none !important; }
  input { width: 100%; padding: .5em .75em; font: inherit; color: CanvasText; background: Canvas;
    border: 1px solid color-mix(in srgb, CanvasText 55%, Canvas); border-radius: .4em; }
  .popup { position: absolute; z-index: 1000; inset-inline: 0; top: calc(100% + .25em); max-height: min(70vh, 32em);
    overflow-y: auto; color: CanvasText; background: Canvas; border: 1px solid color-mix(in srgb, CanvasText 30%, Canvas);
    border-radius: .4em; box-shadow: 0 .25em 1em rgb(0 0 0 / .2); }
  [role=row] { display: flex; border-bottom: 1px solid color-mix(in srgb, CanvasText 12%, Canvas); }
  [role=gridcell] { padding: .5em .75em; cursor: pointer; }
  [role=gridcell]:hover, .active { background: color-mix(in srgb, CanvasText 9%, Canvas); }
  .active { outline: 2px solid; outline-offset: -2px; }
  .hit { display: flex; gap: .75em; align-items: center; flex: 1; min-width: 0; }
  .hit a { display: contents; color: inherit; text-decoration: none; }
  .title { flex: 1; min-width: 0; overflow-wrap: anywhere; }
  .price { font-variant-numeric: tabular-nums; white-space: nowrap; }
  .image, img { width: 3em; height: 3em; object-fit: contain; }
  .why, .more { font-size: .85em; align-self: stretch; display: grid; place-items: center; }
  .more { flex: 1; }
  .reasons { font-size: .85em; padding: .25em 1.5em .75em; flex: 1; cursor: auto; }
  .reasons p { display: flex; justify-content: space-between; gap: 1em; margin: .15em 0; overflow-wrap: anywhere; }
  .reasons span { white-space: nowrap; }
  .reasons p:last-child { border-top: 1px solid; font-weight: bold; }
  .note { margin: 0; padding: .5em .75em; font-size: .9em; overflow-wrap: anywhere; }
  .said { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }`;

const tag = document.currentScript;
const options = tag.dataset;
const server = (options.url || new URL(".", tag.src).href).replace(/\/+$/, "");
const spoken = tag.closest("[lang]")?.lang || "en";
const texts = TEXTS[spoken.slice(0, 2).toLowerCase()] ?? TEXTS.en;
const knows = (name) => Object.hasOwn(texts, name);
const say = (name, values = {}) => filled(texts[name], values);

/** A price by the page's language; by English where the page says one that no browser knows. */
function priced(amount, unit) {
  try {
    return money(amount, unit, spoken);
  } catch {
    return money(amount, unit, "en");
  }
}

const input = el("input", {
  type: "search", role: "combobox", part: "input", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
  enterkeyhint: "search", maxlength: 2000, placeholder: options.placeholder ?? say("search"), "aria-label": say("search"),
  "aria-autocomplete": "list", "aria-haspopup": "grid", "aria-expanded": "false", "aria-controls": "hits",
});
const grid = el("div", { id: "hits", role: "grid", "aria-label": say("hits") });
const note = el("p", { class: "note", part: "note" });
const popup = el("div", { class: "popup", part: "popup", hidden: true }, note, grid);
const said = el("p", { class: "said", role: "status" });
const host = el("div", { class: "qkvsearch-box", lang: texts === TEXTS.en ? "en" : null });

// What the keys move through: the rows, each a list of cells; the active one, or −1 for the input.
let rows = [];
let row = -1;
let column = 0;
// What was asked last, and what is under way.
let asked = null;
let under = new AbortController();
let timer = 0;
// Whether an answer may open the list: not after somebody has left the box or closed it.
let isWanted = false;
// What a hit shows: a promise of the columns.
let shown = null;

function told(sentence) {
  note.textContent = sentence;
  note.hidden = !sentence;
}

/** The answer of the server, as JSON. Raises an error with what the server says. */
async function ask(path, values, signal) {
  const headers = options.token ? { Authorization: `Bearer ${options.token}` } : {};
  const answer = await fetch(`${server}/api/v1/${path}?${new URLSearchParams(values)}`, {
    headers, signal, credentials: "omit", referrerPolicy: "no-referrer",
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.detail);
  return found;
}

/** The columns that a hit shows: what the tag says, otherwise what the server finds. */
async function columns() {
  const found = await ask("box", {});
  const price = { name: options.price ?? found.price?.name, unit: options.currency ?? found.price?.unit ?? "" };
  const parts = (options.link ?? "").matchAll(BRACES);
  return {
    image: options.image ?? found.image,
    price,
    link: options.link ? "" : found.link,
    inLink: [...parts].map((part) => part[1]).filter((name) => !["id", "title"].includes(name)),
  };
}

/** The cell of a hit: a column that is called like a part of a hit has another name beside it. */
const cellOf = (hit, name) => (name ? (hit[`items.${name}`] ?? hit[name] ?? null) : null);

/** Where a hit leads: the template of the tag, or its own address; null for nowhere. */
function target(hit) {
  if (!options.link) return address(cellOf(hit, shown.link));
  const part = (name) => (["id", "title"].includes(name) ? hit[name] : cellOf(hit, name));
  return address(new URL(options.link.replace(BRACES, (_, name) => encodeURIComponent(part(name) ?? "")), document.baseURI));
}

/** Ask for hits of what is typed. whole: the last word is not the beginning of another; more: behind so many; others:
 *  `weak` or `anyway`, for those that are left out otherwise. */
async function search(whole = false, more = 0, others = {}) {
  clearTimeout(timer);
  under.abort();
  const q = input.value.trim();
  if (!q) {
    asked = null;
    show([], "");
    return close();
  }
  under = new AbortController();
  const { signal } = under;
  const values = { q, ...(whole ? {} : { prefix: true }), ...others };
  try {
    shown ??= await columns();
    const fields = [shown.image, shown.price.name, shown.link, ...shown.inLink].filter(Boolean);
    const page = { k: more ? 4 * HITS : HITS, offset: more, fields: [...new Set(fields)].join(",") };
    const answer = await ask("search", { ...values, ...page }, signal);
    asked = { values, others, id: answer.query_id };
    arrived(answer, page);
  } catch (error) {
    if (signal.aborted) return;
    asked = null;
    console.error(`qkvsearch: ${error.message}`); // for who made the page
    show([], say("failed"));
  }
}

/** Show an answer; offset: after the hits that are there. */
function arrived(answer, { k, offset }) {
  const { hits, total, total_weak: weak } = answer;
  const read = (answer.corrections ?? []).filter((one) => one.kind !== "prefix");
  const lines = read.map((one) => say("searchedFor", { typed: brief(one.typed), read: brief(one.read) }));
  if (!hits.length && !offset) lines.push(say("none"));
  const before = offset ? rows.slice(0, -1) : [];
  const made = hits.map(hitRow);
  const { others } = asked;
  const isAll = Object.keys(others).length > 0;
  const end = Math.min(total + (isAll ? weak : 0), 100);
  const leadOn = (label, from, next) => made.push([cell("more", say(label), () => search(!asked.values.prefix, from, next))]);
  if (hits.length === k && offset + k < end) leadOn("more", offset + k, others);
  if (answer.no_hits?.reason === "not_answered" && !isAll) leadOn("nearest", 0, weak ? { weak: true } : { anyway: true });
  show([...before, ...made], lines.join(" "), offset ? row : -1);
  said.textContent = [lines.join(" "), hits.length ? say("found", { n: offset + hits.length }) : ""].join(" ");
}

function cell(kind, content, run, label) {
  const made = el("div", { role: "gridcell", class: kind, part: kind, "aria-label": label ?? null }, content);
  made.run = run;
  made.addEventListener("click", (event) => run(event));
  return made;
}

function hitRow(hit) {
  const to = target(hit);
  const src = address(cellOf(hit, shown.image));
  const price = cellOf(hit, shown.price.name);
  const content = [
    // One without an image keeps its place, so that all titles begin at one line.
    shown.image && el("span", { class: "image" }, src && el("img", { src, alt: "", loading: "lazy", referrerpolicy: "no-referrer", onerror: (event) => event.target.remove() })),
    el("span", { class: "title", part: "title" }, owned(hit.title || hit.id, 200)),
    price === null ? null : el("span", { class: "price", part: "price" }, typeof price === "number" ? priced(price, shown.price.unit) : String(price)),
  ];
  const inside = to ? el("a", { href: to.href, tabindex: -1 }, content) : content;
  const why = cell("why", say("why"), () => explain(hit, why), say("whyTitle", { title: brief(hit.title || hit.id) }));
  why.setAttribute("aria-expanded", "false");
  return [cell("hit", inside, (event) => pick(hit, event)), why];
}

/** Tell the page, which may do something else with it, and the server, which counts. */
function pick(hit, event) {
  if (asked.id) {
    const headers = { "Content-Type": "application/json", ...(options.token && { Authorization: `Bearer ${options.token}` }) };
    const body = JSON.stringify({ query_id: asked.id, item: hit.id, position: hit.rank });
    fetch(`${server}/api/v1/clicks`, { method: "POST", keepalive: true, credentials: "omit", referrerPolicy: "no-referrer", headers, body }).catch(() => null);
  }
  const picked = new CustomEvent("qkvsearch-pick", { detail: hit, bubbles: true, composed: true, cancelable: true });
  if (!host.dispatchEvent(picked)) event.preventDefault();
  else if (!target(hit)) input.value = hit.title || hit.id;
  close();
}

/** Open or close the reasons of a hit, in a row below it. */
async function explain(hit, why) {
  const line = why.parentElement;
  const isOpen = line.nextElementSibling?.matches(".open");
  why.setAttribute("aria-expanded", String(!isOpen));
  if (isOpen) return line.nextElementSibling.remove();
  const panel = el("div", { role: "gridcell", class: "reasons", part: "reasons" }, say("loading"));
  line.after(el("div", { role: "row", class: "open" }, panel));
  try {
    const found = (await ask("explain/search", { ...asked.values, rank: hit.rank })).hit;
    if (found.id !== hit.id) return search(!asked.values.prefix, 0, asked.others); // the catalog has changed
    const values = reasonsAddingUp(found.reasons, found.score);
    const lines = found.reasons.map((reason, place) => [translated(reason.text, say, knows), signed(values[place])]);
    lines.push([say("score"), say("sum", { score: number(found.score, 3) })]);
    panel.replaceChildren(...lines.map(([what, value]) => el("p", {}, owned(what, 160), el("span", {}, value))));
    said.textContent = lines.map((each) => each.join(" ")).join("; ");
  } catch (error) {
    console.error(`qkvsearch: ${error.message}`);
    panel.textContent = say("failed");
  }
}

/** Show rows, those that are there already as they are, and a sentence above them. */
function show(given, sentence, active = -1) {
  rows = given;
  told(sentence);
  const lines = rows.map((cells, place) => {
    for (const [number, one] of cells.entries()) one.id = `cell-${place}-${number}`;
    return cells[0].parentElement ?? el("div", { role: "row" }, cells);
  });
  const isKept = (line) => lines.includes(line) || (line?.matches(".open") && lines.includes(line.previousElementSibling));
  for (const line of [...grid.children]) if (!isKept(line)) line.remove();
  grid.append(...lines.filter((line) => line.parentElement !== grid));
  grid.hidden = !rows.length;
  moveTo(active, 0);
  if (isWanted && (rows.length || sentence)) open();
}

function open() {
  isWanted = true;
  popup.hidden = false;
  input.setAttribute("aria-expanded", String(rows.length > 0));
}

function close() {
  isWanted = false;
  popup.hidden = true;
  input.setAttribute("aria-expanded", "false");
  moveTo(-1, 0);
}

/** Make a cell the active one; −1: none, the keys are in the input. */
function moveTo(nextRow, nextColumn) {
  grid.querySelector(".active")?.classList.remove("active");
  row = Math.min(nextRow, rows.length - 1);
  column = Math.min(nextColumn, (rows[row]?.length ?? 1) - 1);
  const active = rows[row]?.[column];
  if (!active) return input.removeAttribute("aria-activedescendant");
  active.classList.add("active");
  active.scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", active.id);
}

/** What a key does; whether it does anything. */
function pressed({ key }) {
  const isOpen = !popup.hidden && rows.length > 0;
  if (key === "ArrowDown" || key === "ArrowUp") {
    if (!rows.length) return false;
    open();
    const next = row + (key === "ArrowDown" ? 1 : -1);
    moveTo(next < -1 ? rows.length - 1 : next % rows.length, column);
    return true;
  }
  if (isOpen && row >= 0 && (key === "ArrowRight" || key === "ArrowLeft")) {
    const next = column + (key === "ArrowRight" ? 1 : -1);
    if (next < 0) moveTo(-1, 0);
    else moveTo(row, next);
    return next >= 0;
  }
  if (key === "Enter") {
    const active = isOpen && rows[row]?.[column];
    if (active) (active.querySelector("a") ?? active).click();
    else {
      isWanted = true;
      search(true);
    }
    return true;
  }
  if (key === "Escape" && !popup.hidden) {
    close();
    return true;
  }
  return false;
}

onTyped(input, () => {
  isWanted = true;
  clearTimeout(timer);
  timer = setTimeout(search, WAIT_MS);
});
input.addEventListener("keydown", (event) => {
  if (isComposing(event) || event.ctrlKey || event.metaKey || event.altKey || !pressed(event)) return;
  event.preventDefault();
  event.stopPropagation();
});
input.addEventListener("focus", () => {
  isWanted = true;
  if (asked) open();
});
input.addEventListener("blur", close);
// The focus stays in the input.
popup.addEventListener("mousedown", (event) => event.preventDefault());

const root = host.attachShadow({ mode: "open" });
const style = new CSSStyleSheet(); // which no policy of the page forbids
style.replaceSync(STYLE);
root.adoptedStyleSheets = [style];
root.append(input, popup, said);

function place() {
  const into = options.into && document.querySelector(options.into);
  if (into) into.append(host);
  else if (tag.closest("head")) document.body.prepend(host);
  else tag.after(host);
}
if (document.body && !options.into) place();
else document.addEventListener("DOMContentLoaded", place);
