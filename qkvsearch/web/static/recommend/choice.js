// What the visitor chose: it is in the page's address, and nowhere else.
import { facts } from "../words.js";

/** By id, in the order in which they were chosen: {kind: "like" | "dislike" | "rate", rating}. */
export const chosen = new Map();
export const STEP = Math.min(12, facts.most);
/** The user, ids to leave out as if they had never been met, the heads ("" for all), the sliders, how many hits. */
export const choice = { user: "", without: new Set(), heads: "", diversity: 0, damping: 0, recent: 0, k: STEP };

const numeric = { diversity: 0, damping: 0, recent: 0, k: STEP };

/** From an address. */
export function read(parameters) {
  for (const id of parameters.getAll("likes")) chosen.set(id, { kind: "like" });
  for (const pair of parameters.getAll("rate")) {
    const place = pair.lastIndexOf("=");
    const rating = Number(pair.slice(place + 1));
    if (place > 0 && Number.isFinite(rating)) chosen.set(pair.slice(0, place), { kind: "rate", rating });
  }
  for (const id of parameters.getAll("exclude")) chosen.set(id, { kind: "dislike" });
  for (const id of parameters.getAll("without")) choice.without.add(id);
  choice.user = parameters.get("user") ?? "";
  choice.heads = parameters.get("heads") ?? "";
  for (const [name, usual] of Object.entries(numeric)) {
    const value = Number(parameters.get(name) ?? usual);
    choice[name] = Number.isFinite(value) && value >= 0 ? value : usual;
  }
  choice.diversity = Math.min(choice.diversity, 1);
  choice.recent = Math.round(choice.recent);
  choice.k = Math.min(Math.max(1, Math.round(choice.k)), facts.most);
}

const ofKind = (kind) => [...chosen].filter(([, one]) => one.kind === kind);
const idsOf = (kind) => ofKind(kind).map(([id]) => id);

/** For an address: the names that the API has for them. */
export function written() {
  const found = [];
  if (choice.user) found.push(["user", choice.user]);
  for (const id of idsOf("like")) found.push(["likes", id]);
  for (const [id, { rating }] of ofKind("rate")) found.push(["rate", `${id}=${rating}`]);
  for (const id of idsOf("dislike")) found.push(["exclude", id]);
  for (const id of choice.without) found.push(["without", id]);
  if (choice.heads) found.push(["heads", choice.heads]);
  for (const [name, usual] of Object.entries(numeric)) {
    if (choice[name] !== usual) found.push([name, String(choice[name])]);
  }
  return found;
}

/** What an address named by its title goes by its id from now on. */
export function rename(from, to) {
  const before = [...chosen];
  chosen.clear();
  for (const [id, one] of before) chosen.set(id === from ? to : id, one);
  if (choice.without.delete(from)) choice.without.add(to);
}

/** Whether there is anything to recommend by. */
export const isSomebody = () => Boolean(choice.user) || [...chosen.values()].some(({ kind }) => kind !== "dislike");

/** The question as the API's JSON. */
export function question() {
  return {
    user: choice.user || null,
    likes: idsOf("like"),
    ratings: Object.fromEntries(ofKind("rate").map(([id, { rating }]) => [id, rating])),
    exclude: idsOf("dislike"),
    without: [...choice.without],
    heads: choice.heads || null,
    diversity: choice.diversity,
    damping: choice.damping,
    recent: choice.recent || null,
    k: choice.k,
  };
}
