// The drawing of one query: how its values add up to the mix below.

const startMix = (figure, { number_names: called, in_words: inWords, shows_alone: showsAlone }, say) => {
  const svg = figure.querySelector("svg[data-stretch]");
  const late = svg.querySelector(".late");
  const heading = svg.querySelector(".stage-name");
  const axis = svg.querySelector(".zero");
  const rows = [...svg.querySelectorAll(".mixed")];
  const flows = [...svg.querySelectorAll(".flows path")];
  const bars = [...svg.querySelectorAll(".cell")].map((cell) => cell.firstElementChild);
  // Below this, a part is not drawn, and not written as an addend.
  const UNSEEN = 0.0005;
  const [MIN_FLOW, MAX_FLOW] = [0.6, 18];
  const sum = svg.querySelector(".sum");
  const strips = [...svg.querySelectorAll(".vector[data-key]")];
  const asking = svg.querySelector(".vector[data-role='query']");
  // What is added moves there from its bar, within this time.
  const MOVES = { duration: 250, easing: "ease-out" };
  const isStill = matchMedia("(prefers-reduced-motion: reduce)");
  // How wide all that flows is together, in its lanes, and the radius of the innermost turn.
  const BEND = 5;
  // The keys whose values were in the mix when it was painted last.
  let before = new Set();

  const total = (found) => found.reduce((added, one) => added + one, 0);
  const setWidth = (box, width) => box.setAttribute("width", Math.max(width, 0));

  // --- the mix ---

  // The addends of a row, if there are few and they fit beside its bar. Where they are rounded so
  // that they give another sum than the one shown, each has a digit more.
  const sumOf = (text, parts, total, write) => {
    const seen = parts.filter((part) => part >= UNSEEN);
    let written = seen.map(write);
    const added = written.map(Number).reduce((sum, part) => sum + part, 0);
    if (write(added) !== write(total)) {
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

  const paintRow = (row, k, { weights, values, isReached, most, write }) => {
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
    row.dataset.value = total;
    const [amount, added] = [".amount", ".addends"].map((kind) => row.querySelector(kind));
    amount.textContent = write(total);
    if (arePositive && !row.querySelector("[data-part='all']")) sumOf(added, parts, total, write);
    else added.textContent = "";
  };

  // What the word that asks, the last one, is alone, above the mix of the sentence: the segments of
  // both, the wedges between them, and their numbers, as `shift` in Python has them.
  const tracks = [...svg.querySelectorAll(".late > .track")];
  const place = (box, x, width) => {
    box.setAttribute("x", x);
    setWidth(box, width);
  };
  const paintShift = ({ weights, values, isReached, write, writeValue }) => {
    const alone = values.at(-1);
    const parts = alone.map((_, k) => values.map((value, j) => (isReached(j) ? (weights[j] * value[k] || 0) : 0)));
    const mixed = parts.map(total);
    const [left, long] = ["x", "width"].map((name) => Number(tracks[0].getAttribute(name)));
    const unit = long / Math.max(1, total(alone), total(mixed));
    const [under, over] = [edgeOf(tracks[0], true), edgeOf(tracks[1], false)];
    const isWhole = values.every((_, j) => isReached(j));
    const [from, to] = [alone, mixed].map((vector) => vector.map((_, k) => left + unit * total(vector.slice(0, k))));
    rows.forEach((row, k) => {
      place(row.querySelector(".alone"), from[k], unit * alone[k]);
      let x = to[k];
      row.querySelectorAll("[data-part]").forEach((box, j) => {
        place(box, x, unit * parts[k][j]);
        x += unit * parts[k][j];
        if (parts[k][j] >= UNSEEN && !before.has(j)) come(box, bars[j]);
      });
      const wedge = row.querySelector(".wedge");
      wedge.setAttribute("d", `M${from[k]} ${under}H${from[k] + unit * alone[k]}L${x} ${over}H${to[k]}Z`);
      // Before all values are in it, the sum is not yet what the word becomes.
      wedge.classList.toggle("unreached", !isWhole);
      row.dataset.value = mixed[k];
    });
    const [[aboveLeaders, belowLeaders], ends] = [[0, 1].map((n) => rows.map((row) => row.querySelectorAll(".leader")[n])), [left, left + long - 3]];
    const number = (writing) => (one) => (Math.abs(one) >= UNSEEN ? writing(one) : "");
    const textsOf = (kind) => rows.map((row) => row.querySelector(kind));
    writeNumbers(textsOf(".alone-entry"), aboveLeaders, from.map((x, k) => x + (unit * alone[k]) / 2), alone.map(number(writeValue)), ends);
    writeNumbers(textsOf(".amount"), belowLeaders, to.map((x, k) => x + (unit * mixed[k]) / 2), mixed.map(number(write)), ends);
  };

  // --- what flows: side by side at each end and in between, as `ribbons` in Python has it ---

  const paths = new Map(flows.map((path) => [`${path.dataset.at.split(" ")[1]} ${path.dataset.quality}`, path]));
  // The heights of keys and of numbers of the mix, and where the lanes begin.
  const edgeOf = (box, isLower) => Number(box.getAttribute("y")) + (isLower ? Number(box.getAttribute("height")) : 0);
  const middle = (box) => (edgeOf(box, false) + edgeOf(box, true)) / 2;
  const [starts, rowEnds] = [bars.map(middle), rows.map((row) => middle(row.querySelector("rect")))];
  const edge = flows.length ? Number(flows[0].getAttribute("d").match(/^M([\d.]+)/)[1]) : 0;

  // Those that enter one bar end below one another there, as `stacked` in Python has it.
  const stacked = (widths) => {
    const ofNumbers = widths[0].map((_, k) => total(widths.map((row) => row[k])));
    const top = middle(tracks[1]) - total(ofNumbers) / 2;
    return ofNumbers.map((width, k) => top + total(ofNumbers.slice(0, k)) + width / 2);
  };
  const layFlows = (parts) => {
    const sizes = parts.map((row) => row.map(Math.abs));
    // Ribbons get as much wider as the room for them does, unless they end in one bar.
    const more = showsAlone ? 0 : (svg.viewBox.baseVal.width - NARROWEST) * Number(svg.dataset.gutter);
    const most = MAX_FLOW + more;
    const unit = most / Math.max(1, total(sizes.flat()));
    const widths = sizes.map((row) => row.map((size) => (unit * size) || 0));
    const ends = showsAlone ? stacked(widths) : rowEnds;
    let lane = BEND + most;
    for (let k = ends.length - 1; k >= 0; k -= 1) {
      let below = ends[k] + total(widths.map((row) => row[k])) / 2;
      widths.forEach((row, j) => {
        const width = row[k];
        const start = starts[j] - total(row) / 2 + total(row.slice(k + 1)) + width / 2;
        const [out, end] = [lane - width / 2, below - width / 2];
        const turn = Math.min(out, (end - start) / 2);
        const [x, arc] = [edge + out, `A${turn} ${turn} 0 0 1`];
        paths.get(`${j} ${k}`)?.setAttribute(
          "d",
          `M${edge} ${start}H${x - turn}${arc} ${x} ${start + turn}V${end - turn}${arc} ${x - turn} ${end}H${edge}`,
        );
        paths.get(`${j} ${k}`)?.setAttribute("stroke-width", Math.max(width, MIN_FLOW));
        below -= width;
        lane -= width;
      });
    }
  };

  // --- below the bars ---

  // In products of a query and a key, each number has the colour of what it belongs to.
  const FACTOR = /(\(?−?[\d.]+\)?)/;
  const PRODUCTS = /^(≈ )?\(?−?[\d.]+ × \(?−?[\d.]+\)?( \+ −?[\d.]+ × \(?−?[\d.]+\)?)*$/;
  const paintCalculations = (stage, calculations) => {
    svg.querySelectorAll(".calculation").forEach((text, j) => {
      const words = calculations[stage]?.(j) ?? "";
      setPowers(text, words, "tspan");
      if (stage !== "scores" || !PRODUCTS.test(words)) return;
      const pieces = words.split(FACTOR).map((piece, n) => {
        if (n % 2 === 0) return piece;
        const factor = document.createElementNS(svg.namespaceURI, "tspan");
        factor.textContent = piece;
        factor.classList.add(n % 4 === 1 ? "by-query" : "by-key");
        return factor;
      });
      text.replaceChildren(...pieces);
    });
  };
  const paintSum = (stage, { powers, weights }, write) => {
    if (!sum) return;
    sum.setAttribute("visibility", ["powers", "weights"].includes(stage) ? "inherit" : "hidden");
    // Where rounded addends give another sum than the one shown, it is about that.
    const added = (found, writing, shownSum) => {
      const seen = total(found.map((one) => numbers.read(writing(one))));
      return seen.toFixed(2) === numbers.read(shownSum).toFixed(2) ? shownSum : `≈ ${shownSum}`;
    };
    sum.querySelector(".amount").textContent =
      stage === "powers" ? added(powers[0], write.powers, write.powers(total(powers[0]))) : added(weights[0], write.weights, "1");
  };
  // Boxes that are filled in the query and in the chosen key.
  const paintJoint = ({ queries, keys }, chosen) => {
    strips.forEach((strip, j) =>
      [...strip.children].forEach((box, k) => box.classList.toggle("joint", j === chosen && queries[0][k] * keys[j][k] !== 0)),
    );
    [...(asking?.children ?? [])].forEach((box, k) => box.classList.toggle("joint", chosen !== null && queries[0][k] * keys[chosen][k] !== 0));
  };

  // The line that bars begin at, where some go to its other side.
  const paintAxis = (zero) => {
    const x = Number(bars[0].getAttribute("x")) + zero * bars[0].dataset.wide;
    axis.setAttribute("x1", x);
    axis.setAttribute("x2", x);
    axis.setAttribute("visibility", zero > 0 ? "inherit" : "hidden");
  };

  const paint = ({ steps, matrices, write, calculations, scale }, { stage, j: chosen }, isWhole) => {
    const { queries, values } = matrices;
    const name = called[stage] ?? called.weights;
    heading.textContent = scale.divisor > 1 ? say("smaller", { name, n: numbers.shown(scale.divisor) }) : name;
    paintAxis(scale.zero);
    for (const text of svg.querySelectorAll(".of-query[data-n]")) text.textContent = write.queries(queries[0][text.dataset.n]);
    if (inWords) paintCalculations(stage, calculations);
    paintSum(stage, steps, write);
    paintJoint(matrices, chosen);
    if (!late) return;
    const isMixed = stage === "outputs";
    late.classList.toggle("unreached", !isMixed);
    const isReached = (j) => isMixed && (isWhole || chosen === null || j <= chosen);
    const [weights] = steps.weights;
    const most = Math.max(1, ...steps.outputs[0].map(Math.abs).filter(Number.isFinite));
    if (showsAlone) paintShift({ weights, values, isReached, write: write.outputs, writeValue: write.values });
    else rows.forEach((row, k) => paintRow(row, k, { weights, values, isReached, most, write: write.outputs }));
    before = new Set(values.keys().filter(isReached));
    layFlows(values.map((value, j) => value.map((number) => weights[j] * number)));
    for (const path of flows) {
      const j = Number(path.dataset.at.split(" ")[1]);
      const part = weights[j] * values[j][path.dataset.quality] || 0;
      const isSeen = Math.abs(part) >= UNSEEN && isReached(j);
      path.setAttribute("stroke-opacity", isSeen ? (chosen === null || j === chosen ? 0.85 : 0.3) : 0);
      path.dataset.value = part;
      path.classList.toggle("moving", isSeen);
    }
  };

  // Another one asks: what the query and its keys are called.
  const rename = (label, keys, write) => {
    const words = label.split(" + ");
    [...svg.querySelectorAll("text[data-row]:not(.of-query)")].forEach((text, n) => (text.textContent = words[n]));
    for (const text of svg.querySelectorAll(".of-key")) text.textContent = keys[text.dataset.column].map(write).join(", ");
  };

  // Another word is there: the boxes of queries and keys, as `strip` in Python has them, and what is
  // written of their values.
  const replace = ({ queries, keys, values }, valueTexts) => {
    const most = Math.max(...[...keys, ...queries].flat().map(Math.abs)) || 1;
    const fill = (strip, vector) =>
      [...strip.children].forEach((box, k) => box.setAttribute("fill-opacity", 0.06 + (0.94 * Math.abs(vector[k])) / most));
    for (const strip of strips) fill(strip, keys[strip.dataset.key]);
    if (asking) fill(asking, queries[0]);
    for (const bars of svg.querySelectorAll("[data-bars-of]")) {
      const value = values[bars.dataset.barsOf];
      const largest = Math.max(1, ...value.map(Math.abs));
      [...bars.children].forEach((box, n) => {
        if (n % 2 === 0) return;
        const track = box.previousElementSibling;
        const [top, room] = ["y", "height"].map((name) => Number(track.getAttribute(name)));
        const high = (room * Math.abs(value[(n - 1) / 2])) / largest;
        box.setAttribute("y", top + room - high);
        box.setAttribute("height", high);
      });
    }
    for (const text of svg.querySelectorAll("[data-value-of]")) text.textContent = valueTexts[text.dataset.valueOf];
  };

  return { paint, rename, replace };
};

// The numbers of the query are typed where they stand. Returns what puts the fields there again,
// what calls them by another label, and what sets their first numbers.
const startQuery = (figure, say, query, label, changed) => {
  const picture = figure.querySelector(".picture");
  const texts = [...picture.querySelectorAll(".of-query[data-n]")];
  const first = [...query];
  const editable = startEntries(say, changed, figure.getAttribute("aria-labelledby"));
  const wordsOf = (label) => (label.includes(" + ") ? label.split(" + ") : texts.length > 1 ? label.split(" ") : [label]);
  const fields = texts.map((text) => {
    const n = Number(text.dataset.n);
    const input = document.createElement("input");
    Object.assign(input, { type: "text", inputMode: "decimal", autocomplete: "off", className: "entry-of-query" });
    picture.append(input);
    const show = editable(input, { get: () => query[n], set: (number) => (query[n] = number) }, false);
    show();
    return { n, text, input, show };
  });
  const rename = (label) => {
    for (const { n, input } of fields) input.setAttribute("aria-label", say("queryOf", { word: wordsOf(label)[n] }));
  };
  rename(label);
  // Of a field, so much is left of its number.
  const [PADDING, LEAST] = [9, 48];
  const place = () => {
    const around = picture.getBoundingClientRect();
    for (const { text, input } of fields) {
      const box = text.getBoundingClientRect();
      // A slide that is too high is made smaller as a whole; lengths are set as if it were not.
      const zoom = picture.currentCSSZoom ?? 1;
      input.style.left = `${(box.left - around.left) / zoom - PADDING}px`;
      input.style.top = `${(box.top - around.top + box.height / 2) / zoom}px`;
      input.style.width = `${LEAST}px`;
    }
  };
  const reset = () => {
    first.forEach((number, n) => (query[n] = number));
    for (const { show } of fields) show();
  };
  return { place, rename, reset };
};
