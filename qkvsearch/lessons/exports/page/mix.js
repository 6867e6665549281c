// The drawing of one query: how its values add up to the mix below.

const startMix = (figure, { stages, number_names: called }) => {
  const svg = figure.querySelector("svg[data-stretch]");
  const late = svg.querySelector(".late");
  const heading = svg.querySelector(".stage-name");
  const rows = [...svg.querySelectorAll(".mixed")];
  const flows = [...svg.querySelectorAll(".flows path")];
  const bars = [...svg.querySelectorAll(".cell")].map((cell) => cell.firstElementChild);
  // Below this, a part is not drawn, and not written as an addend.
  const UNSEEN = 0.0005;
  const [MIN_FLOW, MAX_FLOW] = [0.6, 18];
  // What is added moves there from its bar, within this time.
  const MOVES = { duration: 250, easing: "ease-out" };
  const isStill = matchMedia("(prefers-reduced-motion: reduce)");
  const { shown } = numbers;
  // The keys whose values were in the mix when it was painted last.
  let before = new Set();

  const setWidth = (box, width) => box.setAttribute("width", Math.max(width, 0));

  // --- the mix ---

  // The addends of a row, if there are few and they fit beside its bar. Where they are rounded so
  // that they give another sum than the one shown, each has a digit more.
  const sumOf = (text, parts, total) => {
    const seen = parts.filter((part) => part >= UNSEEN);
    let written = seen.map(shown);
    if (!numbers.gives(written.map(Number).reduce((sum, part) => sum + part, 0), total)) {
      const decimals = Math.max(0, ...written.map((part) => part.split(".")[1]?.length ?? 0));
      written = seen.map((part) => part.toFixed(decimals + 1));
    }
    text.textContent = seen.length > 1 ? written.join(" + ") : "";
    const room = Number(text.getAttribute("x")) - 32;
    if (text.textContent && text.getComputedTextLength() > room) text.textContent = "";
  };

  const come = (box, from) => {
    const [x, y] = ["x", "y"].map((name) => Number(from.getAttribute(name)) - Number(box.getAttribute(name)));
    if (!isStill.matches) box.animate([{ transform: `translate(${x}px, ${y}px)` }, { transform: "none" }], MOVES);
  };

  const paintRow = (row, k, { weights, values, isReached, most }) => {
    const parts = values.map((value, j) => (isReached(j) ? (weights[j] * value[k] || 0) : 0));
    const total = parts.reduce((sum, part) => sum + part, 0);
    const left = Number(bars[0].getAttribute("x"));
    const longest = Number(bars[0].dataset.wide) / most;
    const arePositive = parts.every((part) => part >= 0);
    let x = left;
    for (const box of row.querySelectorAll("[data-part]")) {
      const j = Number(box.dataset.part);
      const isWhole = box.dataset.part === "all" || !arePositive;
      const part = isWhole ? (j ? 0 : Math.abs(total)) : parts[j];
      box.setAttribute("x", x);
      setWidth(box, part < UNSEEN ? 0 : longest * part);
      box.classList.toggle("minus", isWhole && total < 0);
      x += longest * part;
      if (!isWhole && part >= UNSEEN && !before.has(j)) come(box, bars[j]);
    }
    row.querySelector(".amount").textContent = shown(total);
    row.dataset.value = total;
    if (arePositive && !row.querySelector("[data-part='all']")) sumOf(row.querySelector(".addends"), parts, total);
    else row.querySelector(".addends").textContent = "";
  };

  const paint = (steps, { queries, values }, { stage, j: chosen }, isWhole) => {
    heading.textContent = called[stage] ?? called.weights;
    for (const text of svg.querySelectorAll(".of-query[data-n]")) text.textContent = shown(queries[0][text.dataset.n]);
    if (!late) return;
    const isMixed = stage === "outputs";
    late.classList.toggle("unreached", !isMixed);
    const isReached = (j) => isMixed && (isWhole || chosen === null || j <= chosen);
    const [weights] = steps.weights;
    const most = Math.max(1, ...steps.outputs[0].map(Math.abs).filter(Number.isFinite));
    rows.forEach((row, k) => paintRow(row, k, { weights, values, isReached, most }));
    before = new Set(values.keys().filter(isReached));
    for (const path of flows) {
      const j = Number(path.dataset.at.split(" ")[1]);
      const part = weights[j] * values[j][path.dataset.quality] || 0;
      const isSeen = Math.abs(part) >= UNSEEN && isReached(j);
      path.setAttribute("stroke-width", MIN_FLOW + MAX_FLOW * Math.min(Math.abs(part), 1));
      path.setAttribute("stroke-opacity", isSeen ? (isMixed && j === chosen ? 0.95 : 0.45) : 0);
      path.dataset.value = part;
      path.classList.toggle("moving", isSeen);
    }
  };

  return { paint };
};
