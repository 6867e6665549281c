// Numbers as people write and read them, and whether an answer to a quiz is right.

const numbers = (() => {
  const DECIMALS = 4;
  const NUMBER = /[-+−]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+−]?\d+)?(?:\s*\/\s*\d+\.?\d*)?(?:\s*%)?/g;
  const ROOT = /√\s*(\d+\.?\d*)/g;
  const SEPARATORS = /[\s,;，、；]+/;

  const plain = (text) =>
    text.trim().replace(/[０-９]/g, (digit) => String.fromCharCode(digit.charCodeAt(0) - 0xfee0));

  const value = (text) => {
    const [top, bottom] = text.replaceAll("%", "").replaceAll("−", "-").split("/");
    return ((text.endsWith("%") ? 0.01 : 1) * Number(top)) / (bottom ? Number(bottom) : 1);
  };

  // One number and nothing else, or NaN; √3 is one, too.
  const one = (text) => {
    const written = plain(text).replace(ROOT, (_, square) => String(Math.sqrt(Number(square))));
    const found = written.match(NUMBER);
    const number = found?.length === 1 && found[0] === written ? value(written) : NaN;
    return Number.isFinite(number) ? number : NaN;
  };

  // At most four decimals; all of them stay in data-value.
  const shown = (number) => {
    if (Number.isNaN(number)) return "NaN";
    if (!Number.isFinite(number)) return number > 0 ? "∞" : "−∞";
    const size = Math.abs(number);
    if (size > 0 && size < 10 ** -DECIMALS / 2) {
      return number.toExponential(1).replace(/e([-+])(\d)$/, "e$10$2").replace(/^-/, "−");
    }
    return String(Number(number.toFixed(DECIMALS))).replace("-", "−");
  };

  // The answer is a number, numbers in order, or a set of words; a choice is its number.
  const isRight = (given, answer, tolerance) => {
    const wanted = Array.isArray(answer) ? answer : [answer];
    // Words arrive as a list, an empty one where no word is right.
    if (Array.isArray(answer) && wanted.every((entry) => typeof entry === "string")) {
      const words = new Set(given.toLowerCase().split(SEPARATORS).filter(Boolean));
      return words.size === wanted.length && wanted.every((word) => words.has(word.toLowerCase()));
    }
    const found = (plain(given).match(NUMBER) ?? []).map(value);
    const isNear = (number, i) => Math.abs(number - wanted[i]) <= tolerance;
    return found.length === wanted.length && found.every(isNear);
  };

  return { one, shown, isRight };
})();
