// The token that some servers demand: asked for once, kept as long as the tab is open.
import { el } from "./dom.js";
import { say } from "./words.js";

const KEPT = "qkvsearch-token";
let asking = null;

/** What was given, or null. */
export const token = () => sessionStorage.getItem(KEPT);

/** A dialog for it; several questions at once share one. */
export function askForToken() {
  asking ??= new Promise((done) => {
    const field = el("input", { type: "password", id: "token", autocomplete: "off", required: true });
    const form = el(
      "form",
      { method: "dialog" },
      el("h2", {}, say("token")),
      el("label", { for: "token" }, say("tokenField")),
      field,
      el("p", { class: "quiet" }, say("tokenWhy")),
      el("button", { type: "submit" }, say("tokenUse")),
    );
    const dialog = el("dialog", { "aria-label": say("token") }, form);
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      const given = field.value.trim();
      // What no header can carry is no token: it is asked for again.
      if (/^[\x21-\x7e]+$/.test(given)) sessionStorage.setItem(KEPT, given);
      else sessionStorage.removeItem(KEPT);
      dialog.remove();
      asking = null;
      done();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}
