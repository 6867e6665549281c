// A box that suggests while one types: the ARIA pattern of a combobox with list autocomplete.
import { latest } from "./api.js";
import { el, isComposing, onTyped, owned } from "./dom.js";
import { announce } from "./shell.js";
import { count, say } from "./words.js";

/** Make `input` (role combobox) suggest in `list` (role listbox), its `aria-controls`.
 *  suggest(text): a promise of [{id, title, note}]. pick(option): one was chosen. The page's words
 *  need `pickNone` and `pickCount` with {n}. */
export function picker(input, list, { suggest, pick }) {
  let options = [];
  let active = -1;
  // What the options answer; what was typed when Enter was pressed before they did.
  let answered = null;
  let hurried = null;

  const isOpen = () => !list.hidden;
  function close() {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }
  function activate(place) {
    list.children[active]?.setAttribute("aria-selected", "false");
    active = place;
    const option = list.children[place];
    if (!option) {
      input.removeAttribute("aria-activedescendant");
      return;
    }
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option.id);
  }
  function choose(place) {
    const option = options[place];
    if (!option) return;
    input.value = "";
    hurried = null;
    close();
    pick(option);
  }
  function show(found) {
    [options, answered] = [found, input.value];
    list.replaceChildren(
      ...found.map((option, place) =>
        el(
          "li",
          { role: "option", id: `${list.id}-${place}`, "aria-selected": "false", onclick: () => choose(place) },
          owned(option.title),
          option.note ? el("span", { class: "quiet" }, ` ${option.note}`) : null,
        ),
      ),
    );
    active = -1;
    input.removeAttribute("aria-activedescendant");
    list.hidden = !found.length;
    input.setAttribute("aria-expanded", String(found.length > 0));
    if (hurried === answered) choose(0);
    else announce(found.length ? say("pickCount", { n: count(found.length) }) : say("pickNone"));
  }
  const ask = latest(
    suggest,
    (found, typed) => {
      // What was typed may have been chosen or wiped out meanwhile.
      if (typed === input.value && document.activeElement === input) show(found);
    },
    close,
  );
  function typed() {
    hurried = null;
    if (input.value.trim()) ask(input.value);
    else close();
  }
  const keys = {
    ArrowDown: () => (isOpen() ? activate((active + 1) % options.length) : typed()),
    ArrowUp: () => isOpen() && activate(active > 0 ? active - 1 : options.length - 1),
    Enter: () => {
      if (answered === input.value) choose(isOpen() ? Math.max(active, 0) : -1);
      else hurried = input.value;
    },
    Escape: () => {
      if (!isOpen()) input.value = "";
      close();
    },
  };
  onTyped(input, typed);
  input.addEventListener("keydown", (event) => {
    const run = keys[event.key];
    if (!run || isComposing(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  });
  input.addEventListener("blur", close);
  // So that a click on a suggestion does not first close the list.
  list.addEventListener("mousedown", (event) => event.preventDefault());
}
