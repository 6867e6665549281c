// A sentence in large words, shaded by how much the chosen one attends to each.
import { el, text } from "../dom.js";
import { say, share } from "../words.js";
import { tint } from "./shades.js";

// A word that gets less has its shade alone.
const LEAST_SAID = 0.02;
// More words than this are written smaller.
const MANY = 30;

/** Whether a word stands for no word of the sentence, such as [CLS], <s> or <PAD>. */
export const isSpecial = (word) => /^[[<]/.test(word);

/** The words in `box`. With `on` they are buttons: `choose(i)` is called for the word that a person
 *  goes to, and `press(i)`, which may be missing, for one that is clicked. */
export class Words {
  constructor(box, on = null) {
    this.box = box;
    this.on = on;
  }

  /** `pieces`: of each word, as the encoder reads it. `struck`: the words that nothing attends to. */
  draw(words, pieces, struck = new Set()) {
    this.words = words;
    this.struck = struck;
    this.box.classList.toggle("many", words.length > MANY);
    this.shares = words.map(() => el("small", {}));
    this.made = words.map((word, i) => this.word(word, pieces[i], i));
    this.box.replaceChildren(...this.made);
  }

  word(word, pieces, i) {
    const written = el(struckTag(this.struck, i), { class: "written" }, asPieces(word, pieces));
    const names = isSpecial(word) ? "word special" : "word";
    if (!this.on) return el("span", { class: names }, written, this.shares[i]);
    return el(
      "button",
      {
        type: "button",
        class: `${names} printed`,
        "data-place": i,
        onclick: () => this.on.press(i),
        onfocus: () => this.on.choose(i),
      },
      written,
      this.shares[i],
    );
  }

  /** Show how much the word `i` attends to each, by its row of weights; null is hidden. */
  show(i, row) {
    this.made.forEach((made, j) => {
      const weight = row?.[j] ?? 0;
      made.style.setProperty("background-color", tint(weight));
      const isHidden = row !== null && row[j] === null;
      made.classList.toggle("off", isHidden);
      // What is struck out is seen to be hidden.
      this.shares[j].textContent = isHidden ? say("hidden") : weight >= LEAST_SAID ? share(weight) : "";
      if (j === i) made.setAttribute("aria-current", "true");
      else made.removeAttribute("aria-current");
      if (this.on) made.tabIndex = j === i ? 0 : -1;
    });
  }

  focus(i) {
    this.made[i]?.focus();
  }

  /** The word that has the focus; −1 for none. */
  get focused() {
    return this.made?.indexOf(document.activeElement) ?? -1;
  }
}

const struckTag = (struck, i) => (struck.has(i) ? "s" : "span");

/** A word with a mark between the pieces that an encoder cuts it into, where these are its letters. */
function asPieces(word, pieces) {
  const letters = pieces.map((piece) => piece.replace(/^##/, ""));
  if (letters.length < 2 || letters.join("") !== word) return [text(word)];
  return letters.map((piece) => el("span", { class: "piece" }, text(piece)));
}
