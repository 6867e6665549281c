// The page that recommends: pick, rate, and watch the list change; what is asked, and what is shown.
import { ask, latest, Refused } from "./api.js";
import { brief, byId, el, owned } from "./dom.js";
import { fields, useColumns } from "./item_card.js";
import { picker } from "./picker.js";
import { compared, counted, showChanges } from "./recommend/changes.js";
import { choice, chosen, isSomebody, question, read, STEP, written } from "./recommend/choice.js";
import { rating, standing } from "./recommend/entry.js";
import { showExamples, showPopular } from "./recommend/first.js";
import { around } from "./recommend/groups.js";
import { listed, showHits, toggleWhy } from "./recommend/hits.js";
import { learnTitles, loadHistory, missing, showChosen, showHistory, titleOf, titles } from "./recommend/people.js";
import { isRated, highest, lowest, useScale } from "./recommend/ratings.js";
import { askToRecord, showRecording } from "./recommend/recording.js";
import { showSliders, startSliders } from "./recommend/sliders.js";
import { noted, refusal } from "./server.js";
import { announce, begin, onKey, remember, state } from "./shell.js";
import { count, facts, say } from "./words.js";

// So many items of the history stand by themselves in the reasons of a hit.
const REASONS = 5;
// What there is to choose from at first.
const POPULAR = 12;
// How the server's note on a list that rests on little begins.
const WEAK = "Weak:";
const FIGURES = /^Weak: these rest on (?:one item that|(?<n>[\d,]+) items, the best known of which) (?:nobody|(?<people>[\d,]+) \w+) of the log liked\. /;
// What is to be told with the next answer.
let told = "";

// --- asking ---

/** Without what is not in the catalog, which the page says. */
function known() {
  const whole = question();
  const isHere = (id) => !missing.has(id);
  for (const name of ["likes", "exclude", "without"]) whole[name] = whole[name].filter(isHere);
  whole.ratings = Object.fromEntries(Object.entries(whole.ratings).filter(([id]) => isHere(id)));
  return whole;
}

/** The list; and where something is left out, longer lists with it and without it, to compare. */
function questions() {
  const now = known();
  const found = [{ ...now, explain: true, because: REASONS, fields: fields() }];
  if (now.without.length) found.push({ ...now, without: [], k: facts.most }, { ...now, k: facts.most });
  return found;
}

const answered = latest((asked) => ask("recommend", {}, { method: "POST", body: { questions: asked } }), show, fail);

/** Until the newest answer is shown, the list is busy; what went wrong before is told no more. */
function list(asked) {
  forgive();
  byId("hits").setAttribute("aria-busy", "true");
  answered(asked);
}

/** Ask for the list as it should be now. */
function update(step = true) {
  remember(written(), step);
  showAll();
  const somebody = isSomebody();
  byId("start").hidden = somebody;
  byId("answer").hidden = !somebody;
  if (somebody) list(questions());
  else {
    answered.forget();
    forgive();
    byId("hits").setAttribute("aria-busy", "false");
    announce(told || say("nobody"));
    told = "";
    ready();
  }
}

/** What is beside the list. */
function showAll() {
  showChosen(act);
  showHistory(act);
  showRecording();
  showStart();
}

// --- showing ---

function show({ answers }, asked, isNewest) {
  const [{ hits, notes }, base, now] = answers;
  const before = new Set(listed());
  const without = new Set(asked[0].without);
  for (const hit of hits) titles.set(String(hit.id), hit.title);
  const found = base && compared(hits, base.hits, now.hits, without);
  const marks = found ? found.marks : added(hits, before);
  showHits(hits, marks, act, reasonsOf);
  showChanges(choice.without, titleOf, found, act.leaveOut);
  showNotes(notes, hits.some((hit) => hit.weak));
  byId("count").textContent = hits.length ? "" : say("noHits");
  byId("start").hidden = hits.length > 0 || Boolean(choice.user);
  byId("more").hidden = hits.length < choice.k || choice.k >= facts.most;
  if (isNewest) {
    byId("hits").setAttribute("aria-busy", "false");
    const total = hits.length ? say("hitCount", { n: count(hits.length) }) : say("noHits");
    const change = found ? counted(found.counts) : before.size ? say("newCount", { n: count(marks.size) }) : total;
    announce([told, change].filter(Boolean).join(" "));
    told = "";
  }
  ready();
}

/** The figures of a note on a list that rests on little, in the language of the page; null for a note that has others. */
function figuresOf(note) {
  const found = FIGURES.exec(note);
  if (!found) return null;
  const [n, people] = [found.groups.n ?? "1", found.groups.people ?? "0"].map((digits) => Number(digits.replaceAll(",", "")));
  return el("p", {}, say("weakFigures", { n, people }));
}

/** What the server says of the list. That it rests on little is said in a sentence of this page; the server's own, with
 *  its figures, is behind it. */
function showNotes(notes, isWeak) {
  const said = (note) => el("p", {}, noted(note));
  const isOfWeakness = (note) => isWeak && note.startsWith(WEAK);
  const place = byId("notes");
  place.replaceChildren(...notes.filter((note) => !isOfWeakness(note)).map(said));
  if (isWeak) {
    const figures = notes.filter(isOfWeakness).map((note) => figuresOf(note) ?? said(note));
    place.append(el("p", {}, say("weak")), ...(figures.length ? [el("details", {}, el("summary", {}, say("whyWeak")), figures)] : []));
  }
  place.hidden = !place.children.length;
}

/** What was not there before; nothing where nothing was. */
function added(hits, before) {
  if (!before.size) return new Map();
  const fresh = hits.filter((hit) => !before.has(String(hit.id)));
  return new Map(fresh.map((hit) => [String(hit.id), { kind: "came", text: say("new"), more: "" }]));
}

/** What failed before is told no more. */
function forgive() {
  for (const id of ["failed", "user-failed"]) byId(id).hidden = true;
}

/** Say what failed, where the person looks: that there is no such user beside the field for one. */
function fail(error, user = "") {
  const place = byId(user ? "user-failed" : "failed");
  place.replaceChildren(...(user ? around(say("noUser"), "{user}", [owned(user, 80)]) : [say("failed", { detail: refusal(error) })]));
  place.hidden = false;
  announce(place.textContent);
  byId("hits").setAttribute("aria-busy", "false");
  ready();
}

/** The page stands: nothing of it was shown before that would have moved. */
function ready() {
  document.body.dataset.ready = "";
}

/** One hit with all of its reasons; null where there is none at this rank any more. */
async function reasonsOf(rank) {
  try {
    return (await ask("explain/recommend", {}, { method: "POST", body: { ...known(), rank, explain: "smallest" } })).hit;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status === 404) return null;
    fail(error);
    return null;
  }
}

// --- doing ---

function tell(what, title) {
  told = say("did", { act: what, title: brief(title) });
}

const act = {
  like(id, title) {
    stand(id, title, { kind: "like" });
  },
  dislike(id, title) {
    stand(id, title, isRated() ? { kind: "rate", rating: lowest() } : { kind: "dislike" });
  },
  rate(id, title, value) {
    stand(id, title, { kind: "rate", rating: value });
  },
  remove(id, title) {
    chosen.delete(id);
    choice.without.delete(id);
    tell(say("removed"), title);
    update();
  },
  leaveOut(id, title) {
    titles.set(id, title);
    const back = choice.without.delete(id);
    if (!back) choice.without.add(id);
    tell(say(back ? "broughtBack" : "leftOut"), title);
    const inList = byId("hits").contains(document.activeElement) || byId("changed").contains(document.activeElement);
    update();
    showChanges(choice.without, titleOf, null, act.leaveOut);
    if (inList) (document.querySelector(`#left-out [data-without="${CSS.escape(id)}"]`) ?? byId("list-heading")).focus();
  },
  leaveOutAll(items) {
    for (const [id, title] of items) {
      titles.set(id, title);
      choice.without.add(id);
    }
    told = say("did", { act: say("leftOut"), title: items.map(([, title]) => brief(title)).join(", ") });
    update();
    showChanges(choice.without, titleOf, null, act.leaveOut);
    byId("list-heading").focus();
  },
};

/** The same again takes it back. */
function stand(id, title, how) {
  titles.set(id, title);
  const before = chosen.get(id);
  const same = before && before.kind === how.kind && before.rating === how.rating;
  if (same) chosen.delete(id);
  else chosen.set(id, how);
  tell(same ? say("removed") : standing(id), title);
  update();
}

/** A key on a listed item. False where the keyboard is elsewhere. */
function onItem(run) {
  return () => {
    const item = document.activeElement?.closest("[data-item]");
    if (!item) return false;
    run(item.dataset.item, titleOf(item.dataset.item));
    return true;
  };
}

/** From one listed item to the next. */
function move(by) {
  return () => {
    const items = [...document.querySelectorAll("[data-item]")].filter((item) => item.offsetParent);
    const from = items.indexOf(document.activeElement?.closest("[data-item]"));
    const first = items.findIndex((item) => item.closest("#hits, #most-met"));
    const next = from < 0 ? items[Math.max(first, 0)] : items[from + by];
    next?.querySelector(".title").focus();
    return Boolean(next);
  };
}

function startKeys() {
  onKey("/", "/", say("helpSearch"), () => byId("box").focus());
  onKey("ArrowDown", "↓ ↑", say("helpMove"), move(1));
  onKey("ArrowUp", "", "", move(-1));
  onKey("Enter", "Enter", say("helpOpenItem"), () => false);
  onKey("w", "w", say("helpWhy"), onItem(toggleWhy));
  for (const key of ["+", "l"]) onKey(key, key === "l" ? "+ l" : "", say("helpLike"), onItem(act.like));
  for (const key of ["-", "d"]) onKey(key, key === "d" ? "- d" : "", say("helpDislike"), onItem(act.dislike));
  onKey("x", "x", say("helpRemove"), onItem((id, title) => (chosen.has(id) ? act.remove : act.leaveOut)(id, title)));
  onKey("Escape", "Esc", say("helpEscape"), () => byId("box").focus());
}

// --- beginning ---

let met = [];

/** What there is to pick from, before anything is. */
function showStart() {
  showPopular(met, act);
  showExamples(met, !isSomebody());
}

async function items(typed) {
  // By their words alone: what is picked is known by its name.
  const { hits } = await ask("search", { q: typed, prefix: true, heads: "lexical", k: 8 });
  const alike = (title) => hits.filter((hit) => hit.title === title).length > 1;
  const note = (id, title) => [alike(title) ? id : "", standing(id)].filter(Boolean).join(" · ");
  return hits.map(({ id, title }) => ({ id: String(id), title, note: note(String(id), title) }));
}

async function take(user) {
  choice.user = user;
  try {
    await loadHistory();
    byId("user").value = "";
    update();
    byId(user ? "list-heading" : "user").focus();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    choice.user = "";
    update();
    refuse(error, user);
  }
}

/** A user who is not there, or a server that does not answer. */
function refuse(error, user) {
  if (error.status !== 404) {
    fail(error);
    return;
  }
  // What was typed stays, to be mended.
  byId("user").value = user;
  fail(error, user);
}

function startControls() {
  picker(byId("box"), byId("box-list"), { suggest: items, pick: ({ id, title }) => act.like(id, title) });
  byId("user").addEventListener("change", ({ target }) => {
    const user = target.value.trim();
    if (user) take(user);
  });
  byId("user-away").addEventListener("click", () => take(""));
  byId("history-more").addEventListener("click", () => readHistory(true));
  byId("more").addEventListener("click", () => {
    choice.k = Math.min(choice.k + STEP, facts.most);
    update(false);
  });
  byId("all-back").addEventListener("click", () => {
    choice.without.clear();
    update();
    byId("list-heading").focus();
  });
  byId("record").addEventListener("click", () => askToRecord(recorded));
  startSliders((settled) => (settled ? update(false) : isSomebody() && list(questions())));
}

/** One head of a recommendation or all of them, where there are several. */
function startHeads({ shares = {} } = {}) {
  const names = Object.keys(shares);
  byId("heads-part").hidden = !names.length;
  const offer = (name, title) => el("option", { value: name, selected: name === choice.heads }, title);
  byId("heads").replaceChildren(
    offer("", say("allHeads")),
    ...names.map((name) => offer(name, facts.headTitles[name])),
  );
  byId("heads").addEventListener("change", ({ target }) => {
    choice.heads = target.value;
    update();
  });
}

async function recorded(ids) {
  for (const id of ids) chosen.delete(id);
  told = say("recorded", { n: count(ids.length) });
  update();
  byId("list-heading").focus();
  await readHistory(false);
}

/** The user's history as it is now, from the beginning or `more` of it. */
async function readHistory(more) {
  try {
    await loadHistory(more);
    showHistory(act);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    fail(error);
  }
}

/** The address names somebody who is not there: the page stands without them, and says so. */
let refused = null;
function noUser(error) {
  if (!(error instanceof Refused)) throw error;
  refused = { error, user: choice.user };
  choice.user = "";
}

async function open() {
  read(state());
  startKeys();
  startControls();
  begin();
  showSliders();
  try {
    useColumns(await ask("facets"));
    const [info, most] = await Promise.all([
      ask("info"),
      ask("items", { sort: "users", k: Math.min(POPULAR, facts.most), fields: fields() }),
      loadHistory().catch(noUser),
      learnTitles(),
    ]);
    useScale(info.rating_scale);
    startHeads(info.recommend_heads ?? {});
    met = most.rows;
    for (const { id, title } of met) titles.set(String(id), title);
    const people = info.users + info.recorded;
    byId("user-part").hidden = people === 0;
    byId("start-heading").textContent = say(people ? "popular" : "firstOnes");
    byId("options").open = ["heads", "diversity", "damping", "recent"].some((name) => choice[name]);
    byId("by-texts").hidden = info.interactions > 0;
    byId("scale").textContent = isRated() ? say("scaleIs", { least: rating(lowest()), most: rating(highest()) }) : say("unrated");
    update(false);
    if (refused) refuse(refused.error, refused.user);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    byId("start").hidden = true; // nothing is being loaded any more
    fail(error);
  }
}

open();
