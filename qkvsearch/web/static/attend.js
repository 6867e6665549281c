// The page on which a sentence attends to itself: what is asked, what is chosen, and what is said.
import { ask, latest, query } from "./api.js";
import { HeadGrid } from "./attend/heads.js";
import { Lines } from "./attend/lines.js";
import { MOST, WeightMap } from "./attend/map.js";
import { byWeight, Reading } from "./attend/reading.js";
import { cosineTable } from "./attend/tables.js";
import { byId, el, onTyped, text } from "./dom.js";
import { announce, begin, onKey, remember, state } from "./shell.js";
import { count, facts, say, share } from "./words.js";

// What there is to see at once, and what it shows: which word, looking at which.
const EXAMPLES = facts.examples;
// Where no transformer is installed, what MiniLM made of the examples is chosen like an encoder.
const RECORDED = "recorded";
const ENCODERS = facts.recorded ? [RECORDED, ...facts.encoders] : facts.encoders;
const MASKS = ["none", "padding", "causal"];
const VIEWS = ["one", "mean"];
const given = state();
const whole = (name) => (/^\d+$/.test(given.get(name) ?? "") ? Number(given.get(name)) : null);

/** What is asked and what is chosen; `wanted` is a word, and what it should look at, of an example. */
const chosen = {
  text: given.get("text") ?? "",
  against: given.get("against") ?? "",
  mask: MASKS.includes(given.get("mask")) ? given.get("mask") : "none",
  encoder: ENCODERS.includes(given.get("encoder")) ? given.get("encoder") : facts.encoders[0],
  view: VIEWS.includes(given.get("view")) ? given.get("view") : "one",
  layer: whole("layer"),
  head: whole("head"),
  word: whole("word"),
};
let wanted = null;
let reading = null;

const grid = new HeadGrid(byId("heads"), (layer, head) => {
  Object.assign(chosen, { layer, head: head ?? chosen.head, view: head === null ? "mean" : "one" });
  drawPlace(true);
});
const on = { look, choose, follow };
const lines = new Lines(byId("lines"), on);
const map = new WeightMap(byId("map"), on);

// --- what is asked ---

const question = () => ({
  text: chosen.text,
  mask: chosen.mask,
  against: chosen.against,
  encoder: chosen.encoder,
});
const send = latest(answerTo, show, fail);

/** What the server says, or what was recorded. */
function answerTo(values) {
  return values.encoder === RECORDED ? fromRecord(values) : ask("attend", values);
}

function asks() {
  if (chosen.encoder === RECORDED && recordedPlace(chosen) < 0) {
    chosen.encoder = facts.encoders[0];
    fill();
  }
  keep();
  if (chosen.text.trim()) {
    send(question());
    return;
  }
  send.forget();
  reading = null;
  byId("reading").hidden = true;
  byId("size").textContent = say("empty");
  byId("notes").replaceChildren();
}

let keeping = 0;

/** The address says what is shown; not at every step of a hand that rests on a key. */
function keep() {
  clearTimeout(keeping);
  keeping = setTimeout(() => {
    const { mask, view } = chosen;
    // Until there is an answer, what the address said stays.
    const hasLayers = reading?.hasLayers ?? true;
    remember(
      query({
        ...question(),
        mask: mask === "none" ? "" : mask,
        view: view === "one" || !hasLayers ? "" : view,
        layer: hasLayers ? chosen.layer : null,
        head: hasLayers && view === "one" ? chosen.head : null,
        word: chosen.word,
      }),
    );
  }, 250);
}

function fail(error) {
  byId("notes").replaceChildren(el("p", { class: "note bad" }, say("failed", { detail: error.message })));
  announce(error.message);
}

// --- what was recorded ---

/** Which example this is, with its mask and its second sentence; −1 for none. */
function recordedPlace({ text, mask, against }) {
  return EXAMPLES.findIndex(
    (one) => one.text === text && (one.mask ?? "none") === mask && (one.against ?? "") === against,
  );
}

/** A sentence with what stands between backticks as code. */
const withCode = (sentence) => sentence.split("`").map((part, place) => (place % 2 ? el("code", {}, part) : part));

let records = null;

async function fromRecord(values) {
  records ??= await (await fetch(facts.recorded)).json();
  const { unit } = records;
  const found = records.answers[recordedPlace(values)];
  const weights = (map) => map.weights.map((row) => row.map((weight) => (weight === null ? null : weight / unit)));
  return { ...found, maps: found.maps.map((map) => ({ ...map, weights: weights(map) })) };
}

// --- what is shown ---

function show(answer, asked, isNewest) {
  const before = reading?.words[chosen.word];
  reading = new Reading(answer);
  const notes = answer.notes.map((note) => el("p", { class: "note" }, text(note)));
  if (asked.encoder === RECORDED) notes.unshift(el("p", { class: "note" }, withCode(say("recorded"))));
  byId("notes").replaceChildren(...notes);
  const { words, layers, heads, hasLayers } = reading;
  byId("size").textContent = say(hasLayers ? "size" : "sizeOnly", {
    words: count(words.length), tokens: count(answer.tokens.length), layers, heads,
  });
  byId("reading").hidden = words.length === 0;
  if (words.length === 0) return;
  place(before);
  byId("layers").hidden = !hasLayers;
  if (hasLayers) grid.draw(reading);
  byId("comparison").hidden = answer.against === null;
  if (answer.against !== null) byId("cosines").replaceChildren(cosineTable(answer.against));
  drawPlace(isNewest);
}

/** Which word and head: those of the example or of the address, else those there were, else the
 *  first word of the sentence. */
function place(before) {
  const { words, layers, heads, hasLayers } = reading;
  const within = (n, most) => (n !== null && n < most ? n : null);
  const isSpecial = (word) => /^[[<]/.test(word);
  if (wanted) {
    chosen.word = Math.max(words.indexOf(wanted.word), 0);
    const at = words.indexOf(wanted.at);
    if (hasLayers && at >= 0) [chosen.layer, chosen.head] = reading.best(chosen.word, at);
    wanted = null;
  } else if (before !== undefined && words[chosen.word] !== before && words.includes(before)) {
    chosen.word = words.indexOf(before);
  }
  const first = words.findIndex((word) => !isSpecial(word));
  chosen.word = within(chosen.word, words.length) ?? Math.max(first, 0);
  chosen.layer = within(chosen.layer, layers) ?? Math.max(layers - 1, 0);
  chosen.head = within(chosen.head, heads) ?? 0;
}

const weights = () =>
  chosen.view === "one" || !reading.hasLayers ? reading.of(chosen.layer, chosen.head) : reading.mean(chosen.layer);

function placeName() {
  const { layer, head } = chosen;
  if (!reading.hasLayers) return say("placeOnly");
  return chosen.view === "one" ? say("place", { layer, head }) : say("placeMean", { layer, heads: reading.heads });
}

/** All that depends on the head. */
function drawPlace(isTold) {
  const { words, hasLayers } = reading;
  const name = placeName();
  byId("place").textContent = name;
  grid.choose(chosen.layer, chosen.view === "one" ? chosen.head : null);
  const focused = lines.froms?.indexOf(document.activeElement) ?? -1;
  lines.draw(words, weights(), hasLayers);
  map.draw(words, weights(), name);
  byId("map-said").textContent = mapSaid();
  for (const id of ["mask", "view"]) {
    for (const button of byId(id).querySelectorAll("button")) button.setAttribute("aria-pressed", button.value === chosen[id]);
  }
  drawWord(chosen.word);
  if (focused >= 0) lines.focus(chosen.word);
  if (isTold) announce(`${name}. ${sentence(chosen.word)}`);
  keep();
}

function mapSaid() {
  const said = [say(reading.words.length > MOST ? "mapLarge" : "mapCaption", { n: count(reading.words.length) })];
  if (!reading.hasLayers) said.push(say("noLayers"));
  if (chosen.mask !== "none") {
    const cells = weights().flat();
    const n = cells.filter((weight) => weight === null).length;
    said.push(n ? say("hiddenCount", { n: count(n), all: count(cells.length) }) : say("hiddenNone"));
  }
  return said.join(" ");
}

function sentence(i) {
  const row = weights()[i];
  const [first, second] = byWeight(row);
  const said = { word: `“${text(reading.words[i])}”`, first: `“${text(reading.words[first])}”`, weight: share(row[first] ?? 0) };
  if (second === undefined || !row[second]) return say("attends", said);
  return say("attendsAlso", { ...said, second: `“${text(reading.words[second])}”`, more: share(row[second]) });
}

/** All that depends on the word. */
function drawWord(i) {
  lines.show(i);
  map.show(i);
  byId("sentence").textContent = sentence(i);
}

// --- what is chosen ---

function look(i) {
  drawWord(i);
}

function choose(i) {
  if (chosen.word !== i) announce(sentence(i));
  chosen.word = i;
  drawWord(i);
  keep();
}

/** To the head in which the chosen word reads most from the word `j`. */
function follow(j) {
  const i = chosen.word;
  [chosen.layer, chosen.head] = reading.best(i, j);
  chosen.view = "one";
  drawPlace(false);
  const weight = share(reading.of(chosen.layer, chosen.head)[i][j] ?? 0);
  announce(say("went", { place: placeName(), word: text(reading.words[i]), weight, first: text(reading.words[j]) }));
  lines.tos[j].firstChild.focus();
}

/** A key that goes round: in `n` places from `now` by `step`. */
const round = (now, step, n) => (now + step + n) % n;

function moveWord(step) {
  return (event) => {
    if (!reading?.words.length || event.target.closest(".scrolls")) return false;
    const isDown = event.key === "ArrowDown" || event.key === "ArrowUp";
    if (isDown && event.target !== byId("text") && !byId("lines").contains(event.target)) return false;
    lines.focus(event.target === byId("text") ? chosen.word : round(chosen.word, step, reading.words.length));
    return true;
  };
}

function moveHead(name, step) {
  return () => {
    if (!reading?.hasLayers) return false;
    chosen[name] = round(chosen[name], step, reading[`${name}s`]);
    if (name === "head") chosen.view = "one";
    drawPlace(true);
    return true;
  };
}

// --- the form ---

function fill() {
  for (const id of ["text", "against", "encoder"]) byId(id).value = chosen[id];
  for (const button of byId("mask").querySelectorAll("button")) button.setAttribute("aria-pressed", button.value === chosen.mask);
}

/** An example as it is wanted, with its second sentence and its mask. */
function take(example) {
  wanted = example;
  Object.assign(chosen, { text: example.text, against: example.against ?? "", mask: example.mask ?? "none", view: "one" });
  if (facts.recorded) chosen.encoder = RECORDED;
  fill();
}

function start() {
  for (const name of ENCODERS) {
    byId("encoder").append(el("option", { value: name }, name === RECORDED ? say("recordedName") : name));
  }
  byId("encoders").hidden = ENCODERS.length < 2;
  EXAMPLES.forEach((example, place) => {
    const use = () => {
      take(example);
      asks();
    };
    const name = `${example.word} → ${example.at}`;
    byId("examples").append(el("button", { type: "button", title: example.text, onclick: use }, name));
    if (place === 0 && !given.has("text")) take(example);
  });
  for (const id of ["text", "against", "encoder"]) {
    onTyped(byId(id), () => {
      chosen[id] = byId(id).value;
      if (id === "encoder" && chosen.encoder === RECORDED && recordedPlace(chosen) < 0) take(EXAMPLES[0]);
      asks();
    });
  }
  byId("asked").addEventListener("submit", (event) => event.preventDefault());
  byId("mask").addEventListener("click", (event) => {
    if (!event.target.value) return;
    chosen.mask = event.target.value;
    fill();
    asks();
  });
  byId("view").addEventListener("click", (event) => {
    if (!event.target.value) return;
    chosen.view = event.target.value;
    drawPlace(true);
  });
  for (const id of ["lines", "map"]) byId(id).addEventListener("mouseleave", () => reading && drawWord(chosen.word));
  keys();
  begin();
  fill();
  asks();
}

function keys() {
  onKey("/", "/", say("helpSearch"), () => byId("text").select());
  onKey("ArrowLeft", "← →", say("word"), moveWord(-1));
  onKey("ArrowRight", "", "", moveWord(1));
  onKey("ArrowUp", "", "", moveWord(-1));
  onKey("ArrowDown", "", "", moveWord(1));
  onKey("[", "[ ]", say("headKey"), moveHead("head", -1));
  onKey("]", "", "", moveHead("head", 1));
  onKey("{", "{ }", say("layerKey"), moveHead("layer", -1));
  onKey("}", "", "", moveHead("layer", 1));
  onKey("Escape", "Esc", say("helpEscape"), (event) => {
    if (event.target.matches("input")) return false; // it empties itself
    byId("text").focus();
    return true;
  });
}

start();
