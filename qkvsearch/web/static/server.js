// What the server refuses and notes on every page, in the language of the page.
import { el, text } from "./dom.js";
import { knows, say } from "./words.js";

// Sentences of the server with names for what stands in them, and what they are called here. The first one that
// matches counts; a page has the words for what it may be told.
const REFUSED = [
  [/^no item '(?<id>.*)'/s, "server_item"],
  [/^'(?<title>.*)' is the title of (?<n>[\d,]+) items; /s, "server_ambiguous"],
  [/^no user '(?<id>.*)'/s, "server_user"],
  [/^(?:`\w+`: )?no head '(?<name>.*?)'/s, "server_head"],
  [/^(?:`\w+`: )?no column '(?<name>.*?)'/s, "server_column"],
  [/^`encoder`: no encoder '(?<name>.*?)'/s, "server_encoder"],
  [/^`encoder`: (?<name>.+) cannot be used here/s, "server_encoderBroken"],
  [/^`hide`: no word /, "server_hide"],
  [/^`(?<name>[^`]+)`: string should have at most (?<n>\d+) characters$/, "server_long"],
  [/^`text`: (?<n>[\d,]+) words.* have [\d,]+ weights/s, "server_manyWeights"],
  [/^`filter`: /, "server_filter"],
  [/^`k`: this server gives at most (?<n>[\d,]+) at once/, "server_most"],
  [/^`rank`: there are fewer hits$/, "server_fewer"],
  [/^a map has the place of one: /, "server_onePlace"],
  [/^no answer within /, "server_late"],
  [/^(?:too many requests at once|other clients have not read|somebody else is changing the workspace)/, "server_busy"],
  [/^this server demands its token/, "server_token"],
  [/^(?:this is the owner's|`user`: only the owner)/, "server_rights"],
  [/^(?:an internal error|the workspace cannot answer this now);/, "server_broken"],
  [/^there is no such page;/, "server_nowhere"],
];
const NOTED = [
  [/^No user '(?<user>.*)' here: these are the most popular items\.$/s, "server_userPopular"],
  [/^No user '(?<user>.*)' here: only what the question names counts\.$/s, "server_userNamed"],
  [/^No user '(?<user>.*)' here\b/s, "server_userNothing"],
  [/^`without`: not in this history, so nothing changes: (?<items>.+)\.$/s, "server_without"],
  [/^Named more than once, and counted once: (?<items>.+)\.$/s, "server_twice"],
  [/^Not drawn: (?<n>[\d,]+) of (?<total>[\d,]+) items /, "server_notDrawn"],
  [/^(?<n>[\d,]+) of (?<total>[\d,]+) items, a random sample, /, "server_sample"],
  [/^No hits: the condition leaves no item to rank\.$/, "server_noneLeft"],
  [/^No (?:recommendations|neighbours): no other item is left\b/, "server_noOther"],
  [/^No recommendations: the history is empty\b/, "server_emptyHistory"],
  [/^No recommendations: this user likes nothing yet\./, "server_likesNothing"],
  [/^No recommendations: what others like does not tell what goes with (?<items>.+)\. `similar` compares texts\.$/s, "server_nothingGoesWith"],
  [/^Nothing in the catalog answers this: /, "server_nearest"],
  [/ knows nothing about it\.$/, "nothing"],
  [/^nothing to attend to: /, "server_noWords"],
  [/^left out, for the encoder does not read it: (?<words>.+)$/s, "server_leftOut"],
  [/^no word is in both texts$/, "server_noneShared"],
];
const isEnglish = document.documentElement.lang.startsWith("en");

function sentence(patterns, message) {
  for (const [pattern, name] of patterns) {
    const found = pattern.exec(message);
    if (!found || !knows(name)) continue;
    return say(name, Object.fromEntries(Object.entries(found.groups ?? {}).map(([key, value]) => [key, text(value)])));
  }
  return null;
}

/** Why a question was refused, as text. error: a `Refused`. */
export function refusal({ status, message }) {
  // Without an answer the page itself says so, in its own language.
  if (status === 0) return message;
  return sentence(REFUSED, message) ?? (isEnglish ? text(message) : say("server_other", { status, message: text(message) }));
}

/** A note as a page shows it: text, or an element where only the server's English says it. */
export const noted = (note) => sentence(NOTED, note) ?? el("span", { lang: "en" }, text(note));
