// Elements made of text, never of markup: what a catalog contains cannot become a part of the page.

/** An element. Attributes that are null or false are left out; `on…` are listeners, `style` an
 *  object of properties; children are elements or texts. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  set(made, attributes);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

/** The same for a drawing. */
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  set(made, attributes);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

function set(made, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") {
      for (const [property, amount] of Object.entries(value)) made.style.setProperty(property, amount);
    } else made.setAttribute(name, value === true ? "" : value);
  }
}

/** What an element of the page's template is found by. */
export const byId = (id) => document.getElementById(id);

/** Whether a key belongs to an input method that composes a character. Safari ends the composition
 *  before it sends the key, which then has the code 229. */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** Calls `typed` when the text of an input changes, but not with half-composed characters. */
export function onTyped(input, typed) {
  input.addEventListener("input", (event) => isComposing(event) || typed(event));
  // Chrome composes to the last event of "input", Firefox sends another one: twice does no harm.
  input.addEventListener("compositionend", typed);
}

/** A person's text as it may stand in a line: nothing that turns the line round, or hides in it. */
export function text(value) {
  return String(value).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, " ");
}

/** The same, cut where it is endless: for what is read out. */
export function brief(value, most = 80) {
  const whole = text(value);
  return whole.length > most ? `${whole.slice(0, most)}…` : whole;
}

/** A title or a cell: isolated, so that its direction stays its own, and cut where it is endless. */
export function owned(value, most = 300) {
  const whole = text(value);
  const letters = brief(whole, most);
  return el("bdi", whole === letters ? {} : { title: whole.slice(0, 2000) }, letters);
}

/** A web address, or null for any other text, such as a script. */
export function address(cell) {
  const to = URL.canParse(cell) ? new URL(cell) : null;
  return to && ["http:", "https:"].includes(to.protocol) ? to : null;
}
