// What the server says of a condition that it cannot use, in the language of the page.
import { text } from "../dom.js";
import { say } from "../words.js";

// Parts of these sentences: something with its type, and what a type is called.
const NOUN = "a number|text|a date|a list|yes/no";
const typed = (side) => `(?<${side}>.+?) is (?<${side}Noun>${NOUN})(?:, such as .+?)?`;

// Sentences of the server (`where/`), with names for what stands in them, and what they are called here. The first
// one that matches counts.
const FAULTS = [
  [/^near "(?<part>.+)": syntax error$/s, "fault_near"],
  [/^no such column: (?<name>.+?)(?: \([^)]*\))?; did you mean (?<near>.+)\?$/, "fault_columnNear"],
  [/^no such column: (?<name>.+?)(?: \(.*)?$/s, "fault_column"],
  [/^it cannot be read at '(?<part>.*)'; write one condition, such as (?<example>.+)$/s, "fault_at"],
  [/^it cannot be read; write one condition, such as (?<example>.+)$/s, "fault_unread"],
  [/^write one condition, such as (?<example>.+), without SELECT$/s, "fault_select"],
  [/^write one condition, such as (?<example>.+)$/s, "fault_one"],
  [/^(?<name>\w+)\(\): there is no such function here$/, "fault_function"],
  [/^(?<part>.+): there is no such function here$/s, "fault_noFunction"],
  [/^.+: (?<name>\w+)\(\) compares several values of an item here, /s, "fault_several"],
  [/^.+: (?<name>\w+)\(\) does not take this here$/s, "fault_arguments"],
  [/^wrong number of arguments to function (?<name>\w+)\(\)$/, "fault_arguments"],
  [/^(?<names>.+) (?:is|are) not in the catalog$/s, "fault_items"],
  [/^(?<part>.+) cannot be part of a condition$/s, "fault_part"],
  [/^nothing equals NULL/, "fault_null"],
  [/^(?<short>.+) already includes (?<long>.+): leave one out$/s, "fault_includes"],
  [/^(?<part>.+) is no number$/s, "fault_number"],
  [/^(?<part>.+) is a truth value in SQL: write (?<instead>.+)$/s, "fault_truth"],
  [/^.+: compare columns of dates themselves/s, "fault_dates"],
  [/^.+: cast to TEXT, INTEGER or REAL$/s, "fault_cast"],
  [/^has\(\) looks into a column of lists, and (?:column '(?<name>.+?)'|(?<part>.+?)) is /s, "fault_hasList"],
  [/^has\(\) takes a column and an entry/, "fault_hasTwo"],
  [/^has\(\) takes one entry/, "fault_hasOne"],
  [/^in (?<call>.+) this is a text in quotes: (?<part>.+)$/s, "fault_quotes"],
  [/^.+: at most (?<n>[\d,]+) characters are trimmed$/s, "fault_trimmed"],
  [/^what follows ESCAPE is one character$/, "fault_escape"],
  [/^(?:no value for|there is a value for) /, "fault_values"],
  [/^it has (?<n>[\d,]+) characters, and (?<most>[\d,]+) are the most$/, "fault_long"],
  [/^more than (?<n>\d+) parts in one another/, "fault_deep"],
  [/^(?:a text in it has more than|replace\(\) makes a text of more than|a text of [\d,]+ characters is too long) /, "fault_text"],
  [/^stopped after /, "fault_slow"],
  [new RegExp(`^${typed("left")}, and a condition is needed: compare it$`, "s"), "fault_compare"],
  [new RegExp(`^${typed("left")}, and (?<call>.+) needs a (?<wanted>number|text)(?:[:;] (?<advice>.+))?$`, "s"), "fault_needs"],
  [new RegExp(`^${typed("left")}, and ${typed("right")}: (?<advice>.+)$`, "s"), "fault_types"],
];
// What such a sentence advises at its end.
const ADVICE = [
  [/^write the date in quotes, (?<value>.+)$/s, "advice_write"],
  [/^write (?<value>(?:'|CAST).+?)(?: to look at its digits)?$/s, "advice_write"],
  [/^write a date as /, "advice_date"],
  [/^write (?<name>.+) = 1 for yes, .+ = 0 for no$/s, "advice_yesNo"],
  [/^write (?<value>.+) without quotes$/s, "advice_write"],
  [/^look for an entry by (?<value>.+)$/s, "advice_write"],
  [/^compare it with a number, without quotes$/, "advice_number"],
  [/^compare it with (?<value>.+?)(?:, or build with .+)?$/s, "advice_write"],
  [/^both have to be of one type$/, "advice_same"],
];
// What stands before the fault, and all functions and columns that there are: the page lists those of the catalog.
const BEFORE = /^`where`(?: '.*?'| ".*?")?:? /s;
const LISTED = / \((there are|columns:) [^)]*\)/g;
// Behind the fault: names that SQL has for something else.
const RESERVED = /; a column whose name is a word of SQL is written (?<names>.+)$/s;

/** Why a condition cannot be used. message: of the server, or a part of a note that says the same. */
export function faultOf(message) {
  const whole = message.replace(BEFORE, "").replace(LISTED, "");
  const reserved = RESERVED.exec(whole);
  const fault = found(FAULTS, whole.replace(RESERVED, "")) ?? say("fault_other", { message: text(whole) });
  return reserved ? `${fault}${say("fault_reserved", { names: text(reserved.groups.names) })}` : fault;
}

/** The sentence of this page for the first pattern that matches; null for none. */
function found(patterns, sentence) {
  for (const [pattern, name] of patterns) {
    const groups = pattern.exec(sentence)?.groups;
    if (groups || pattern.test(sentence)) return say(name, named(groups ?? {}));
  }
  return null;
}

/** What stands in a sentence, in the words of this page. */
function named({ left, leftNoun, right, rightNoun, wanted, advice, name, part, ...others }) {
  const values = { ...others, left: left && what(left), right: right && what(right), name: name ?? part, part };
  Object.assign(values, { leftNoun: noun(leftNoun), rightNoun: noun(rightNoun), wanted: noun(wanted && `a ${wanted}`) });
  // Whoever looks at a page builds nothing.
  values.advice = advice && !advice.startsWith("build with ") ? found(ADVICE, advice) ?? text(advice) : "";
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, text(value ?? "")]));
}

const what = (said) => said.replace(/^column '(.+)'$/s, (_, name) => say("fault_ofColumn", { name }));
const NOUNS = { "a number": "noun_number", text: "noun_text", "a text": "noun_text", "a date": "noun_date", "a list": "noun_list", "yes/no": "noun_yesNo" };
const noun = (said) => said && say(NOUNS[said]);
