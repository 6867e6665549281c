// Numbers as people write and read them, and whether an answer to a quiz is right.

const numbers = (() => {
  // Decimals of a number, unless the page says otherwise; a small one has as many digits that count,
  // up to FURTHER places more. All of them stay in data-value.
  const asked = document.documentElement.dataset.digits;
  const DIGITS = asked === undefined ? 2 : Number(asked);
  const FURTHER = 2;
  // As in Python: what lies in the middle but for a rounding of sums lies in the middle.
  const ROUNDING = 1 + 1e-12;
  const EXACT = 1e6;
  // Of the last decimal, so much is the rounding of a computer's sums.
  const UNSEEN = 1e-4;
  const LARGE = 1e21;
  const SHADES = 10;
  const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const NUMBER =
    /[-+−]?(?:∞|(?<![a-z])(?:inf(?:inity)?|nan)(?![a-z])|(?:\d+\.?\d*|\.\d+)(?:e[-+−]?\d+)?(?:\s*\/\s*\d+\.?\d*)?(?:\s*%)?)/gi;
  // A root alone, or as what is divided by: 2√3 is a product, which is not read.
  const ROOT = /(?<=^[-+−]?|\/\s*)√\s*(\d+\.?\d*)(?![\d.e])/gi;
  const SEPARATORS = /[\s,;、]+|(?<=[a-z\d])和(?=[a-z\d])/i;
  const AND = ["and", "和"];
  const DECIMAL_COMMA = /(?<![\d.,])(\d+),(\d+)(?![.,]?\d)/g;
  // Numbers that JSON lacks, and what people write for them.
  const WORDS = { inf: Infinity, infinity: Infinity, "∞": Infinity, nan: NaN };

  // Full-width letters, digits and signs as ASCII has them; a small ² stays what it is.
  const plain = (text) =>
    text.trim().replace(/[！-～]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0));

  // A number as a cell or an answer holds it: "-inf" is one, too.
  const held = (text) => {
    const [, sign, size] = String(text).toLowerCase().match(/^([-+]?)(.*)$/s);
    return size in WORDS ? (sign === "-" ? -1 : 1) * WORDS[size] : Number(text);
  };

  const value = (text) => {
    const [top, bottom] = text.replaceAll("%", "").replaceAll("−", "-").split("/");
    const below = bottom ? Number(bottom) : 1;
    return below ? ((text.endsWith("%") ? 0.01 : 1) * held(top)) / below : NaN;
  };

  // One number and nothing else, or NaN; √3 is one, too.
  const one = (text) => {
    const written = plain(text)
      .replace(DECIMAL_COMMA, "$1.$2")
      .replace(ROOT, (_, square) => String(Math.sqrt(Number(square))));
    const found = written.match(NUMBER);
    const number = found?.length === 1 && found[0] === written ? value(written) : NaN;
    return Number.isFinite(number) ? number : NaN;
  };

  const shown = (number) => {
    if (Number.isNaN(number)) return "NaN";
    if (!Number.isFinite(number)) return number > 0 ? "∞" : "−∞";
    const nudged = Math.abs(number) < EXACT ? number * ROUNDING : number;
    const size = Math.abs(nudged);
    if (size >= LARGE) return String(number).replace("-", "−");
    if (size === 0) return "0";
    // The power of ten that is not above the number, exactly: toExponential would round it up.
    const first = Math.floor(Math.log10(size));
    const power = first + (Number(`1e${first + 1}`) <= size) - (Number(`1e${first}`) > size);
    const places = Math.min(Math.max(DIGITS, DIGITS - 1 - power), DIGITS + FURTHER);
    const text = nudged.toFixed(places);
    if (Number(text) === 0) return "≈0";
    const isRounded = Math.abs(Number(text) - number) > UNSEEN * 10 ** -places;
    return (text.includes(".") && !isRounded ? text.replace(/\.?0+$/, "") : text).replace("-", "−");
  };

  // As many decimals as numbers of one kind are all written with: those of the one that has most.
  const decimalsOf = (found) =>
    Math.max(0, ...found.filter(Number.isFinite).map((number) => {
      const text = withDecimals(number, DIGITS);
      return text === "≈0" ? 0 : (text.replace(/0+$/, "").split(".")[1]?.length ?? 0);
    }));
  // Whether the usual decimals round some of the numbers, and one more rounds none.
  const areExact = (found) => {
    const isRounded = (decimals) => (number) => Math.abs(Number(number.toFixed(decimals)) - number) > UNSEEN * 10 ** -decimals;
    return found.some(isRounded(DIGITS)) && !found.some(isRounded(DIGITS + 1));
  };
  const shownExactly = (number) => String(Number(number.toFixed(DIGITS + 1))).replace("-", "−");
  const withDecimals = (number, decimals) => {
    if (number === 0 || !(Math.abs(number) < EXACT)) return shown(number);
    const text = (number * ROUNDING).toFixed(decimals);
    return Number(text) === 0 ? "≈0" : text.replace("-", "−");
  };
  // A power of e among others, the largest of which is `most`: whole numbers where that has three
  // digits, and from a million on a power of 10. A computer holds none above 10³⁰⁸.
  // further: how many digits more than usual.
  const shownPower = (power, most, further = 0) => {
    if (!(power >= EXACT)) return withDecimals(power, (most >= 100 && power >= 1 ? 0 : DIGITS) + further);
    if (power === Infinity) return ">10³⁰⁸";
    const [size, exponent] = power.toExponential(2 + further).split("e+");
    return `${size}·10${[...exponent].map((digit) => RAISED[digit]).join("")}`;
  };
  // The number that one of these texts says; NaN where it says only that it is larger.
  const read = (text) =>
    held(
      text.replace("−", "-").replace("≈", "").replace(/·10(.+)/, (_, raised) => `e${[...raised].map((digit) => RAISED.indexOf(digit)).join("")}`),
    );

  // The shade of a weight; from the middle of two it is the deeper one.
  const heat = (number) =>
    Number.isFinite(number) ? Math.floor(SHADES * Math.min(Math.max(number, 0), 1) + 0.5) : 0;

  // A set of words is none where it is empty; `none` is how people say so. "and" may be a token.
  const areWords = (given, wanted, none) => {
    const asked = new Set(wanted.map((word) => plain(word).toLowerCase()));
    const words = new Set(plain(given).toLowerCase().split(SEPARATORS).filter(Boolean));
    for (const word of AND) if (!asked.has(word)) words.delete(word);
    words.delete(none.toLowerCase());
    return words.size === asked.size && [...asked].every((word) => words.has(word));
  };

  // A comma is a decimal one where there are not n numbers otherwise.
  const readAs = (written, n) => {
    const texts = written.match(NUMBER) ?? [];
    return texts.length === n ? texts : (written.replace(DECIMAL_COMMA, "$1.$2").match(NUMBER) ?? []);
  };

  const areNear = (given, wanted, tolerance) => {
    const found = readAs(plain(given), wanted.length).map(value);
    const isNear = (number, i) =>
      Object.is(number, wanted[i]) || Math.abs(number - wanted[i]) <= tolerance;
    return found.length === wanted.length && found.every(isNear);
  };

  // kind: "words", or "numbers" in order; a choice is its number. none: the word for no words.
  const isRight = (given, { kind, answer, tolerance }, none) =>
    kind === "words"
      ? areWords(given, answer, none)
      : areNear(given, [answer].flat().map(held), tolerance);

  // Whether it is an answer at all: words, or as many numbers as were asked for.
  const isAnswer = (given, { kind, answer }) => {
    if (kind === "words") return answer.length === 0 || /[\p{L}\d]/u.test(plain(given));
    const n = [answer].flat().length;
    const texts = readAs(plain(given), n);
    return n === 1 ? texts.length > 0 : texts.length === n;
  };

  // What is wrong about a wrong answer, by the name of a sentence that says it.
  const hint = (given, { kind, answer }) => {
    const wanted = [answer].flat().map(held);
    if (kind === "words" || wanted.length > 1) return "notAll";
    return value(readAs(plain(given), 1)[0] ?? "") > wanted[0] ? "tooMuch" : "tooLittle";
  };

  // Whether a computed number is the one that is shown, with no digit lost.
  const gives = (number, wanted) => {
    if (!Number.isFinite(number) || !Number.isFinite(wanted)) return Object.is(number, wanted);
    return Math.abs(number - Number(shown(wanted).replace("−", "-").replace("≈", ""))) <= 1e-9 * Math.max(1, Math.abs(number));
  };

  return { one, gives, shown, areExact, shownExactly, decimalsOf, withDecimals, shownPower, held, read, heat, isRight, isAnswer, hint };
})();
