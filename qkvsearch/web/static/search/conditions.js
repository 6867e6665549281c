// What the server says of a condition that it cannot use, in the language of the page.
import { text } from "../dom.js";
import { say } from "../words.js";

// Sentences of the server (`where/`), with names for what stands in them, and what they are called here.
const FAULTS = [
  [/^near "(?<part>.+)": syntax error$/s, "fault_near"],
  [/^no such column: (?<name>.+?)(?: \(.*)?$/s, "fault_column"],
  [/^it cannot be read at '(?<part>.*)'; write one condition, such as (?<example>.+)$/s, "fault_at"],
  [/^it cannot be read; write one condition, such as (?<example>.+)$/s, "fault_unread"],
  [/^write one condition, such as (?<example>.+), without SELECT$/s, "fault_select"],
  [/^(?<name>\w+)\(\): there is no such function here$/, "fault_function"],
  [/^(?<names>.+) (?:is|are) not in the catalog$/s, "fault_items"],
];
// What stands before the fault, and all functions and columns that there are: the page lists those of the catalog.
const BEFORE = /^`where`(?: '.*?'| ".*?")?:? /s;
const LISTED = / \((there are|columns:) [^)]*\)/g;

/** Whether a message is about a condition. */
export const isOfCondition = (message) => BEFORE.test(message);

/** Why a condition cannot be used. message: of the server, or a part of a note that says the same. */
export function faultOf(message) {
  const fault = message.replace(BEFORE, "").replace(LISTED, "");
  for (const [pattern, name] of FAULTS) {
    const found = pattern.exec(fault);
    if (found) return say(name, Object.fromEntries(Object.entries(found.groups).map(([key, value]) => [key, text(value)])));
  }
  return text(fault);
}
