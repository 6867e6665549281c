// The drawing of attention: a stage at a time, a cell or a row at a time, and under the pointer.

drawings.flow = (figure, say) => {
  const given = JSON.parse(figure.dataset.numbers);
  const settings = { ...given };
  const { rows, columns, stages, computed, names, askers } = given;
  const inWords = given.in_words;
  const hasValues = computed.includes("outputs");
  const hasWeights = computed.includes("weights");
  const isOne = figure.querySelector("svg[data-stretch]") !== null;
  const telling = startTelling(figure);
  const cells = new Map([...figure.querySelectorAll(".cell")].map((cell) => [cell.dataset.at, cell]));
  const paths = [...figure.querySelectorAll(".flows path[data-at]")];
  const grid = figure.querySelector(".cells");
  const mix = isOne ? startMix(figure, given, say) : null;
  const ownMixes = !isOne && inWords && hasValues ? startOwnMixes(figure, given) : null;
  const matrices = Object.fromEntries(
    ["queries", "keys", "values"].map((name) => [name, given[name]?.map((row) => row.map(numbers.held))]),
  );
  let steps = {};
  // What is said of the mix before another word was put in; null once anything else changed.
  let before = null;
  // Of scores, with how many decimals they are written whatever another word or number gives.
  const least = {};
  // By the name of a step: how its numbers are written. In words, those of a kind have the same decimals.
  let write = {};

  // Scores one by one while they are few, and values into the mix of one query; the rest goes by rows.
  const isBrief = rows.length > 1 && given.keys[0].length <= 8;
  const few = rows.length * columns.length <= 20;
  const moments = stages.flatMap((stage) =>
    rows.flatMap((_, i) =>
      few && (stage === "scores" || (isOne && stage === "outputs")) ? columns.map((_, j) => ({ stage, i, j })) : [{ stage, i, j: null }],
    ),
  );
  const lastOf = (stage) => moments.findLastIndex((moment) => moment.stage === stage);

  const compute = () => {
    steps = attention.steps(matrices, { ...settings, temperature: Number(settings.temperature) });
    steps.powers = steps.masked?.map((row) => row.map(Math.exp));
    write = Object.fromEntries(Object.keys(steps).map((name) => [name, writing(name)]));
    const each = rows.flatMap((_, i) =>
      columns.flatMap((_, j) =>
        computed.filter((stage) => stage !== "outputs").map((stage) => steps[stage][i][j]),
      ),
    );
    fillNumbers(figure, hasValues ? [...each, ...steps.outputs.flat()] : each);
  };

  const { shown } = numbers;
  // further: how many decimals more than usual.
  const writing = (name, further = 0) => {
    if (!inWords) return shown;
    const all = steps[name].flat();
    if (name === "powers") return (power) => numbers.shownPower(power, Math.max(...all), further);
    if (name === "values" && numbers.areExact(all)) return numbers.shownExactly;
    // What is typed into a query is written as it was typed.
    const decimals = name === "queries" ? null : Math.max(numbers.decimalsOf(all), least[name] ?? 0);
    return decimals === null ? shown : (number) => numbers.withDecimals(number, decimals + further);
  };

  // --- what is said of a cell or a row ---

  // Products that are written alike are counted. Of few numbers, those with 0 are said, too.
  const isLong = given.keys[0].length > 3;
  const products = (a, b, writeA, writeB) => {
    const sign = inWords ? " × " : "×";
    const each = a.map((entry, k) => [entry, b[k]]).filter(([x, y]) => (inWords && !isLong && writeB === write.keys) || (x && y))
      .map(([x, y]) => `${writeA(x)}${sign}${inWords ? inBrackets(writeB(y)) : writeB(y)}`);
    const unlike = [...new Set(inWords ? each : [])].map((one) => [one, each.filter((other) => other === one).length]);
    const counted = inWords ? unlike.map(([one, n]) => (n > 1 ? `${n} × (${one})` : one)) : each;
    return counted.join(" + ").replaceAll("+ −", "− ") || "0";
  };
  const inBrackets = (text) => (text.startsWith("−") ? `(${text})` : text);
  // Of two vectors whose numbers are 0, or 1/√n where n are not: how their product comes from counts,
  // as `counted` in Python has it, and what that is.
  const counted = (a, b) => {
    const sizes = [a, b].map((vector) => vector.filter(Boolean).length);
    const isCount = (vector, n) => Math.abs(n ** -0.5 - vector.find(Boolean)) < 1e-6 && new Set(vector.filter(Boolean)).size === 1;
    if (!inWords || !isLong || !isCount(a, sizes[0]) || !isCount(b, sizes[1])) return null;
    const [shared, product] = [a.filter((entry, k) => entry && b[k]).length, sizes[0] * sizes[1]];
    const below = sizes[0] === sizes[1] ? sizes[0] : `√${product}`;
    return { product: shared / Math.sqrt(product), written: `${shared} ÷ ${below}` };
  };
  const held = numbers.read;
  // What is shown on the left is to give what is shown on the right, which `write` wrote: where
  // rounded numbers do not, they have a decimal more, at most five. left(further) returns them as they
  // are written, and what they give.
  const FURTHER = [0, 1, 2, 3, 4, 5];
  const giving = (left, write, right) =>
    left(FURTHER.find((further) => write(left(further).product) === right) ?? 0);
  // What is shown on the left may be rounded so that it gives another number than the one shown.
  const equals = (left, right) => {
    if (/^[≈>]/.test(right)) return right;
    const wanted = held(right);
    const isSame = Number.isFinite(left) ? Math.abs(left - wanted) <= 1e-9 * Math.max(1, Math.abs(left)) : Object.is(left, wanted);
    return `${isSame ? "=" : "≈"} ${right}`;
  };
  const sumOf = (a, b, writeA, writeB) => a.reduce((sum, entry, k) => sum + held(writeA(entry)) * held(writeB(b[k])), 0);
  const scoreOf = (a, b) =>
    counted(a, b) ?? { written: products(a, b, write.queries, write.keys), product: sumOf(a, b, write.queries, write.keys) };
  const sumOfPowers = (i) => steps.powers[i].reduce((sum, power) => sum + power, 0);
  const divided = (i, j) => {
    const temperature = Number(settings.temperature);
    const left = (further) => {
      const score = writing("scores", further)(steps.scores[i][j]);
      return { written: `${score} ÷ ${shown(temperature)}`, product: held(score) / temperature };
    };
    return giving(left, write.scaled, write.scaled(steps.scaled[i][j]));
  };
  const powerOf = (i, j) => {
    const left = (further) => {
      const score = writing("masked", further)(steps.masked[i][j]);
      return { written: `e^${score}`, product: Math.exp(held(score)) };
    };
    return giving(left, write.powers, write.powers(steps.powers[i][j]));
  };
  const quotientOf = (i, j) => {
    const left = (further) => {
      const writePower = writing("powers", further);
      const [power, sum] = [writePower(steps.powers[i][j]), writePower(sumOfPowers(i))];
      return { written: `${power} ÷ ${sum}`, product: held(power) / held(sum) };
    };
    return giving(left, write.weights, write.weights(steps.weights[i][j]));
  };
  const shareOf = (i, j, writeScore) => {
    const each = steps.masked[i].map((score) => (inWords ? `e^${writeScore(score)}` : `exp(${writeScore(score)})`));
    const sum = each.length > 6 ? `${each[0]} + … + ${each.at(-1)}` : each.join(" + ");
    const powers = steps.masked[i].map((score) => Math.exp(held(writeScore(score))));
    return { written: `${each[j]} ${inWords ? "÷" : "/"} (${sum})`, product: powers[j] / powers.reduce((total, one) => total + one, 0) };
  };
  const sayings = {
    scores: (i, j) => {
      const [a, b, score] = [matrices.queries[i], matrices.keys[j], steps.scores[i][j]];
      const { written, product } = scoreOf(a, b);
      return `${written} ${equals(product, write.scores(score))}`;
    },
    scaled: (i, j) => {
      const { scale, temperature } = settings;
      const right = write.scaled(steps.scaled[i][j]);
      if (scale === 1) {
        const { written, product } = divided(i, j);
        return `${written} ${equals(product, right)}`;
      }
      const [left, factor] = [write.scores(steps.scores[i][j]), shown(scale / temperature)];
      return `${left} × ${factor} ${equals(held(left) * held(factor), right)}`;
    },
    masked: (i, j) => (steps.visible[i][j] ? say("staysAs", { number: write.masked(steps.masked[i][j]) }) : say("becomesHidden")),
    powers: (i, j) => {
      const { written, product } = powerOf(i, j);
      return `${written} ${equals(product, write.powers(steps.powers[i][j]))}`;
    },
    weights: (i, j) => {
      const weight = write.weights(steps.weights[i][j]);
      if (settings.normalize !== "softmax") return weight;
      if (computed.includes("powers")) {
        const { written, product } = quotientOf(i, j);
        return `${written} ${equals(product, weight)}`;
      }
      const { written, product } = giving((further) => shareOf(i, j, writing("masked", further)), write.weights, weight);
      return `${written} ${equals(product, weight)}`;
    },
    outputs: (i, j) => `${write.weights(steps.weights[i][j])} × ${ofValue(j)}`,
  };
  // What stands below the bar of one query.
  const calculations = {
    scores: (j) => {
      const [a, b] = [matrices.queries[0], matrices.keys[j]];
      const { written, product } = scoreOf(a, b);
      return `${equals(product, write.scores(steps.scores[0][j])).startsWith("≈") ? "≈ " : ""}${written}`;
    },
    scaled: (j) => divided(0, j).written,
    powers: (j) => powerOf(0, j).written,
    weights: (j) => quotientOf(0, j).written,
    outputs: (j) => `${given.number_names.scores} ${steps.visible[0][j] ? write.scores(steps.scores[0][j]) : "−∞"}`,
  };
  const list = (numbers) => `[${numbers.map(shown).join(", ")}]`;
  // Where the numbers of values have names, those that are not 0 are called by them.
  const named = (numbers, writing = write.outputs) =>
    numbers.flatMap((number, k) => (number ? [`${names[k]} ${writing(number)}`] : [])).join(", ");
  const ofValue = (j) => {
    const value = matrices.values[j];
    if (!names.length) return list(value);
    const entries = value.filter(Boolean);
    return entries.length === 1 && entries[0] === 1 ? names[value.indexOf(1)] : `(${named(value, write.values)})`;
  };
  // What a number of the mix of a query is the sum of.
  const ofQuality = (k, i = 0) => {
    const [weights, parts] = [steps.weights[i], matrices.values.map((value) => value[k])];
    const writeValue = parts.every(Number.isInteger) ? shown : write.values;
    const left = (further) => {
      const writeWeight = writing("weights", further);
      return { written: products(weights, parts, writeWeight, writeValue), product: sumOf(weights, parts, writeWeight, writeValue) };
    };
    const right = write.outputs(steps.outputs[i][k]);
    const { written, product } = giving(left, write.outputs, right);
    return `${names[k] ?? k + 1}: ${written} ${equals(product, right)}`;
  };
  const ofRow = (stage, i) => {
    if (stage !== "outputs") return columns.map((column, j) => `${column} ${write[stage](steps[stage][i][j])}`).join(", ");
    if (names.length) return named(steps.outputs[i]);
    const parts = columns.flatMap((_, j) =>
      steps.weights[i][j] ? [`${shown(steps.weights[i][j])}·${list(matrices.values[j])}`] : [],
    );
    return `${parts.join(" + ") || 0} = ${list(steps.outputs[i])}`;
  };
  // What has been computed of a pair up to this stage; of one query, all steps. Beside an own mix the
  // weight is said, too.
  const ofPair = (stage, i, j) =>
    (rows.length === 1 ? computed.slice(0, computed.indexOf(stage) + 1) : ownMixes ? ["weights", stage] : [stage])
      .map((one) => sayings[one](i, j)).join("\n");
  const tell = ({ stage, i, j }, isWhole) => {
    if (i === null) return telling(say(isOne ? "pointAtBar" : "pointAt"), false);
    const row = `${rows[i]}: ${ofRow(stage, i)}`;
    if (j === null) return telling(row);
    const cell = `${rows[i]} · ${columns[j]}: ${ofPair(stage, i, j)}`;
    telling(stage === "outputs" && isWhole ? `${cell}\n${row}` : cell);
  };

  // --- what is said of a stage, above the bars: its worked line follows what is changed ---

  const remarks = [...figure.querySelectorAll(".remark")];
  const paintRemarks = (shownStage) => {
    for (const remark of remarks) {
      const { stage } = remark.dataset;
      remark.classList.toggle("shown", stage === shownStage);
      const worked = remark.querySelector(".in-numbers");
      if (worked) setPowers(worked, sayings[stage](0, Number(worked.dataset.key)), "sup");
      for (const name of remark.querySelectorAll("[hidden]")) name.hidden = false;
    }
  };

  // --- what is drawn ---

  // A bar is as long as its number is large; any other box as strong.
  // A narrow cell has room for two decimals, whatever the number.
  const cellText = (number) =>
    grid.dataset.cells && Number.isFinite(number) ? shown(Math.round(number * 100) / 100 || 0) : write[grid.dataset.stage](number);
  const measure = (box, share, least = 0, most = 1) => {
    const { wide } = box.dataset;
    if (wide) box.setAttribute("width", share * wide);
    else box.setAttribute("fill-opacity", least + (most - least) * share);
  };

  // Of one query, scores have one scale, divided by a number or not: that they get longer or shorter
  // is seen. It is that of the lesson's own numbers; where the query is typed, its longest score takes
  // at most half of the room. ROUND: what that scale may be divided by where a bar would leave the
  // drawing.
  const ROOM = 2;
  const ROUND = [1, 2, 5];
  const isTyped = figure.querySelector(".of-query[data-n]") !== null;
  const finite = (stage) => steps[stage].flat().filter(Number.isFinite);
  const largest = (stage) => Math.max(0, ...finite(stage).map(Math.abs)) || 1;
  const divisorFor = (needed) => {
    if (needed <= 1) return 1;
    const power = 10 ** Math.floor(Math.log10(needed));
    return power * (ROUND.find((one) => one * power >= needed - 1e-9) ?? 10);
  };
  // Those that are drawn: a hidden score is a score, so the mask changes no bar but its own.
  const isScaled = ["scaled", "masked"].some((stage) => computed.includes(stage));
  const scored = isScaled ? ["scores", "scaled"] : ["scores"];
  const lowest = (stage) => Math.min(0, ...finite(stage));
  const span = (stage) => Math.max(0, ...finite(stage)) - lowest(stage) || 1;
  // What a bar as long as the room stands for at first.
  let own = 1;
  const keepScale = () => {
    own = Math.max(isTyped ? ROOM * largest("scores") : 0, ...scored.map(span));
  };
  // What it stands for now, where bars begin as a share of the room, and what the scale was divided by.
  const scaleOf = (stage) => {
    if (stage === "weights") return { most: 1, zero: 0, divisor: 1 };
    if (!isOne || stage === "powers") return { most: largest(stage), zero: 0, divisor: 1 };
    const divisor = divisorFor(Math.max(...scored.map(span)) / own);
    const most = own * divisor;
    return { most, zero: -lowest(stage === "masked" ? scored.at(-1) : stage) / most, divisor };
  };

  const paintCell = (cell, stage, isReached, { most, zero }) => {
    const [i, j] = cell.dataset.at.split(" ").map(Number);
    const number = steps[stage][i][j];
    const [box, text] = cell.children;
    const hides = hasWeights && !steps.visible[i][j] && ["masked", "powers", "weights"].includes(stage);
    // The outline of a hidden bar says how long it was.
    const length = isOne && hides && stage === "masked" ? (steps.scaled ?? steps.scores)[i][j] : number;
    const share = isReached && Number.isFinite(length) ? Math.min(Math.abs(length) / most, 1) : 0;
    measure(box, share);
    // A bar below 0 ends where the others begin.
    if (isOne) box.setAttribute("transform", `translate(${(zero - (length < 0 ? share : 0)) * box.dataset.wide} 0)`);
    box.classList.toggle("minus", number < 0);
    text.classList.toggle("veiled", !isReached);
    if (text.textContent || isReached) text.textContent = text.dataset.small ? "" : cellText(number);
    cell.dataset.value = number;
    cell.classList.toggle("hides", hides && isReached);
  };

  const mark = ({ i, j }) => {
    for (const one of figure.querySelectorAll(".end .chosen")) one.classList.remove("chosen");
    for (const [at, cell] of cells) {
      const [row, column] = at.split(" ").map(Number);
      cell.classList.toggle("lit", row === i || column === j);
      cell.classList.toggle("chosen", row === i && column === j);
    }
    for (const label of figure.querySelectorAll("[data-row]")) label.classList.toggle("lit", Number(label.dataset.row) === i);
    for (const label of figure.querySelectorAll("[data-column]")) label.classList.toggle("lit", Number(label.dataset.column) === j);
  };

  // Ribbons of one end lie side by side, as `ribbons` in Python has it.
  const MAX_RIBBON = 18;
  const UNSEEN = 0.0005;
  const total = (found) => found.reduce((sum, one) => sum + one, 0);
  const layRibbons = () => {
    const { weights } = steps;
    const largest = Math.max(1, ...matrices.values.map((value) => total(value.map(Math.abs))));
    const widths = weights.map((row) =>
      row.map((weight, j) => matrices.values[j].map((number) => (MAX_RIBBON / largest) * Math.abs(weight * number) || 0)),
    );
    const pair = (i, j) => total(widths[i][j]);
    const atValue = (i, j) => total(rows.slice(0, i).map((_, n) => pair(n, j))) - total(rows.map((_, n) => pair(n, j))) / 2;
    const atMix = (i, j) => total(columns.slice(0, j).map((_, n) => pair(i, n))) - total(columns.map((_, n) => pair(i, n))) / 2;
    for (const path of paths) {
      const [i, j] = path.dataset.at.split(" ").map(Number);
      const k = Number(path.dataset.quality);
      const [[from, top], [to, bottom]] = [path.dataset.from, path.dataset.to].map((at) => at.split(" ").map(Number));
      const width = widths[i][j][k];
      const within = total(widths[i][j].slice(0, k)) + width / 2;
      const [x1, x2] = [from + atValue(i, j) + within, to + atMix(i, j) + within];
      const half = (top + bottom) / 2;
      path.setAttribute("d", `M${x1} ${top}C${x1} ${half} ${x2} ${half} ${x2} ${bottom}`);
      path.setAttribute("stroke-width", Math.max(width, 0.6));
      path.dataset.value = weights[i][j] * matrices.values[j][k];
      path.setAttribute("stroke-opacity", Math.abs(path.dataset.value) >= UNSEEN ? 0.8 : 0);
    }
  };

  const paintEnd = (end, name, place) => {
    const vectors = name === "outputs" ? steps.outputs : matrices.values;
    const vector = vectors[place];
    const { bars: hasBars } = end.dataset;
    const compared = hasBars ? [[1], ...matrices.values, ...steps.outputs] : vectors;
    const most = Math.max(...compared.flat().map(Math.abs)) || 1;
    [...end.querySelectorAll(hasBars ? ".amount-of" : "rect")].forEach((box, k) => {
      measure(box, Math.min(Math.abs(vector[k]) / most, 1), 0.06);
      box.classList.toggle("minus", vector[k] < 0);
    });
    [...end.querySelectorAll(".entry")].forEach((text, k) => (text.textContent = write[name](vector[k])));
    end.dataset.value = JSON.stringify(vector);
  };

  const paintFlows = ({ stage, i, j }, isWhole) => {
    const isMixing = stage === "outputs";
    figure.querySelector(".late").classList.toggle("unreached", !isMixing);
    const areRibbons = paths[0].dataset.quality !== undefined;
    if (areRibbons) layRibbons();
    for (const path of paths) {
      const [row, column] = path.dataset.at.split(" ").map(Number);
      const weight = steps.weights[row][column];
      const isMeant = i === null || row === i;
      if (!areRibbons) {
        path.setAttribute("stroke-width", 0.6 + 16 * Math.min(Math.max(weight, 0), 1));
        path.setAttribute("stroke-opacity", weight > 0 ? 0.08 + 0.72 * Math.min(weight, 1) : 0);
        path.dataset.value = weight;
      }
      path.classList.toggle("unreached", !isMixing && (areRibbons || stage !== "weights"));
      path.classList.toggle("faint", !isMeant);
      path.classList.toggle("chosen", row === i && column === j);
      path.classList.toggle("moving", isMixing && isMeant && weight > 0.02);
    }
    for (const end of figure.querySelectorAll("[data-end]")) {
      const [role, place] = end.dataset.end.split(" ");
      paintEnd(end, `${role}s`, Number(place));
      // An output is there once it is mixed.
      end.classList.toggle("unreached", role === "output" && !(isMixing && (isWhole || Number(place) <= i)));
    }
  };

  // Before the mix is there, a drawing is cut where it would be.
  const heights = new Map([...figure.querySelectorAll("svg[data-early]")].map((svg) => [svg, svg.viewBox.baseVal.height]));
  const cut = (isMixed) => {
    for (const [svg, whole] of heights) {
      svg.setAttribute("viewBox", `0 0 ${svg.viewBox.baseVal.width} ${isMixed ? whole : svg.dataset.early}`);
    }
  };

  const draw = (moment, place) => {
    cut(moment.stage === "outputs");
    // A stage fills cell by cell; the one before it is seen where it has not come.
    const shown = moment.stage === "outputs" ? "weights" : moment.stage;
    grid.dataset.stage = shown;
    const scale = scaleOf(shown);
    for (const cell of cells.values()) {
      const [i, j] = cell.dataset.at.split(" ").map(Number);
      const before = moments.findIndex(
        (one) => one.stage === moment.stage && one.i === i && (one.j === null || one.j === j),
      );
      paintCell(cell, shown, place === undefined || moment.stage === "outputs" || before <= place, scale);
    }
    mark(moment);
    if (isOne) mix.paint({ steps, matrices, write, calculations, scale }, moment, place === undefined);
    else if (ownMixes) ownMixes.paint({ steps, matrices, write }, (i) => place === undefined || i <= moment.i);
    else if (hasWeights) paintFlows(moment, place === undefined);
    for (const button of figure.querySelectorAll("[data-does='stage']")) {
      button.ariaPressed = String(button.dataset.stage === moment.stage);
    }
    paintRemarks(moment.stage);
    tell(moment, place === undefined);
  };

  // --- what is done ---

  // The pair that was chosen last, if any; the pointer looks at others without choosing them.
  let chosen = { i: null, j: null };
  // Whether the reader chose it: then what is said of it stays. Of a number of a value or of a mix,
  // `answer` says it again.
  let isHeld = false;
  let answer = null;
  const hold = (again = null) => {
    isHeld = true;
    answer = again;
  };
  const release = () => {
    isHeld = false;
    answer = null;
  };
  const choose = ({ i, j }) => {
    chosen = { i, j };
    if (controls.row) controls.row.value = i ?? "";
    if (controls.column) controls.column.value = j ?? "";
  };
  const showMoment = (place) => {
    release();
    choose(moments[place]);
    draw(moments[place], place);
  };
  const player = startPlayer(figure, { moments: () => moments.length, show: showMoment, pause: () => 900 });
  const look = (at = chosen) => {
    draw({ stage: moments[player.at()].stage, ...at });
    answer?.();
  };
  // A stage as a whole, with what was chosen before: a step further is the next stage.
  const turnTo = (stage) => {
    const [kept, wasHeld] = [chosen, isHeld && !answer];
    player.go(lastOf(stage));
    choose(kept);
    isHeld = wasHeld;
    look();
  };

  const controls = startControls(figure, (name, value) => {
    player.stop();
    if (name === "asker") return ask(askers[value]);
    if (name === "replacement") return putIn(given.replacements[value]);
    if (name === "row" || name === "column") {
      if (value === "") {
        release();
        choose({ i: null, j: null });
        return look();
      }
      hold();
      // A query alone is chosen with all its keys. A key alone is one of the first query.
      const chosenIn = (control) => (control?.value ? Number(control.value) : null);
      choose({ i: chosenIn(controls.row) ?? 0, j: chosenIn(controls.column) });
      return look();
    }
    settings[name] = value;
    before = null;
    compute();
    if (name === "mask") turnTo("weights");
    else look();
  });
  for (const button of figure.querySelectorAll("[data-does='stage']")) {
    button.addEventListener("click", () => turnTo(button.dataset.stage));
  }
  // Whether what is said is not to change under the pointer.
  const isBusy = () => isHeld || figure.classList.contains("plays");
  for (const shape of [...cells.values(), ...paths]) {
    const [i, j] = shape.dataset.at.split(" ").map(Number);
    shape.addEventListener("pointerenter", () => {
      // What takes several lines to say would move the cell from under the pointer.
      if (isBrief && !isBusy()) look({ i, j });
    });
    shape.addEventListener("click", () => {
      player.stop();
      hold();
      choose({ i, j });
      look();
    });
  }
  // A number of a value or of a mix is chosen alone: no cell is then.
  const ofNumber = (tellIt) => {
    player.stop();
    hold(tellIt);
    choose({ i: null, j: null });
    look();
  };
  for (const row of figure.querySelectorAll(".mixed")) {
    row.addEventListener("click", () => {
      ofNumber(() => telling(ofQuality(Number(row.dataset.quality))));
    });
  }
  // A number of a value or of a mix, where it is written.
  for (const end of figure.querySelectorAll(".end:has(.touch)")) {
    const [role, place] = end.dataset.end.split(" ");
    const [frames, bars, texts] = [".touch", ".amount-of", ".entry"].map((kind) => [...end.querySelectorAll(kind)]);
    frames.forEach((frame, k) => {
      const tellNumber = () => {
        mark({ i: null, j: null });
        const number = () => `${names[k]}: ${write.values(matrices.values[place][k])}`;
        const owner = (role === "output" ? rows : columns)[place];
        telling(`${owner} · ${role === "output" ? ofQuality(k, Number(place)) : number()}`);
        frame.classList.add("chosen");
      };
      for (const shape of [frame, bars[k], texts[k]]) {
        shape.addEventListener("click", () => {
          ofNumber(tellNumber);
        });
        shape.addEventListener("pointerenter", () => {
          if (!isBusy()) tellNumber();
        });
      }
    });
  }
  for (const svg of figure.querySelectorAll("svg")) {
    svg.addEventListener("pointerleave", () => {
      if (!isBusy()) look();
    });
  }
  document.addEventListener("keydown", (event) => {
    // In a field, Escape takes back what was typed.
    if (event.key !== "Escape" || !isHeld || event.target.matches("[type=text], dialog *")) return;
    release();
    choose({ i: null, j: null });
    look();
  });
  for (const { lastChild } of cells.values()) if (!lastChild.textContent) lastChild.dataset.small = "yes";
  compute();
  if (inWords) least.scores = numbers.decimalsOf(steps.scores.flat());
  keepScale();
  // It opens at its first stage as a whole, and Play begins there, too.
  player.open();
  choose({ i: null, j: null });
  look();

  // --- another word ---

  const relabelTables = () => {
    const [ofPairs, ofOutputs] = figure.querySelectorAll(".numbers tbody");
    [...ofPairs.rows].forEach((row, n) => {
      row.cells[0].textContent = rows[Math.floor(n / columns.length)];
      row.cells[1].textContent = columns[n % columns.length];
    });
    [...(ofOutputs?.rows ?? [])].forEach((row, n) => (row.cells[0].textContent = rows[n]));
  };
  // Of the drawing and its tables, what the rows and columns are called.
  const relabel = () => {
    for (const [kind, found] of [["row", rows], ["column", columns]]) {
      for (const text of figure.querySelectorAll(`text[data-${kind}]:not(.of-query, .of-key)`)) text.textContent = found[text.dataset[kind]];
      for (const option of controls[kind]?.options ?? []) if (option.value) option.textContent = found[option.value];
    }
    for (const end of figure.querySelectorAll("[data-end]:has(.of-word)")) {
      const [role, place] = end.dataset.end.split(" ");
      end.querySelector(".of-word").textContent = (role === "output" ? rows : columns)[place];
    }
    for (const [n, text] of figure.querySelectorAll(".sentence strong").entries()) text.textContent = columns[replacedAt + n];
    relabelTables();
  };
  // The table of these values in the same step has the same words, and their values.
  const headingsOf = (table) => [...table.tHead.rows[0].cells].slice(1);
  const tableOfValues = [...(figure.closest(".step")?.querySelectorAll(".matrix[data-role=value] table") ?? [])].find(
    (table) => headingsOf(table).map((cell) => cell.textContent).join("\n") === columns.join("\n"),
  );
  const fillValues = () => {
    if (!tableOfValues) return;
    headingsOf(tableOfValues).forEach((cell, j) => (cell.textContent = columns[j]));
    [...tableOfValues.tBodies[0].rows].forEach((row, k) => {
      row.querySelectorAll("td").forEach((cell, j) => {
        cell.dataset.value = matrices.values[j][k];
        cell.querySelector(".value").textContent = write.values(matrices.values[j][k]);
      });
    });
  };
  // The place at which the others stand.
  const replacedAt = columns.findIndex((word, j) => given.replacements.some((one) => one.columns[j] !== word));
  function replace(one) {
    rows.splice(0, rows.length, ...one.rows);
    columns.splice(0, columns.length, ...one.columns);
    for (const name of ["queries", "keys", "values"]) matrices[name] = one[name].map((vector) => vector.map(numbers.held));
    compute();
    relabel();
    fillValues();
    mix?.replace(matrices, one.value_texts);
  }
  // The stage stays. At the mix, what it was before is said of the last one that asks.
  function putIn(one) {
    const { stage } = moments[player.at()];
    if (stage !== "outputs") {
      before = null;
      replace(one);
      return turnTo(stage);
    }
    const place = rows.length - 1;
    const [row, found] = [rows[place], named(steps.outputs[place])];
    before = say("wasBefore", { row, numbers: found });
    replace(one);
    player.go(lastOf(stage));
    choose({ i: null, j: null });
    hold(() => {
      const now = `${rows[place]}: ${named(steps.outputs[place])}`;
      telling(before ? `${now}\n${before}` : now);
    });
    look();
  }

  // On paper a drawing is at its end, where all of it is to be seen.
  addEventListener("beforeprint", () => turnTo(stages.at(-1)));

  // --- one query: bars use the width that there is, and its numbers are typed where they stand ---

  let entries = null;
  if (isOne) {
    entries = startQuery(figure, say, matrices.queries[0], rows[0], () => {
      player.stop();
      compute();
      look();
    });
    startStretching(figure, () => {
      look();
      entries.place();
    });
  }
  function ask(asker) {
    rows[0] = asker.label;
    matrices.keys = asker.keys.map((row) => row.map(numbers.held));
    settings.seen = asker.seen;
    compute();
    relabelTables();
    mix.rename(rows[0], matrices.keys, write.keys);
    entries.rename(rows[0]);
    look();
  }

  // To start again is to have all as it was when the page came.
  figure.querySelector("[data-does='restart']").addEventListener("click", () => {
    const first = { temperature: given.temperature, mask: given.mask, asker: 0, replacement: 0 };
    for (const [name, value] of Object.entries(first)) if (controls[name]) setControl(figure, controls[name], value);
    Object.assign(settings, { temperature: given.temperature, mask: given.mask });
    entries?.reset();
    if (askers.length) ask(askers[0]);
    if (given.replacements.length) replace(given.replacements[0]);
    compute();
    player.open();
    choose({ i: null, j: null });
    look();
  });
};
