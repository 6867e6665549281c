// What a reader of the course has read and answered, kept in this browser and nowhere else.

const KEPT = "qkvsearch-course";
const NOTHING = { read: {}, answers: {}, sentences: {}, last: null };
let known = stored();
/** Whether this browser keeps anything. */
export let isKept = true;

/** As it was left; what is damaged counts as nothing. */
function stored() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT));
    const lists = Object.values(found.read);
    const answers = Object.values(found.answers);
    if (lists.every(Array.isArray) && answers.every((one) => typeof one.given === "string")) return found;
  } catch {
    // None yet, not ours, or not allowed.
  }
  return structuredClone(NOTHING);
}

function keep(change) {
  known = isKept ? stored() : known; // another tab may have read on
  change(known);
  try {
    localStorage.setItem(KEPT, JSON.stringify(known));
  } catch {
    isKept = false;
  }
}

/** Whether the step, by its number, is marked as read. */
export const isRead = (lesson, step) => (known.read[lesson] ?? []).includes(step);

/** Mark it, or take the mark back. */
export function markRead(lesson, step, yes) {
  keep((all) => {
    const others = (all.read[lesson] ?? []).filter((one) => one !== step);
    all.read[lesson] = yes ? [...others, step] : others;
  });
}

/** What was answered to a question, by its name: `given` and whether it is `right`; or undefined. */
export const answerTo = (question) => known.answers[question];

/** Keep the answer to a question. */
export const keepAnswer = (question, given, right) =>
  keep((all) => (all.answers[question] = { given, right }));

/** What was explained at the end of a lesson, in the reader's own words. */
export const sentenceOf = (lesson) => known.sentences?.[lesson] ?? "";

/** Keep it. */
export const keepSentence = (lesson, sentence) =>
  keep((all) => (all.sentences = { ...all.sentences, [lesson]: sentence }));

/** Where the reader was last: {lesson, step}, or null. */
export const last = () => known.last;

/** Note where the reader is. */
export const keepPlace = (lesson, step) => keep((all) => (all.last = { lesson, step }));

/** Of a lesson with `steps` and `questions`: how many are read, and right. */
export function progressOf({ name, steps, questions }) {
  return {
    steps: steps.filter((_, place) => isRead(name, place + 1)).length,
    allSteps: steps.length,
    right: questions.filter((question) => answerTo(question)?.right).length,
    questions: questions.length,
  };
}

/** Nothing is known any more. */
export function forget() {
  keep((all) => Object.assign(all, structuredClone(NOTHING)));
}
