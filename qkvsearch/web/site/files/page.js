// The search page of a site: what is typed to hits, their scores and reasons, with no server.
import { byId, el, owned } from "./dom.js";
import { asker } from "./query.js";
import { reader } from "./read.js";
import { best, byHead, fused, parts } from "./score.js";
import { announce, begin, onKey, remember, state } from "./shell.js";
import { open, read } from "./store.js";
import { count, number, say, share, signed } from "./words.js";

const K = 10;
const box = byId("box");
const keys = {};
let store;
let ask;
let turn = 0;
let isOpen = false; // whether the last word may be unfinished

/** What a query finds, once what it needs is there; later answers come when more keys are. */
export async function search(typed, isTyping) {
  const asked = await ask.asked(typed, isTyping);
  const wanted = asked.words.flatMap((word) => [...word.ways, ...word.read]);
  await Promise.all(wanted.map(async (one) => (one.found = await store.found(one.lookup))));
  const found = fused(asked, store.facts, keys);
  const { hits, n } = found ? best(found, K) : { hits: [], n: 0 };
  await Promise.all(hits.map(async (hit) => (hit.item = await store.item(hit.row))));
  return { typed, asked, found, hits, n };
}

/** The newest query alone is shown, whatever comes later. */
async function show(isTyping) {
  const own = ++turn;
  isOpen = isTyping;
  const typed = box.value;
  remember(typed.trim() ? { q: typed } : {});
  document.body.dataset.asking = own;
  try {
    const answer = typed.trim() ? await search(typed, isTyping) : null;
    if (own !== turn) return;
    if (answer) render(answer);
    else await welcome(own);
    byId("loaded").textContent = say("loaded", { n: count(Math.round(read.bytes / 1000)) });
    document.body.dataset.shown = typed;
    performance.mark("shown");
  } catch (error) {
    if (own === turn) tell(say("failed", { detail: String(error.message ?? error) }));
  }
  if (own === turn) delete document.body.dataset.asking;
}

async function welcome(own) {
  const rows = store.facts.shown;
  const items = await Promise.all(rows.map(store.item));
  if (own !== turn) return;
  tell(say("catalog", { n: count(store.facts.n_items) }));
  byId("notes").replaceChildren();
  byId("hits").replaceChildren(...items.map((item) => el("li", {}, el("div", { class: "hit" }, el("span", {}, ...named(item))))));
}

const headName = (name) => (name === "lexical" ? say("wordsHead") : name);

function render(answer) {
  const { asked, found, hits, n } = answer;
  const notes = asked.notes.map(([name, values]) => say(name, values));
  byId("notes").replaceChildren(...notes.map((note) => el("p", { class: "note" }, el("bdi", {}, note))));
  const told = found ? [say("found", { n: count(n), total: count(store.facts.n_items) })] : [say("nothing")];
  told.push(...status(found));
  tell(told.join(" · "));
  announce([told[0], ...notes].join(" "));
  const widest = Math.max(1e-9, ...hits.flatMap((hit) => byHead(found, hit.row).map((one) => Math.abs(one.value))));
  byId("hits").replaceChildren(...hits.map((hit) => line(hit, found, widest)));
}

/** Which heads have answered, which cannot, and which are not there yet. */
function status(found) {
  const names = (of) => of.map(headName).join(", ");
  const loading = store.heads.filter((name) => !keys[name]);
  const said = found ? [say("answered", { heads: names(found.heads.map((head) => head.name)) })] : [];
  if (found?.silent.length) said.push(say("unknownTo", { heads: names(found.silent) }));
  if (loading.length) said.push(say("waiting", { heads: names(loading) }));
  return said;
}

const tell = (sentence) => (byId("told").textContent = sentence);

function named([id, title, ...cells]) {
  const fields = cells.map((cell, i) => [store.facts.fields[i], cell]).filter(([, cell]) => cell !== null);
  return [
    el("span", { class: "title" }, owned(title)),
    el("span", { class: "quiet fields" }, ...[["id", id], ...fields].map(([name, cell]) => el("span", {}, owned(name), " ", owned(cell)))),
  ];
}

function line(hit, found, widest) {
  const scored = say("score", { score: number(hit.score, 3), weight: share(hit.weight) });
  const bars = byHead(found, hit.row).map(({ name, value }) =>
    el("i", {
      class: `${name === "lexical" ? "lexical" : ""} ${value < 0 ? "negative" : ""}`,
      style: { width: `${(100 * Math.abs(value)) / widest}%` },
      title: `${headName(name)} ${signed(value)}`,
    }),
  );
  const button = el("button", { class: "hit printed", type: "button", "aria-expanded": "false" },
    el("span", {}, ...named(hit.item)),
    el("span", { class: "quiet" }, scored, el("span", { class: "heads", "aria-hidden": "true" }, bars)));
  const entry = el("li", { "data-row": hit.row, "data-score": hit.score }, button);
  button.addEventListener("click", () => {
    const isShown = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isShown));
    if (isShown) entry.querySelector(".why").remove();
    else entry.append(why(hit, found));
  });
  return entry;
}

/** The exact parts of a score, the largest first, and their sum. */
function why(hit, found) {
  const every = parts(found, hit.row).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const as = (part) => (part.word === null ? say("whyConstant") : part.key === null ? say("whyMeaning") : owned(part.key));
  const rows = every.map((part) =>
    el("tr", { "data-value": part.value }, el("td", {}, part.word === null ? "" : owned(part.word)), el("td", {}, headName(part.head)),
      el("td", {}, as(part)), el("td", { class: "number" }, signed(part.value))),
  );
  const sum = every.reduce((total, part) => total + part.value, 0);
  const heading = (name, own) => el("th", { scope: "col", class: own }, say(name));
  return el("div", { class: "why" }, el("table", {}, el("caption", {}, say("why")),
    el("thead", {}, el("tr", {}, heading("whyWord"), heading("whyHead"), heading("whyFound"), heading("whyAdds", "number"))),
    el("tbody", {}, rows),
    el("tfoot", {}, el("tr", { "data-sum": sum }, el("td", { colspan: "3" }, say("whySum")), el("td", { class: "number" }, signed(sum))))));
}

/** From one hit to the next, and back to the box. */
function move(step) {
  const stops = [box, ...document.querySelectorAll("button.hit")];
  const at = stops.indexOf(document.activeElement);
  stops[Math.min(Math.max(at + step, 0), stops.length - 1)].focus();
}

onKey("/", "/", say("helpSearch"), () => box.focus());
onKey("ArrowDown", "↓ ↑", say("helpMove"), () => move(1));
onKey("ArrowUp", "", say("helpMove"), () => move(-1));
onKey("Escape", "Esc", say("helpEscape"), () => box.focus());
begin();

store = await open();
ask = asker(store, reader(store.facts).tokens);
box.value = state().get("q") ?? "";
box.addEventListener("input", () => show(true));
byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  show(false);
});
await show(false);
document.body.dataset.ready = "words";
for (const name of store.heads) {
  try {
    keys[name] = await store.keys(name);
  } catch (error) {
    announce(say("failed", { detail: `${name}: ${error.message}` }));
    continue;
  }
  await show(isOpen);
}
document.body.dataset.ready = "all";
