// The drawing of several queries before a lesson has matrices: the mix of each beside its weights, as
// a bar whose segments have the colours of its numbers.

const startOwnMixes = (figure, { number_names: called, rows, columns }) => {
  // Numbers are at least so far apart; one that has no room is not written.
  const APART = 3;
  // About the width of a numeral.
  const NUMERAL = 6.5;
  const sizeOf = (box, name) => Number(box.getAttribute(name));

  // Segments end to end from the left edge, where a bar of `most` is as long as its track.
  const paintBar = (end, kind, vector, most) => {
    const track = end.querySelector(".track");
    const [left, long] = ["x", "width"].map((name) => sizeOf(track, name));
    let x = left;
    const frames = kind === ".amount-of" ? [...end.querySelectorAll(".touch")] : [];
    end.querySelectorAll(kind).forEach((box, k) => {
      const width = (long * Math.abs(vector[k] || 0)) / most;
      for (const one of [box, frames[k]]) {
        one?.setAttribute("x", x);
        one?.setAttribute("width", width);
      }
      x += width;
    });
  };
  const paintNumbers = (end, kinds, vector, write) => {
    const boxes = end.querySelectorAll(kinds.bar);
    const [left, long] = ["x", "width"].map((name) => sizeOf(end.querySelector(".track"), name));
    let edge = 0;
    end.querySelectorAll(kinds.text).forEach((text, k) => {
      text.textContent = vector[k] ? write(vector[k]) : "";
      // In a step that is hidden, a text has no length yet.
      const half = (text.getComputedTextLength() || NUMERAL * text.textContent.length) / 2;
      const [x, width] = ["x", "width"].map((name) => sizeOf(boxes[k], name));
      const middle = Math.min(x + width / 2, left + long + 2 - half);
      text.setAttribute("x", middle);
      if (middle - half < edge + APART) text.textContent = "";
      if (text.textContent) edge = middle + half;
    });
  };

  // isReached(i): whether the mix of this row is there.
  const paint = ({ steps, matrices, write }, isReached) => {
    const sums = [...matrices.values, ...steps.outputs].map((vector) => vector.reduce((sum, one) => sum + Math.abs(one), 0));
    const most = Math.max(1, ...sums.filter(Number.isFinite));
    columns.forEach((_, j) => paintBar(figure.querySelector(`[data-end="value ${j}"]`), ".amount-of", matrices.values[j], most));
    rows.forEach((_, i) => {
      const end = figure.querySelector(`[data-end="output ${i}"]`);
      paintBar(end, ".amount-of", steps.outputs[i], most);
      paintNumbers(end, { bar: ".amount-of", text: ".entry" }, steps.outputs[i], write.outputs);
      end.dataset.value = JSON.stringify(steps.outputs[i]);
      end.classList.toggle("unreached", !isReached(i));
      const alone = figure.querySelector(`[data-alone="${i}"]`);
      if (!alone) return;
      const value = matrices.values[columns.length - rows.length + i];
      paintBar(alone, ".alone-of", value, most);
      paintNumbers(alone, { bar: ".alone-of", text: ".alone-entry" }, value, write.values);
    });
    for (const text of figure.querySelectorAll(".score-of")) {
      const [i, j] = text.parentElement.dataset.at.split(" ");
      text.textContent = `${called.scores} ${write.scores(steps.scores[i][j])}`;
    }
    // As `strip` in Python has it.
    for (const strip of figure.querySelectorAll("[data-strip]")) {
      const [name, place] = strip.dataset.strip.split(" ");
      const most = Math.max(...[...matrices.keys, ...matrices.queries].flat().map(Math.abs)) || 1;
      [...strip.children].forEach((box, k) => box.setAttribute("fill-opacity", 0.06 + (0.94 * Math.abs(matrices[name][place][k])) / most));
    }
  };
  return { paint };
};
