// The sentences of reasons in the reader's language.

/** A list that the engine has cut: "rain, coat and 2 more". */
function listed(names, say) {
  const cut = /^(.*) and ([\d,]+) more$/.exec(names);
  return cut ? say("r_and more", { names: cut[1], n: cut[2] }) : names;
}

/** What the engine says in English, in the reader's language; the catalog's words stay. say, knows: of `words.js`. */
export function translated(reason, say, knows) {
  if (knows(`r_${reason}`)) return say(`r_${reason}`);
  const others = /^([\d,]+) (others|other words)$/.exec(reason);
  if (others) return say(`r_${others[2]}`, { n: others[1] });
  const similar = /^(similar meaning to|same words as) (.*)$/.exec(reason);
  if (similar) return say(`r_${similar[1]}`, { words: listed(similar[2], say) });
  const people = /^people: ([\d,]+) of the ([\d,]+) who ([a-z]+) (.*) also \3 this$/.exec(reason);
  if (people) return say("r_people", { n: people[1], of: people[2], did: say(`did_${people[3]}`), title: people[4] });
  const alike = /^people: those who ([a-z]+) (.*) and those who \1 this are much the same \(([\d,]+) both\)$/.exec(reason);
  if (alike) return say("r_people alike", { n: alike[3], did: say(`did_${alike[1]}`), title: alike[2] });
  const place = reason.lastIndexOf(": ");
  if (place < 0) return reason;
  const by = reason.slice(place + 2).split(", ").map((one) => {
    const [, kind, value] = /^(.*?)( [+−-][\d.]+)?$/.exec(one);
    return knows(`r_${kind}`) ? `${say(`r_${kind}`)}${(value ?? "").replace("-", "−")}` : one;
  });
  return `${reason.slice(0, place)}: ${by.join(", ")}`;
}
