// A lesson: which steps were read, what was answered, and the way to the lessons beside it.
import { byId, el } from "./dom.js";
import { answerTo, isKept, isRead, keepAnswer, keepPlace, markRead, progressOf } from "./progress.js";
import { announce, begin, onKey } from "./shell.js";
import { count, facts, say } from "./words.js";

const steps = [...document.querySelectorAll(".step")];
const buttons = new Map();
const placeOf = (step) => steps.indexOf(step) + 1;

function showProgress() {
  const found = progressOf(facts);
  const values = Object.fromEntries(Object.entries(found).map(([name, n]) => [name, count(n)]));
  const told = say("progress", values);
  byId("progress").textContent = isKept ? told : `${told} ${say("notKept")}`;
}

// --- steps ---

function show(step) {
  const read = isRead(facts.name, placeOf(step));
  const button = buttons.get(step);
  button.setAttribute("aria-pressed", String(read));
  button.textContent = read ? `✓ ${say("isRead")}` : say("markRead");
}

function mark(step, yes) {
  if (isRead(facts.name, placeOf(step)) === yes) return;
  markRead(facts.name, placeOf(step), yes);
  show(step);
  showProgress();
}

for (const step of steps) {
  const title = step.getAttribute("aria-labelledby");
  const id = `read-${step.id}`;
  const button = el("button", { type: "button", class: "read", id, "aria-labelledby": `${id} ${title}` });
  button.addEventListener("click", () => {
    const yes = !isRead(facts.name, placeOf(step));
    mark(step, yes);
    announce(say(yes ? "stepRead" : "stepUnread", { place: `${facts.number}.${placeOf(step)}` }));
  });
  buttons.set(step, button);
  step.append(button);
  show(step);
}

// A step is read once its end has gone above the middle of the window, by the reader's scrolling.
let scrolled = false;
window.addEventListener("scroll", () => (scrolled = true), { passive: true, once: true });
const passed = new IntersectionObserver(
  (found) => {
    for (const { target, isIntersecting, boundingClientRect, rootBounds } of found) {
      if (isIntersecting) keepPlace(facts.name, placeOf(target));
      else if (scrolled && boundingClientRect.bottom <= rootBounds.bottom) mark(target, true);
    }
  },
  { rootMargin: "0px 0px -50% 0px" },
);
for (const step of steps) passed.observe(step);

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
