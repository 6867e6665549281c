// A query's text as words: folded, split and told apart as qkvsearch/texts/analysis.py does it.

/** Lower case without accents, in one Unicode form, with one kind of apostrophe. */
export function fold(text) {
  const plain = text.replaceAll("’", "'").normalize("NFKD").toLowerCase();
  const folded = plain.replaceAll("ß", "ss").replaceAll("ς", "σ");
  return folded.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").normalize("NFC");
}

/** What reads queries, by the lists of site.json. */
export function reader(facts) {
  const letter = `(?:(?![${facts.cjk}_])[\\p{L}\\p{N}_${facts.marks}])`;
  const latin = `(?:(?![${facts.cjk}_])[\\p{L}\\p{N}])`;
  const plain = "(?:(?![\\p{N}_])[\\p{L}\\p{N}])";
  const run = `[${facts.cjk}]+|${letter}+(?:'${letter}+)*`;
  // As CODE in word_patterns.py; what is looked at first and then taken is never given back.
  const code =
    `(?:\\+\\++(?!${letter})|#(?!${letter})` +
    `|(?=[/&])(?<!${latin}{5})(?=(?<sides>(?:[/&]${letter}{1,4}){1,3}))\\k<sides>(?![/&]?${letter}|\\+\\+|#)` +
    `|(?=\\.)(?<=\\p{Nd})(?=(?<digits>(?:\\.\\p{Nd}+){1,7}${plain}{0,4}))\\k<digits>(?!${letter}))?` +
    `|(?<![\\p{L}\\p{N}_.])\\.${plain}${letter}*`;
  const coded = new RegExp(`(?:${run})${code}`, "gu");
  const runs = new RegExp(run, "gu");
  const whole = new RegExp(`^(?:${run})$`, "u");
  const isCjk = new RegExp(`^[${facts.cjk}]`, "u");
  const stop = new Set(facts.stop_words);
  const elisions = new Set(facts.elisions);

  /** Without an article or the like before an apostrophe. */
  function unelided(found) {
    const cut = found.indexOf("'");
    if (cut < 0) return found;
    const rest = found.slice(cut + 1);
    if (!rest || !elisions.has(found.slice(0, cut))) return found;
    const { elided_before: before, shortest_elided: shortest } = facts;
    if (before && (!before.includes(rest[0]) || rest.length < shortest)) return found;
    return rest;
  }

  function word(found) {
    const text = unelided(found);
    if (whole.test(text)) return { text, isStop: stop.has(text), parts: [] };
    const parts = (text.match(runs) ?? []).flatMap(tokensOf);
    return { text, isStop: parts.every((part) => part.isStop && part.text.length > 1), parts };
  }

  function tokensOf(found) {
    if (!isCjk.test(found)) return [word(found)];
    const characters = [...found];
    if (characters.length === 1) return [{ text: found, isStop: false, parts: [] }];
    return characters.slice(1).map((second, i) => ({ text: characters[i] + second, isStop: false, parts: [] }));
  }

  /** The words of a text that tell something, or all where there are no others: {text, isStop,
   *  parts}; of code that nobody knows the bare words. */
  function tokens(text, isKnown) {
    const every = (fold(text).match(coded) ?? []).flatMap(tokensOf);
    const resolve = (token) => {
      const parts = telling(token.parts).filter((part) => part.text.length > 1);
      return parts.length && !isKnown(token.text) ? parts : [token];
    };
    return telling(every).flatMap(resolve);
  }

  return { tokens };
}

function telling(tokens) {
  const found = tokens.filter((token) => !token.isStop);
  return found.length ? found : tokens;
}
