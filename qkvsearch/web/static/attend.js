// The page on which a sentence attends to itself: what is asked, what is chosen, and what is said.
import { ask, latest, query } from "./api.js";
import { Control, target } from "./attend/control.js";
import { HeadGrid, placeName } from "./attend/heads.js";
import { Lines } from "./attend/lines.js";
import { MOST, WeightMap } from "./attend/map.js";
import { byWeight, counterpart, Reading } from "./attend/reading.js";
import { fromRecord } from "./attend/recorded.js";
import { cosineTable } from "./attend/tables.js";
import { isSpecial, Words } from "./attend/words.js";
import { withCode } from "./code.js";
import { byId, el, onTyped, text } from "./dom.js";
import { noted, refusal } from "./server.js";
import { announce, begin, onKey, remember, state } from "./shell.js";
import { count, facts, say, share } from "./words.js";

// What there is to see at once, and what it shows: which word, looking at which.
const EXAMPLES = facts.examples;
// Where no transformer reads the language, what one made of the examples is chosen like an encoder.
const RECORDED = "recorded";
const ENCODERS = facts.recorded ? [RECORDED, ...facts.encoders] : facts.encoders;
// Padding is hidden, unless somebody shows it. What else is struck out is hidden beside the mask.
const MASKS = ["padding", "none", "causal"];
const PADDING = "<PAD>";
// A sentence of more characters is likely to have more weights than an answer may have.
const LONG = 120;
const VIEWS = ["one", "mean"];
// What takes longer than so many milliseconds is said to be under way.
const PATIENCE = 400;
const given = state();
const whole = (name) => (/^\d+$/.test(given.get(name) ?? "") ? Number(given.get(name)) : null);

/** What is asked and what is chosen; `wanted` is a word, and what it should look at, of an example. */
const chosen = {
  text: given.get("text") ?? "",
  against: given.get("against") ?? "",
  mask: MASKS.includes(given.get("mask")) ? given.get("mask") : MASKS[0],
  hide: given.getAll("hide").filter((place) => /^\d+$/.test(place)).map(Number),
  encoder: ENCODERS.includes(given.get("encoder")) ? given.get("encoder") : facts.encoders[0],
  view: VIEWS.includes(given.get("view")) ? given.get("view") : "one",
  layer: whole("layer"),
  head: whole("head"),
  word: whole("word"),
};
let wanted = null;
let reading = null;
// Whether a click on a word strikes it out.
let isStriking = false;

const pick = (layer, head) => {
  Object.assign(chosen, { layer, head: head ?? chosen.head, view: head === null ? "mean" : "one" });
  drawPlace(true);
};
const grid = new HeadGrid(byId("heads"), pick);
const controlGrid = new HeadGrid(byId("control-heads"), pick);
const control = new Control();
const on = { look, choose, follow };
const words = new Words(byId("sentence-words"), {
  choose: (i) => isStriking || choose(i),
  press: (i) => (isStriking ? strike(i) : choose(i)),
});
const lines = new Lines(byId("lines"), on);
const map = new WeightMap(byId("map"), on);

// --- what is asked ---

const question = () => ({
  text: chosen.text,
  mask: chosen.mask,
  hide: chosen.hide,
  against: chosen.against,
  encoder: chosen.encoder,
});
const send = latest(answerTo, show, fail);

/** What the server says, or what was recorded: of the sentence, and of the one compared with. */
async function answerTo(values) {
  if (values.encoder === RECORDED) return fromRecord(facts.recorded.file, recordedPlace(values));
  const answer = await askAll(values);
  return { answer, control: await controlTo(values, answer) };
}

/** The answer with all layers. Those of a long sentence come one by one: an answer has a limit. */
async function askAll(values) {
  const isLayered = facts.layered.includes(values.encoder);
  if (!isLayered || values.text.length <= LONG) {
    try {
      return await ask("attend", values);
    } catch (error) {
      if (!isLayered || error.status !== 400) throw error;
    }
  }
  const { against, ...first } = values;
  const answer = await ask("attend", { ...values, layer: 0 });
  for (let layer = 1; layer < answer.layers; layer += 1) {
    answer.maps.push(...(await ask("attend", { ...first, layer })).maps);
  }
  return answer;
}

/** The answer to the sentence compared with, the same words struck out; null for none. */
async function controlTo(values, answer) {
  if (!values.against.trim()) return null;
  const { against, ...rest } = values;
  const shown = await askAll({ ...rest, text: against, hide: [] });
  const hide = values.hide.map((place) => counterpart(answer.words, place, shown.words)).filter((place) => place >= 0);
  return hide.length ? askAll({ ...rest, text: against, hide: [...new Set(hide)] }) : shown;
}

function asks() {
  if (chosen.encoder === RECORDED && recordedPlace(chosen) < 0) {
    chosen.encoder = facts.encoders[0];
    fill();
  }
  keep();
  if (chosen.text.trim()) {
    busy(true);
    send(question());
    return;
  }
  send.forget();
  busy(false);
  reading = null;
  byId("reading").hidden = true;
  byId("size").textContent = say("empty");
  byId("notes").replaceChildren();
}

let saying = 0;

/** Whether an answer is under way: what is shown meanwhile is an older one. */
function busy(is) {
  clearTimeout(saying);
  byId("reading").setAttribute("aria-busy", String(is));
  if (is) saying = setTimeout(() => (byId("size").textContent = say("loading")), PATIENCE);
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
        mask: mask === MASKS[0] ? "" : mask,
        view: view === "one" || !hasLayers ? "" : view,
        layer: hasLayers ? chosen.layer : null,
        head: hasLayers && view === "one" ? chosen.head : null,
        word: chosen.word,
      }),
    );
  }, 250);
}

function fail(error) {
  busy(false);
  if (byId("size").textContent === say("loading")) byId("size").textContent = "";
  byId("notes").replaceChildren(el("p", { class: "note bad" }, say("failed", { detail: refusal(error) })));
  announce(refusal(error));
}

// --- what was recorded ---

/** Which example this is, with the sentence that it is compared with; −1 for none, and where
 *  anything but padding is hidden. */
function recordedPlace({ text, mask, hide, against }) {
  if (mask !== MASKS[0] || hide.length) return -1;
  return EXAMPLES.findIndex((one) => one.text === text && (one.against ?? "") === against);
}

// --- what is shown ---

function show({ answer, control: other }, asked, isNewest) {
  busy(!isNewest);
  const before = reading?.words[chosen.word];
  reading = new Reading(answer);
  const isRecorded = asked.encoder === RECORDED;
  const notes = answer.notes.map((note) => el("p", { class: "note" }, noted(note)));
  if (isRecorded) notes.unshift(el("p", { class: "note" }, withCode(say(facts.layered.length ? "recordedBeside" : "recorded", facts.recorded))));
  byId("notes").replaceChildren(...notes);
  const { words: names, layers, heads, hasLayers } = reading;
  byId("size").textContent = say(hasLayers ? "size" : "sizeOnly", {
    words: count(names.filter((name) => !isSpecial(name)).length), tokens: count(answer.tokens.length), layers, heads,
  });
  byId("reading").hidden = names.length === 0;
  if (names.length === 0) return;
  place(before);
  drawSentences(other, isRecorded);
  byId("comparison").hidden = answer.against === null;
  if (answer.against !== null) byId("cosines").replaceChildren(cosineTable(answer.against));
  drawPlace(isNewest);
}

/** The words of the sentence and of the control, and the heads of both. */
function drawSentences(other, isRecorded) {
  const focused = words.focused;
  words.draw(reading.words, reading.pieces, struck());
  if (focused >= 0) words.focus(focused);
  const compared = other?.words.length ? new Reading(other) : null;
  control.draw(compared, new Set(compared ? hiddenColumns(compared) : []));
  drawMasks(isRecorded);
  byId("layers").hidden = !reading.hasLayers;
  const hasGrids = reading.hasLayers && compared !== null;
  byId("grids").classList.toggle("two", hasGrids);
  byId("control-heads-box").hidden = byId("heads-caption").hidden = !hasGrids;
  if (reading.hasLayers) grid.draw(reading);
  if (!hasGrids) return;
  controlGrid.draw(compared);
  byId("heads-caption").textContent = text(chosen.text);
  byId("control-caption").textContent = text(chosen.against);
}

function redrawHeads() {
  for (const one of [grid, controlGrid]) one.reshade();
  if (reading?.words.length) map.draw(reading.words, weights(), placeSaid());
  if (reading?.words.length) drawWord(chosen.word);
}

function drawMasks(isRecorded) {
  for (const id of ["strike", "causal"]) {
    byId(id).disabled = isRecorded;
    byId(id).title = isRecorded ? say("strikeOff") : "";
  }
  if (isRecorded) setStriking(false);
  byId("causal").checked = chosen.mask === "causal";
  byId("all-words").hidden = isRecorded || struck().size === 0;
}

/** Which word and head: those of the example or of the address, else those there were. Else the
 *  first word of the sentence, and the head in which it attends most to another word. */
function place(before) {
  const { words: names, layers, heads, hasLayers } = reading;
  const within = (n, most) => (n !== null && n < most ? n : null);
  if (wanted) {
    chosen.word = Math.max(names.indexOf(wanted.word), 0);
    const at = names.indexOf(wanted.at);
    if (hasLayers && at >= 0) [chosen.layer, chosen.head] = reading.best(chosen.word, at);
    wanted = null;
  } else if (before !== undefined && names[chosen.word] !== before && names.includes(before)) {
    chosen.word = names.indexOf(before);
  }
  const first = names.findIndex((word) => !isSpecial(word) && /[\p{L}\p{N}]/u.test(word));
  chosen.word = within(chosen.word, names.length) ?? Math.max(first, 0);
  if (hasLayers && chosen.layer === null && chosen.head === null) [chosen.layer, chosen.head] = mostTelling(chosen.word);
  chosen.layer = within(chosen.layer, layers) ?? Math.max(layers - 1, 0);
  chosen.head = within(chosen.head, heads) ?? 0;
}

/** The head in which a word attends most to another one. Its neighbours are left out: many heads
 *  attend to the next word, or to the one before, whatever it is. */
function mostTelling(i) {
  let found = [reading.layers - 1, 0];
  let most = 0;
  for (const { layer, head, weights: map } of reading.answer.maps) {
    const at = target(reading.words, map[i], i, 1);
    if (at !== null && map[i][at] > most) [found, most] = [[layer, head], map[i][at]];
  }
  return found;
}

/** The weights of the chosen head, or of the mean, in a sentence. */
const weightsIn = (one) =>
  chosen.view === "one" || !one.hasLayers ? one.of(chosen.layer, chosen.head) : one.mean(chosen.layer);
const weights = () => weightsIn(reading);

function placeSaid() {
  const { layer, head, view } = chosen;
  return reading.hasLayers ? placeName(layer, view === "one" ? head : null, reading.heads) : say("placeOnly");
}

/** All that depends on the head. */
function drawPlace(isTold) {
  const { words: names, hasLayers } = reading;
  const name = placeSaid();
  byId("place").textContent = name;
  for (const one of [grid, controlGrid]) one.choose(chosen.layer, chosen.view === "one" ? chosen.head : null);
  const focused = lines.froms?.indexOf(document.activeElement) ?? -1;
  lines.draw(names, weights(), hasLayers);
  map.draw(names, weights(), name);
  byId("map-said").textContent = mapSaid();
  drawWord(chosen.word);
  if (focused >= 0) lines.focus(chosen.word);
  if (isTold) announce(`${name}. ${sentence(chosen.word)}`);
  keep();
}

function mapSaid() {
  const said = [say(reading.words.length > MOST ? "mapLarge" : "mapCaption", { n: count(reading.words.length) })];
  if (!reading.hasLayers) said.push(say("noLayers"));
  const cells = weights().flat();
  const n = cells.filter((weight) => weight === null).length;
  if (n) said.push(say("hiddenCount", { n: count(n), all: count(cells.length) }));
  return said.join(" ");
}

/** What a word attends to most: to words of the sentence, and to the marks around it together. */
function sentence(i) {
  const marks = weights()[i].filter((weight, j) => weight && isSpecial(reading.words[j]));
  const ofMarks = marks.reduce((sum, weight) => sum + weight, 0);
  if (!ofMarks) return toWords(i);
  const hasWords = weights()[i].some((weight, j) => weight && !isSpecial(reading.words[j]));
  if (!hasWords) return say("attendsMarksAlone", { word: `“${text(reading.words[i])}”` });
  return say("attendsMarks", { said: toWords(i), weight: share(ofMarks) });
}

function toWords(i) {
  const row = weights()[i].map((weight, j) => (isSpecial(reading.words[j]) ? 0 : weight));
  const [first, second] = byWeight(row);
  if (!row[first]) return say("attendsNothing", { word: `“${text(reading.words[i])}”` });
  const said = { word: `“${text(reading.words[i])}”`, first: `“${text(reading.words[first])}”`, weight: share(row[first] ?? 0) };
  if (second === undefined || !row[second]) return say("attends", said);
  return say("attendsAlso", { ...said, second: `“${text(reading.words[second])}”`, more: share(row[second]) });
}

/** All that depends on the word. */
function drawWord(i) {
  words.show(i, weights()[i]);
  control.show(i, reading, weightsIn);
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

// --- what is hidden ---

/** The words that nothing attends to, whatever the mask: by their places in the answer. */
const hiddenColumns = ({ words: names, answer }) =>
  names.map((_, j) => j).filter((j) => answer.maps[0].weights.every((row) => row[j] === null));

const paddings = () => reading.words.flatMap((word, j) => (word === PADDING ? [j] : []));

/** The words that are struck out: what a person chose, and padding unless somebody shows it. */
const struck = () => new Set([...chosen.hide, ...(chosen.mask === "padding" ? paddings() : [])]);

/** Hide these words, and later ones too if `isCausal`. */
function hideWords(places, isCausal) {
  const isPaddingAlone = !isCausal && String(places) === String(paddings());
  chosen.mask = isCausal ? "causal" : isPaddingAlone ? "padding" : "none";
  chosen.hide = isPaddingAlone ? [] : places;
  asks();
}

/** Strike a word out, or show it again. */
function strike(i) {
  if (chosen.encoder === RECORDED || !reading?.words.length) return;
  const places = struck();
  const isNew = !places.delete(i);
  if (isNew) places.add(i);
  announce(say(isNew ? "struckHidden" : "struckShown", { word: `“${text(reading.words[i])}”` }));
  hideWords([...places].sort((a, b) => a - b), chosen.mask === "causal");
}

function setStriking(isOn) {
  isStriking = isOn;
  byId("strike").setAttribute("aria-pressed", isOn);
  byId("sentence-words").classList.toggle("striking", isOn);
}

/** The places of words are those of one sentence, read by one encoder. */
function forgetStruck() {
  chosen.hide = [];
  if (chosen.mask === "none") [chosen.mask] = MASKS;
}

/** To the head in which the chosen word reads most from the word `j`. */
function follow(j) {
  const i = chosen.word;
  [chosen.layer, chosen.head] = reading.best(i, j);
  chosen.view = "one";
  drawPlace(false);
  const weight = share(reading.of(chosen.layer, chosen.head)[i][j] ?? 0);
  announce(say("went", { place: placeSaid(), word: text(reading.words[i]), weight, first: text(reading.words[j]) }));
  lines.tos[j].firstChild.focus();
}

/** A key that goes round: in `n` places from `now` by `step`. */
const round = (now, step, n) => (now + step + n) % n;

function moveWord(step) {
  return (event) => {
    if (!reading?.words.length || event.target.closest(".scrolls")) return false;
    const isDown = event.key === "ArrowDown" || event.key === "ArrowUp";
    const isLine = byId("lines").contains(event.target);
    if (isDown && event.target !== byId("text") && !isLine) return false;
    const now = words.focused >= 0 ? words.focused : chosen.word;
    const next = event.target === byId("text") ? chosen.word : round(now, step, reading.words.length);
    (isLine ? lines : words).focus(next);
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
}

/** An example's control is none of another sentence. */
function forgetControl() {
  if (!EXAMPLES.some((one) => one.against === chosen.against)) return;
  chosen.against = byId("against").value = "";
}

/** An example as it is wanted, with its second sentence. */
function take(example) {
  wanted = example;
  Object.assign(chosen, { text: example.text, against: example.against ?? "", mask: MASKS[0], hide: [], view: "one" });
  if (facts.recorded) chosen.encoder = RECORDED;
  fill();
}

function start() {
  for (const name of ENCODERS) {
    byId("encoder").append(el("option", { value: name }, name === RECORDED ? say("recordedName", facts.recorded) : name));
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
      if (id !== "against") forgetStruck();
      if (id === "text") forgetControl();
      if (id === "encoder" && chosen.encoder === RECORDED && recordedPlace(chosen) < 0) take(EXAMPLES[0]);
      asks();
    });
  }
  byId("asked").addEventListener("submit", (event) => event.preventDefault());
  byId("strike").addEventListener("click", () => setStriking(!isStriking));
  byId("all-words").addEventListener("click", () => hideWords([], chosen.mask === "causal"));
  byId("causal").addEventListener("change", ({ target: box }) => hideWords([...struck()], box.checked));
  // The small maps are pixels in the accent's colour, which is another in the dark.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawHeads);
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
  onKey("x", "x", say("strikeKey"), () => {
    if (words.focused < 0) return false;
    strike(words.focused);
    return true;
  });
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
