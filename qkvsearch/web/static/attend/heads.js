// Layers × heads as small maps to pick from, drawn in one colour.
import { el } from "../dom.js";
import { say } from "../words.js";

/** A map in shades of the accent: a pixel a weight, dark as its root so that small ones can be seen. */
export function shade(canvas, weights) {
  const n = weights.length;
  canvas.width = canvas.height = Math.max(n, 1);
  const context = canvas.getContext("2d");
  const [red, green, blue] = accent();
  const pixels = context.createImageData(canvas.width, canvas.height);
  weights.flat().forEach((weight, place) => {
    pixels.data.set([red, green, blue, 255 * Math.sqrt(weight ?? 0)], 4 * place);
  });
  context.putImageData(pixels, 0, 0);
}

function accent() {
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const swatch = el("i", { style: { color: "var(--accent)" } });
  document.body.append(swatch);
  probe.fillStyle = getComputedStyle(swatch).color;
  swatch.remove();
  probe.fillRect(0, 0, 1, 1);
  return probe.getImageData(0, 0, 1, 1).data;
}

/** What a head is called, counted from 1; head null for the mean of all of the layer. The API counts from 0. */
export const placeName = (layer, head, heads) =>
  head === null ? say("placeMean", { layer: layer + 1, heads }) : say("place", { layer: layer + 1, head: head + 1 });

/** The grid in `box`; `pick(layer, head)` is called for what is chosen, head null for the mean. */
export class HeadGrid {
  constructor(box, pick) {
    this.box = box;
    this.pick = pick;
    this.buttons = new Map();
    this.maps = [];
    box.addEventListener("keydown", (event) => this.move(event));
  }

  draw(reading) {
    this.reading = reading;
    const { layers, heads } = reading;
    this.box.style.gridTemplateColumns = `auto repeat(${heads + 1}, minmax(0, 4.25rem))`;
    const titles = Array.from({ length: heads }, (_, head) => el("span", { "aria-hidden": "true" }, head + 1));
    this.buttons.clear();
    this.maps = [];
    const rows = Array.from({ length: layers }, (_, layer) => [
      el("span", { "aria-hidden": "true" }, layer + 1),
      ...Array.from({ length: heads }, (_, head) => this.button(layer, head, reading.of(layer, head))),
      this.button(layer, null, reading.mean(layer)),
    ]);
    const corner = el("span", { "aria-hidden": "true" });
    const last = el("span", { class: "mean", "aria-hidden": "true" }, say("mean"));
    this.box.replaceChildren(corner, ...titles, last, ...rows.flat());
  }

  /** Draw the maps anew, in the accent's colour of now. */
  reshade() {
    for (const { canvas, weights } of this.maps) shade(canvas, weights);
  }

  button(layer, head, weights) {
    const { heads } = this.reading;
    const name = placeName(layer, head, heads);
    const canvas = el("canvas", { "aria-hidden": "true" });
    shade(canvas, weights);
    this.maps.push({ canvas, weights });
    const made = el(
      "button",
      {
        type: "button",
        class: head === null ? "printed mean" : "printed",
        "aria-label": name,
        title: name,
        onclick: () => this.pick(layer, head),
      },
      canvas,
    );
    this.buttons.set(`${layer} ${head}`, made);
    return made;
  }

  /** Show which is chosen; the Tab key reaches that one alone. */
  choose(layer, head) {
    this.chosen = [layer, head];
    for (const [name, button] of this.buttons) {
      const isChosen = name === `${layer} ${head}`;
      button.setAttribute("aria-pressed", isChosen);
      button.tabIndex = isChosen ? 0 : -1;
    }
  }

  move(event) {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const { layers, heads } = this.reading;
    const [layer, head] = this.chosen;
    const down = Math.min(Math.max(layer + step[0], 0), layers - 1);
    const across = Math.min(Math.max((head ?? heads) + step[1], 0), heads);
    this.pick(down, across === heads ? null : across);
    this.buttons.get(`${down} ${across === heads ? null : across}`).focus();
  }
}
