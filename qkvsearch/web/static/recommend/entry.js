// What can be done with an item wherever it is listed: like it, dislike it, rate it.
import { brief, el } from "../dom.js";
import { number, say } from "../words.js";
import { chosen } from "./choice.js";
import { choices, isRated } from "./ratings.js";

/** 4, 4.5 */
export const rating = (value) => (Number.isInteger(value) ? String(value) : number(value, 1));

/** How the visitor stands to an item, in words; "" where they said nothing. */
export function standing(id) {
  const one = chosen.get(id);
  if (!one) return "";
  return one.kind === "rate" ? say("rated", { rating: rating(one.rating) }) : say(one.kind === "like" ? "liked" : "disliked");
}

/** The buttons, and a list of ratings where there are any. act: {like, dislike, rate} of (id, title); isNamed: whether the
 *  buttons say what they do, which cards have room for. */
export function actions(id, title, act, isNamed = false) {
  const press = (sign, what, run, pressed) =>
    el(
      "button",
      { type: "button", class: isNamed ? "act" : "sign", title: what, "aria-label": say("actOn", { act: what, title: brief(title) }), "aria-pressed": String(pressed), onclick: () => run(id, title) },
      isNamed ? [el("span", { "aria-hidden": "true" }, `${sign} `), what] : sign,
    );
  const { kind } = chosen.get(id) ?? {};
  const made = [press("+", say("like"), act.like, kind === "like"), press("−", say("dislike"), act.dislike, kind === "dislike")];
  if (isRated()) made.push(ratingsOf(id, title, act));
  return el("span", { class: "acts" }, made);
}

/** The list of ratings. */
export function ratingsOf(id, title, act) {
  const given = chosen.get(id)?.rating;
  const values = [...new Set([...choices(), ...(given === undefined ? [] : [given])])];
  const select = el(
    "select",
    { "aria-label": say("actOn", { act: say("rate"), title: brief(title) }) },
    el("option", { value: "" }, say("rate")),
    values.map((value) => el("option", { value, selected: value === given }, rating(value))),
  );
  select.addEventListener("change", () => select.value && act.rate(id, title, Number(select.value)));
  return select;
}
