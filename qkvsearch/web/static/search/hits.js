// The list of results: titles, what matched, a bar of the score, and reasons that open.
import { brief, byId, el } from "../dom.js";
import { bar, figures, legend, reach } from "../heads.js";
import { finder, marked } from "../marked.js";
import { refusal } from "../server.js";
import { number, say } from "../words.js";
import { announce } from "../shell.js";
import { cells, offer, ownAddress, picture, readPrices, shortTitle, wholeTitle } from "./cells.js";

let given = [];
// What makes a panel of reasons, once somebody wants one.
let explanation = null;

/** To be awaited before reasons are shown that are there already. */
export async function prepareReasons() {
  ({ explanation } = await import("./reasons.js"));
}

/** What is shown now. */
export const hits = () => given;

/** Show rows of an answer. options: columns, {name, type, unit, display} of those to show; explain(hit), asks for the reasons of
 *  one; clicked(hit), told when one is opened; gone(hit), a promise of its `smallest`, or null; explained, those of which they are there already, by id; opened(ids), told which are open now; similar(hit), the
 *  address of its neighbours; keep, whether they are added to those that are there; asTiles, whether they stand side by side. */
export function showHits(rows, options) {
  const list = byId("hits");
  const focused = document.activeElement?.closest?.("#hits > li")?.dataset.id;
  const still = new Map(options.keep ? [...list.children].map((item) => [item.dataset.id, item]) : []);
  given = options.keep ? [...given, ...rows] : rows;
  byId("legend").replaceChildren(...legend(given));
  const sides = reach(given);
  readPrices(given, options.columns);
  const items = given.map((hit) => {
    const item = entry(hit, sides, options);
    const before = still.get(String(hit.id))?.querySelector(".explanation");
    const known = options.explained.get(hit.id);
    if (before) unfold(item, before);
    else if (known) unfold(item, explanation(known, () => options.gone(known)));
    return item;
  });
  // Weak matches, where they were asked for, are below all others.
  const firstWeak = given.findIndex((hit) => hit.match === "weak");
  if (firstWeak > 0) items[firstWeak].prepend(el("p", { class: "below" }, say("weakBelow")));
  // Another list, not other entries: what is new cannot be seen to jump.
  list.replaceWith(el("ol", { id: "hits", class: options.asTiles ? "hits tiles" : "hits", "aria-busy": list.getAttribute("aria-busy") }, items));
  items.find((item) => item.dataset.id === focused)?.querySelector(".title").focus();
}

/** The same items for another list, which has no scores. */
export function entries(rows, options) {
  readPrices(rows, options.columns);
  return rows.map((row) => entry(row, null, options));
}

/** A card: picture, title, what it costs, its cells, the passage that answers, and below how well it matches. */
function entry(hit, sides, options) {
  const find = finder(Object.values(hit.matches ?? {}).flat());
  const whole = hit.title || String(hit.id);
  const name = marked(options.asTiles ? shortTitle(whole) : whole, find);
  const likes = options.similar(hit);
  const has = hit.heads !== undefined;
  const own = ownAddress(hit, options.columns);
  const title = titleOf(name, own, has, likes);
  const hint = options.asTiles && wholeTitle(whole);
  if (hint) title.title = hint;
  const shown = cells(hit, options.columns, find);
  const item = el(
    "li",
    { "data-id": String(hit.id) },
    picture(hit, options.columns),
    el(
      "div",
      { class: "hit" },
      el("h2", {}, title),
      offer(hit, options.columns),
      shown,
      passage(hit, find, shown?.textContent),
      el("p", { class: "foot" }, has ? matchOf(hit) : null, similarTo(hit, likes)),
      has ? el("div", { class: "score" }, bar(hit, sides)) : null,
    ),
  );
  if (has) {
    item.value = hit.rank;
    for (const one of openers(item)) one.addEventListener("click", () => toggle(item, hit, options));
    // A link may be opened beside the page by the middle button.
    for (const kind of ["click", "auxclick"]) item.addEventListener(kind, (event) => followed(event) && options.clicked(hit));
  }
  return item;
}

/** How well a hit matches, or that its place is the owner's, and what opens its reasons. */
function matchOf(hit) {
  const { pins } = hit.heads;
  const placed = pins ? el("span", { class: "placed" }, say(pins > 0 ? "pinned" : "placedLast")) : null;
  const said = say("whyTitle", { title: shortly(hit) });
  const why = el("button", { type: "button", class: "plain opens", "aria-expanded": "false", "aria-label": said }, say("whyHit"));
  // One that is pinned counts as strong, however well it matches by itself.
  return el("span", { class: "match-line" }, placed, figures(pins > 0 ? { ...hit, match: null } : hit), why);
}

const similarTo = (hit, likes) =>
  el("a", { class: "like", href: likes, "aria-label": say("likeTitle", { title: shortly(hit) }) }, say("similar"));

/** A title leads to the item's own address. Without one it opens the reasons, or leads to the item's neighbours. */
function titleOf(name, own, hasReasons, likes) {
  if (own) return el("a", { class: "title", href: own, rel: "noreferrer" }, name);
  if (!hasReasons) return el("a", { class: "title", href: likes }, name);
  return el("button", { type: "button", class: "title plain opens", "aria-expanded": "false" }, name);
}

/** What opens the reasons of a hit, and says whether they are open. */
const openers = (item) => [...item.querySelectorAll(".opens")];

function setOpen(item, isOpen) {
  for (const one of openers(item)) one.setAttribute("aria-expanded", String(isOpen));
}

/** Whether an event opens a hit, or follows one of its links. */
const followed = ({ type, button, target }) =>
  type === "click" ? Boolean(target.closest("a, .title")) : button === 1 && Boolean(target.closest("a"));

const shortly = (hit) => brief(hit.title || hit.id);

const letters = (value) => value.replace(/[^\p{L}\p{N}]/gu, "");

/** The passage that answers, with a link to when it is said, unless it is a cell that is shown already. */
function passage(hit, find, shown) {
  if (!hit.snippet || letters(shown ?? "").includes(letters(hit.snippet))) return null;
  const { link, start } = hit.passage ?? {};
  const jump = /^https?:/i.test(link ?? "") ? [el("a", { href: link }, clock(start)), " "] : [];
  return el("p", { class: "snippet" }, ...jump, marked(hit.snippet, find, 400));
}

/** A time of a video, such as 10:17 or 1:02:05. */
function clock(seconds) {
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

function unfold(item, panel) {
  setOpen(item, true);
  item.append(panel);
}

/** Open or close the reasons of one. */
async function toggle(item, hit, options) {
  const there = item.querySelector(".explanation");
  if (there) {
    there.remove();
    setOpen(item, false);
    announce(say("closed"));
  } else {
    const panel = el("div", { class: "explanation", "aria-busy": "true" }, el("p", { class: "quiet" }, say("loading")));
    unfold(item, panel);
    try {
      const [found] = await Promise.all([options.explain(hit), prepareReasons()]);
      if (found === null) return;
      panel.replaceWith(explanation(found, () => options.gone(found)));
      announce(say("explained", { title: shortly(hit), score: say("sum", { score: number(hit.score, 3) }) }));
    } catch (error) {
      panel.replaceChildren(el("p", { class: "note bad" }, refusal(error)));
    }
  }
  options.opened([...byId("hits").children].filter((one) => one.querySelector(".explanation")).map((one) => one.dataset.id));
}

/** Close what is open around an element; whether anything was. */
export function closeAround(element) {
  const item = element.closest?.("#hits > li");
  const opener = item?.querySelector(".opens[aria-expanded=true]");
  opener?.focus();
  opener?.click();
  return Boolean(opener);
}

/** Move from one title to the next, or by −1 to the one before; false where there is none. */
export function move(step) {
  const titles = [...byId("hits").querySelectorAll(".title")];
  const item = document.activeElement?.closest?.("#hits > li");
  const now = item ? titles.indexOf(item.querySelector(".title")) : -1;
  const next = titles[now + step];
  if (!next || (now < 0 && step < 0)) return false;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}
