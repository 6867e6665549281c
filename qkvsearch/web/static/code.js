// Commands of the terminal, which break between their words alone: "--log-searches" keeps its hyphens in one line.
import { el } from "./dom.js";

/** A command, or a part of one, as a person types it. */
export const code = (line) =>
  el("code", { lang: "en" }, line.split(" ").flatMap((word, place) => [...(place ? [" "] : []), el("span", {}, word)]));

/** A sentence with what stands between backticks as code. */
export const withCode = (sentence) => sentence.split("`").map((part, place) => (place % 2 ? code(part) : part));
