// The token that some servers demand: asked for once, kept as long as the tab is open.
import { el } from "./dom.js";
import { say } from "./words.js";

const KEPT = "qkvsearch-token";
let given = kept();
let asking = null;
let wasGiven = given !== null;

function kept() {
  try {
    return sessionStorage.getItem(KEPT);
  } catch {
    return null; // not allowed
  }
}

function keep(typed) {
  wasGiven = true;
  // What no header can carry is no token: it is asked for again.
  given = /^[\x21-\x7e]+$/.test(typed) ? typed : null;
  try {
    if (given === null) sessionStorage.removeItem(KEPT);
    else sessionStorage.setItem(KEPT, given);
  } catch {
    // Not allowed: this page alone knows it.
  }
}

/** The token that was typed in this tab; null for none. */
export const storedToken = () => given;

/** The headers, with what shows that one may ask. */
const authorized = (headers) => (given === null ? headers : { ...headers, Authorization: `Bearer ${given}` });

/** The answer to a request, once a token is given where one is demanded. options: of `fetch`. */
export async function fetchAllowed(address, options = {}) {
  for (;;) {
    const sent = given;
    const answer = await fetch(address, { ...options, headers: authorized(options.headers) });
    if (answer.status !== 401) return answer;
    // Another question may have been answered by the dialog meanwhile.
    if (sent === given) await askForToken();
  }
}

/** A dialog for it; several questions at once share one. */
function askForToken() {
  asking ??= new Promise((done) => {
    const field = el("input", { type: "password", id: "token", autocomplete: "off", required: true });
    const form = el(
      "form",
      { method: "dialog" },
      el("h2", {}, say("token")),
      wasGiven ? el("p", { class: "note bad", role: "alert" }, say("tokenWrong")) : null,
      el("label", { for: "token" }, say("tokenField")),
      field,
      el("p", { class: "quiet" }, say("tokenWhy")),
      el("button", { type: "submit" }, say("tokenUse")),
    );
    const dialog = el("dialog", { "aria-label": say("token") }, form);
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      keep(field.value.trim());
      dialog.remove();
      asking = null;
      done();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}
