// Diversity, damping and recency: three sliders with their numbers.
import { byId } from "../dom.js";
import { count, number, say } from "../words.js";
import { choice } from "./choice.js";

const NAMES = ["diversity", "damping", "recent"];
// Half as much for every so many later interactions; 0: all count alike.
const STOPS = [0, 200, 100, 50, 20, 10, 5, 2, 1];

let stops = STOPS;

const written = {
  diversity: (value) => (value ? number(value, 2) : say("off")),
  damping: (value) => (value ? number(value, 2) : say("off")),
  recent: (value) => (value ? say("recentEvery", { n: count(value) }) : say("recentOff")),
};

/** Call `changed(settled)` as one moves, and with true once it is let go. */
export function startSliders(changed) {
  for (const name of NAMES) {
    const slider = byId(name);
    const take = (settled) => {
      choice[name] = name === "recent" ? stops[Number(slider.value)] : Number(slider.value);
      showSliders();
      changed(settled);
    };
    slider.addEventListener("input", () => take(false));
    slider.addEventListener("change", () => take(true));
  }
  byId("reset").addEventListener("click", () => {
    for (const name of NAMES) choice[name] = 0;
    showSliders();
    changed(true);
    byId("diversity").focus();
  });
}

/** As the choice says, also where an address says what no slider has. */
export function showSliders() {
  const damping = byId("damping");
  damping.max = String(Math.max(Number(damping.max), choice.damping));
  stops = [...new Set([...STOPS, choice.recent])].sort((a, b) => (a === 0 ? -1 : b === 0 ? 1 : b - a));
  byId("recent").max = String(stops.length - 1);
  for (const name of NAMES) {
    const slider = byId(name);
    slider.value = name === "recent" ? String(stops.indexOf(choice.recent)) : String(choice[name]);
    const said = written[name](choice[name]);
    slider.setAttribute("aria-valuetext", said);
    byId(`${name}-value`).textContent = said;
  }
  byId("reset").disabled = NAMES.every((name) => choice[name] === 0);
}
