// A lesson: which steps were read, what was answered, and the way to the lessons beside it.
import { byId, el } from "./dom.js";
import { startPaging } from "./paging.js";
import {
  answerTo, isKept, isRead, keepAnswer, keepPlace, keepSentence, markRead, progressOf, sentenceOf,
} from "./progress.js";
import { announce, begin, onKey } from "./shell.js";
import { count, facts, say } from "./words.js";

const isPaged = document.querySelector("article[data-paged]") !== null;
const steps = [...document.querySelectorAll(".step")];
const buttons = new Map();
const placeOf = (step) => steps.indexOf(step) + 1;

function showProgress() {
  const found = progressOf(facts);
  const values = Object.fromEntries(Object.entries(found).map(([name, n]) => [name, count(n)]));
  // Where one step is shown at a time, its place is told below it.
  const told = say(isPaged ? "answered" : "progress", values);
  byId("progress").textContent = isKept ? told : `${told} ${say("notKept")}`;
}

// --- steps: read as the reader goes on, or all at once by the one button at the end ---

const done = el("button", { type: "button", class: "done" });

function showDone() {
  const isDone = steps.every((step) => isRead(facts.name, placeOf(step)));
  done.setAttribute("aria-pressed", String(isDone));
  done.textContent = isDone ? `✓ ${say("isDone")}` : say("markDone");
}

function mark(step, yes) {
  if (isRead(facts.name, placeOf(step)) === yes) return;
  markRead(facts.name, placeOf(step), yes);
  showDone();
  showProgress();
}

done.addEventListener("click", () => {
  const yes = done.getAttribute("aria-pressed") === "false";
  for (const step of steps) mark(step, yes);
  announce(say(yes ? "lessonDone" : "lessonNotDone"));
});
const end = el("p", { class: "end" }, done);
document.querySelector("article .back").before(end);
showDone();

// A step is read once its end has gone above the middle of the window, by the reader's scrolling.
let scrolled = false;
window.addEventListener("scroll", () => (scrolled = true), { passive: true, once: true });
const passed = new IntersectionObserver(
  (found) => {
    for (const { target, isIntersecting, boundingClientRect, rootBounds } of found) {
      if (isIntersecting) keepPlace(facts.name, placeOf(target));
      else if (scrolled && !target.hidden && boundingClientRect.bottom <= rootBounds.bottom) mark(target, true);
    }
  },
  { rootMargin: "0px 0px -50% 0px" },
);
for (const step of steps) passed.observe(step);

// --- one step at a time, where the lesson asks for it ---

if (isPaged) {
  const endings = [...document.querySelectorAll("article > .explain, article > .quizzes"), end];
  startPaging(steps, endings, { forth: say("nextStep"), back: say("previousStep"), left: (step) => mark(step, true) });
}

// --- what is explained ---

for (const field of document.querySelectorAll("[data-explains]")) {
  field.value = sentenceOf(field.dataset.explains);
  field.addEventListener("input", () => keepSentence(field.dataset.explains, field.value));
}

// --- questions ---

const questions = [...document.querySelectorAll("[data-quiz]")];

/** What stands in a form; a choice is its number. */
const given = (quiz) => String([...new FormData(quiz).values()][0] ?? "");

function fill(quiz, answer) {
  for (const field of quiz.querySelectorAll("input")) {
    if (field.type === "radio") field.checked = field.value === answer;
    else field.value = answer;
  }
}

// The course's own script judges a form as it is sent; this hears of it afterwards.
document.addEventListener("submit", ({ target: quiz }) => {
  if (!quiz.dataset.verdict) return;
  keepAnswer(quiz.dataset.quiz, given(quiz), quiz.dataset.verdict === "right");
  showProgress();
});
for (const quiz of questions) {
  const before = answerTo(quiz.dataset.quiz);
  if (!before) continue;
  fill(quiz, before.given);
  quiz.dispatchEvent(new Event("submit", { cancelable: true, bubbles: true }));
}

const turn = (rel) => document.querySelector(`.turn [rel="${rel}"]`)?.click();
onKey("n", "n", say("helpNext"), () => turn("next"));
onKey("p", "p", say("helpPrevious"), () => turn("prev"));
begin();
showProgress();
