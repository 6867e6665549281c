// What recommendations rest on: one choice, several of them, or none of them.
import { owned } from "../dom.js";
import { listedAs, say } from "../words.js";
import { choice, chosen } from "./choice.js";

const SEVERAL = "several";
const POPULAR = "popular";
// Letters of a title within a line.
const SHORT = 32;

/** The part of the choice that a hit rests on: the server says which, as `rests_on`. */
const mainPart = (hit) => hit.because.find((part) => part.id !== null && part.id === hit.rests_on);

const helps = (part) => part.contribution > 0 && (part.id !== null || part.items);

function keyOf(hit) {
  const main = mainPart(hit);
  if (main) return `item ${main.id}`;
  return hit.because.some(helps) ? SEVERAL : POPULAR;
}

/** [{key, heading, hits}] in the order of their best hits. */
export function groupsOf(hits) {
  const found = Map.groupBy(hits, keyOf);
  return [...found].map(([key, its]) => ({ key, heading: headingOf(key, its[0]), hits: its }));
}

function headingOf(key, hit) {
  if (key === POPULAR) return [say("popular")];
  if (key === SEVERAL) return [say(choice.user ? "becauseSeveralHistory" : "becauseSeveral")];
  const { id, title, did } = mainPart(hit);
  const sentence = chosen.has(String(id)) ? say("becauseChosen") : say("becauseHistory", { did: say(`did_${did ?? "liked"}`) });
  return around(sentence, "{title}", [owned(title, 80)]);
}

/** A sentence with nodes in place of one of its fields. */
export function around(sentence, field, nodes) {
  const [before, after] = sentence.split(field);
  return [before, ...nodes, after ?? ""];
}

/** In one line, why a hit is listed. */
export function reasonOf(hit) {
  const main = mainPart(hit);
  if (main) return [say(`line_${main.how}`, { did: say(`did_${main.did ?? "liked"}`) })];
  const parts = hit.because.filter(helps);
  if (!parts.length) return [say("line_popular")];
  // Two are named; of more the largest.
  const named = parts.length > 2 ? parts.slice(0, 1) : parts;
  const titles = listedAs(named.map((part) => part.title), (title) => owned(title, SHORT));
  return around(say(parts.length > named.length ? "line_more" : "line_several"), "{titles}", titles);
}
