// Words on both sides and lines between them, as thick as the weights.
import { el, svg, text } from "../dom.js";
import { say, share } from "../words.js";

const ROW = 28;
const THICKEST = 12;
const LEAST = 0.02;

/** Lines in `box`. `look(i)`: a word is pointed at; `choose(i)`: it is chosen; `follow(j)`: the head
 *  is wanted that reads most from this one. */
export class Lines {
  constructor(box, { look, choose, follow }) {
    this.box = box;
    this.on = { look, choose, follow };
  }

  draw(words, weights, canFollow) {
    this.weights = weights;
    this.words = words;
    this.froms = words.map((word, i) =>
      el(
        "button",
        {
          type: "button",
          class: "printed",
          onmouseenter: () => this.on.look(i),
          onclick: () => this.on.choose(i),
          onfocus: () => this.on.choose(i),
        },
        text(word),
      ),
    );
    this.outs = words.map(() => el("output", { "aria-hidden": "true" }));
    this.tos = words.map((word, j) => {
      const name = el("button", { type: "button", class: "printed", disabled: !canFollow, onclick: () => this.on.follow(j) }, text(word));
      return el("li", { class: "to" }, name, this.outs[j]);
    });
    this.picture = svg("svg", {
      viewBox: `0 0 100 ${words.length * ROW}`,
      height: words.length * ROW,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    });
    this.strokes = weights.map((row, i) => row.map((weight, j) => this.stroke(i, j, weight ?? 0)));
    this.picture.append(...this.strokes.flat().filter(Boolean));
    const list = (items) => el("ol", {}, items);
    this.box.replaceChildren(list(this.froms.map((one) => el("li", {}, one))), this.picture, list(this.tos));
  }

  stroke(i, j, weight) {
    if (weight < LEAST) return null;
    const y = (place) => (place + 0.5) * ROW;
    return svg("line", { x1: 1, x2: 99, y1: y(i), y2: y(j), "stroke-width": (weight * THICKEST).toFixed(2) });
  }

  /** Show what the word `i` reads from, with numbers. */
  show(i) {
    this.picture.classList.toggle("some", i !== null);
    this.strokes.forEach((row, from) => {
      for (const line of row) line?.classList.toggle("chosen", from === i);
    });
    this.strokes[i]?.forEach((line) => line && this.picture.append(line));
    this.froms.forEach((button, from) => {
      if (from === i) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
      button.tabIndex = from === i ? 0 : -1;
    });
    this.tos.forEach((item, j) => {
      const weight = this.weights[i][j];
      item.classList.toggle("off", weight === null);
      const number = weight === null ? say("hidden") : share(weight);
      this.outs[j].textContent = number;
      item.firstChild.setAttribute("aria-label", `${text(this.words[j])}: ${number}`);
      if (!item.firstChild.disabled && weight !== null)
        item.firstChild.title = say("best", { word: text(this.words[i]), first: text(this.words[j]) });
      else item.firstChild.removeAttribute("title");
    });
  }

  focus(i) {
    this.froms[i]?.focus();
  }
}
