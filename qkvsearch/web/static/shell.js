// What every page does: keys, the list of them, what a screen reader is told, state in the address.
import { byId, el, isComposing } from "./dom.js";
import { say } from "./words.js";

/** Tell whoever hears the page; the same words twice are told twice. */
export function announce(sentence) {
  const said = byId("said");
  said.textContent = said.textContent === sentence ? `${sentence}\u00a0` : sentence;
}

/** The state that the address says. */
export const state = () => new URLSearchParams(location.search);

/** The address without the place in the page, which the browser goes to by itself. */
const addressNow = () => location.pathname + location.search;
let shown = addressNow();

/** Have the address say `parameters`; `step`: so that Back returns to what was before. */
export function remember(parameters, step = false) {
  const spoken = state().get("lang");
  const next = new URLSearchParams(parameters);
  if (spoken) next.set("lang", spoken);
  const address = `${location.pathname}${next.size ? `?${next}` : ""}`;
  if (step) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  shown = addressNow();
  keepLanguage();
}

/** Links to other pages keep the language that was chosen; the link to the other one, the state. */
function keepLanguage() {
  const spoken = state().get("lang");
  for (const link of document.querySelectorAll("header.bar a:not(.language)")) {
    const to = new URL(link.getAttribute("href"), location.href);
    if (spoken) to.searchParams.set("lang", spoken);
    link.setAttribute("href", to.pathname + to.search);
  }
  const link = document.querySelector("header.bar .language");
  const other = state();
  other.set("lang", link.getAttribute("hreflang"));
  link.setAttribute("href", `?${other}`);
}

const keys = [];
// Where this browser remembers that single keys are switched off.
const KEYS_OFF = "qkvsearch-keys-off";
let isOff = false;
try {
  isOff = localStorage.getItem(KEYS_OFF) === "yes";
} catch {
  // A browser that keeps nothing has them on.
}

/** Whoever speaks to the computer, or hits keys by accident, may do without single keys. Arrows, Enter and Esc stay. */
function switchKeys(isOn) {
  isOff = !isOn;
  try {
    if (isOff) localStorage.setItem(KEYS_OFF, "yes");
    else localStorage.removeItem(KEYS_OFF);
  } catch {
    // They are off as long as this page stays.
  }
}

/** A key that does something on this page: `key` as in KeyboardEvent, `shown` in the list of help,
 *  `what` in words. `run` returns false where the key should do what it always does. */
export function onKey(key, shown, what, run) {
  keys.push({ key, shown, what, run });
}

const isTyping = (target) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isComposing(event)) return;
  if (document.querySelector("dialog[open], :popover-open")) return;
  const typing = isTyping(event.target) && !["ArrowDown", "ArrowUp", "Escape"].includes(event.key);
  if (event.target instanceof HTMLSelectElement && event.key !== "Escape") return;
  if (isOff && [...event.key].length === 1) return;
  if (typing || (isTyping(event.target) && event.target.type === "range")) return;
  for (const one of keys) {
    if (one.key === event.key && one.run(event) !== false) {
      event.preventDefault();
      return;
    }
  }
});

/** The list of keys. */
function showHelp() {
  const rows = keys
    .filter((one) => one.shown)
    .map((one) => el("tr", {}, el("td", {}, el("kbd", {}, one.shown)), el("td", {}, one.what)));
  const dialog = el(
    "dialog",
    { class: "keys", "aria-label": say("help") },
    el("h2", {}, say("help")),
    el("table", {}, el("tbody", {}, rows)),
    el("p", {}, el("label", {}, el("input", { type: "checkbox", checked: !isOff, onchange: ({ target }) => switchKeys(target.checked) }), " ", say("helpSingle"))),
    el("p", { class: "quiet" }, say("helpSingleSays")),
    el("form", { method: "dialog" }, el("button", { type: "submit" }, say("close"))),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** To be called once the page's own keys are known. */
export function begin() {
  onKey("?", "?", say("helpHelp"), showHelp);
  const links = [...document.querySelectorAll("header.bar nav a")];
  links.forEach((link, place) => {
    onKey(String(place + 1), place ? "" : `1 … ${links.length}`, say("helpMenu"), () => link.click());
  });
  byId("help").addEventListener("click", showHelp);
  keepLanguage();
  window.addEventListener("popstate", () => {
    if (addressNow() !== shown) location.reload();
  });
}
