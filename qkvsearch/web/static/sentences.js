// Sentences with fields, as `words/` has them.

// {n} is a value, and {n:result|results} the word that goes with it: the first one if it is 1.
const FIELD = /\{(\w+)(?::([^|}]*)\|([^}]*))?\}/g;

/** The sentence with its fields filled in. */
export const filled = (sentence, values) =>
  sentence.replace(FIELD, (whole, key, one, several) => {
    if (!(key in values)) return whole;
    if (one === undefined) return values[key];
    return String(values[key]) === "1" ? one : several;
  });
