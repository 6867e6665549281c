// The numbers of a bar whose segments stand end to end, as `numbers_of_segments` in Python has them.

// Texts in a line are at least so far apart, and about this wide is a numeral of one whose length is
// not known yet. A number that is further than BESIDE from its segment's middle has a line to it.
const [APART_IN_LINE, NUMERAL, BESIDE] = [5, 6.5, 4];

const spreadOut = (middles, widths, [low, high]) => {
  let edge = low;
  const found = middles.map((middle, n) => {
    const start = Math.max(middle - widths[n] / 2, edge);
    edge = start + widths[n] + APART_IN_LINE;
    return start + widths[n] / 2;
  });
  edge = high;
  for (let n = found.length - 1; n >= 0; n -= 1) {
    const end = Math.min(found[n] + widths[n] / 2, edge);
    found[n] = end - widths[n] / 2;
    edge = end - widths[n] - APART_IN_LINE;
  }
  return found;
};

// texts, leaders: of each segment. middles: where it has its middle. written: its number, "" for none.
// ends: where the first number may begin and the last one end.
const writeNumbers = (texts, leaders, middles, written, ends) => {
  texts.forEach((text, k) => (text.textContent = written[k]));
  const seen = [...texts.keys()].filter((k) => written[k]);
  // In a step that is hidden, a text has no length yet.
  const widths = seen.map((k) => texts[k].getComputedTextLength() || NUMERAL * written[k].length);
  const centres = spreadOut(seen.map((k) => middles[k]), widths, ends);
  texts.forEach((text, k) => {
    const x = centres[seen.indexOf(k)] ?? middles[k];
    text.setAttribute("x", x);
    const [from, to] = leaders[k].dataset.heights.split(" ");
    leaders[k].setAttribute("d", Math.abs(x - middles[k]) > BESIDE ? `M${middles[k]} ${from}L${x} ${to}` : "");
  });
};
