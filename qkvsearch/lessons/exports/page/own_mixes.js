// The drawing of several queries before a lesson has matrices: the mix of each beside its weights, as
// a bar whose segments have the colours of its numbers.

const startOwnMixes = (figure, { number_names: called, rows, columns }) => {
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
    const [texts, leaders, boxes] = [kinds.text, ".leader", kinds.bar].map((kind) => [...end.querySelectorAll(kind)]);
    const [left, long] = ["x", "width"].map((name) => sizeOf(end.querySelector(".track"), name));
    const middles = texts.map((_, k) => sizeOf(boxes[k], "x") + sizeOf(boxes[k], "width") / 2);
    writeNumbers(texts, leaders, middles, texts.map((_, k) => (vector[k] ? write(vector[k]) : "")), [left, left + long + 2]);
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
