// The contents of the course: how far the reader has come in each lesson, and where to go on.
import { byId } from "./dom.js";
import { forget, isKept, last, progressOf } from "./progress.js";
import { announce, begin } from "./shell.js";
import { count, facts, say } from "./words.js";

const entries = new Map(
  [...document.querySelectorAll("[data-lesson]")].map((entry) => [entry.dataset.lesson, entry]),
);
const outlines = new Map();
const first = byId("resume").cloneNode(true);

function showProgress(lesson) {
  const entry = entries.get(lesson.name);
  const found = progressOf(lesson);
  const values = Object.fromEntries(Object.entries(found).map(([name, n]) => [name, count(n)]));
  entry.querySelector(".progress").textContent = say("progress", values);
  const bar = entry.querySelector("progress");
  bar.max = found.allSteps + found.questions;
  bar.value = found.steps + found.right;
}

/** The link at the top goes on where the reader was. */
function showPlace() {
  const place = last();
  const link = place && entries.get(place.lesson)?.querySelector("a");
  if (!link) return;
  const number = `${link.querySelector(".counter").textContent}.${place.step}`;
  const title = link.querySelector(".title").textContent;
  byId("resume").href = `${link.getAttribute("href")}#${place.lesson}-${place.step}`;
  byId("resume").textContent = say("goOn", { place: number, title });
}

/** A lesson's steps and questions are known when it is computed, which takes seconds once. */
async function countOf(name) {
  const answer = await fetch(`${facts.root}/learn/${name}.json?lang=${document.documentElement.lang.slice(0, 2)}`).catch(() => null);
  const entry = entries.get(name);
  if (!answer?.ok) {
    const problem = await answer?.json().catch(() => null);
    entry.querySelector(".progress").textContent = problem ? say("failed", problem) : say("offline");
    return;
  }
  const lesson = await answer.json();
  outlines.set(name, lesson);
  showProgress(lesson);
}

byId("forget").addEventListener("click", () => {
  if (!window.confirm(say("forgetSure"))) return;
  forget();
  outlines.forEach(showProgress);
  byId("resume").replaceWith(first.cloneNode(true));
  announce(isKept ? say("forgotten") : say("notKept"));
});

begin();
showPlace();
// One after the other: who opens a lesson meanwhile does not wait for all of them.
for (const name of facts.lessons) await countOf(name);
