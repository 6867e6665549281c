// What the visitor chose is recorded for a user, for good, once they say so.
import { ask, Refused } from "../api.js";
import { withCode } from "../code.js";
import { byId, el, owned } from "../dom.js";
import { refusal } from "../server.js";
import { count, facts, say } from "../words.js";
import { choice, chosen } from "./choice.js";
import { standing } from "./entry.js";
import { missing, titleOf } from "./people.js";

/** Likes and ratings; a dislike where nothing is rated is only left out of the list. */
const recordable = () => [...chosen].filter(([id, { kind }]) => kind !== "dislike" && !missing.has(id));

/** Show the button where there is something to record, for somebody. */
export function showRecording() {
  byId("record").hidden = facts.readOnly || !choice.user || !recordable().length;
}

/** Ask, then record; done(ids) afterwards. */
export function askToRecord(done) {
  const entries = recordable();
  // By the same keys again, should an answer be lost: then nothing is recorded twice.
  const batches = [];
  for (let start = 0; start < entries.length; start += facts.batch) {
    batches.push({ key: newKey(), entries: entries.slice(start, start + facts.batch) });
  }
  const failed = el("p", { class: "note bad", role: "alert", hidden: true });
  const yes = el("button", { type: "submit" }, say("recordYes"));
  const form = el(
    "form",
    {},
    el("h2", {}, say("recordAsk", { n: count(entries.length) })),
    el("p", {}, say("recordFor"), " ", owned(choice.user, 80)),
    el("ul", { class: "to-record" }, entries.map(([id]) => el("li", {}, owned(titleOf(id), 120), el("span", { class: "quiet" }, ` ${standing(id)}`)))),
    el("p", { class: "quiet" }, withCode(say("recordStays"))),
    failed,
    el("div", { class: "row" }, yes, el("button", { type: "button", onclick: () => dialog.close() }, say("cancel"))),
  );
  const dialog = el("dialog", { "aria-label": say("recordIt") }, form);
  const user = choice.user;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    yes.disabled = true;
    try {
      for (const batch of batches) await record(user, batch);
      dialog.close();
      done(entries.map(([id]) => id));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      failed.textContent = say("failed", { detail: refusal(error) });
      failed.hidden = false;
    } finally {
      yes.disabled = false;
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

async function record(user, { key, entries }) {
  const interactions = entries.map(([item, { kind, rating }]) => ({ user, item, ...(kind === "rate" ? { rating } : {}) }));
  await ask("record", {}, { method: "POST", body: { interactions }, headers: { "Idempotency-Key": key } });
}

/** 128 random bits; randomUUID is for secure origins alone. */
function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
