// The drawing of attention: a stage at a time, a cell or a row at a time, and under the pointer.

drawings.flow = (figure, say) => {
  const given = JSON.parse(figure.dataset.numbers);
  const settings = { ...given };
  const { rows, columns, stages, names } = given;
  const inWords = given.in_words;
  const hasValues = stages.includes("outputs");
  const hasWeights = stages.includes("weights");
  const isOne = figure.querySelector("svg[data-stretch]") !== null;
  const telling = startTelling(figure);
  const cells = new Map([...figure.querySelectorAll(".cell")].map((cell) => [cell.dataset.at, cell]));
  const paths = [...figure.querySelectorAll(".flows path[data-at]")];
  const grid = figure.querySelector(".cells");
  const mix = isOne ? startMix(figure, given) : null;
  const matrices = Object.fromEntries(
    ["queries", "keys", "values"].map((name) => [name, given[name]?.map((row) => row.map(numbers.held))]),
  );
  let steps = {};

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
    const each = rows.flatMap((_, i) =>
      columns.flatMap((_, j) =>
        stages.filter((stage) => stage !== "outputs").map((stage) => steps[stage][i][j]),
      ),
    );
    fillNumbers(figure, hasValues ? [...each, ...steps.outputs.flat()] : each);
  };

  // --- what is said of a cell or a row ---

  const { shown } = numbers;
  const products = (a, b) =>
    a.map((entry, k) => [entry, b[k]]).filter(([x, y]) => x && y)
      .map(([x, y]) => `${shown(x)}×${shown(y)}`).join(" + ").replaceAll("+ −", "− ") || "0";
  // What is shown on the left may be rounded so that it gives another number than the one shown.
  const equals = (left, right) =>
    shown(right).startsWith("≈") ? shown(right) : `${numbers.gives(left, right) ? "=" : "≈"} ${shown(right)}`;
  const held = (number) => numbers.held(shown(number).replace("−", "-").replace("≈", ""));
  const sumOf = (a, b) => a.reduce((sum, entry, k) => sum + held(entry) * held(b[k]), 0);
  const sayings = {
    scores: (i, j) => {
      const [a, b, score] = [matrices.queries[i], matrices.keys[j], steps.scores[i][j]];
      return `${products(a, b)} ${equals(sumOf(a, b), score)}`;
    },
    scaled: (i, j) => {
      const [score, scaled] = [steps.scores[i][j], steps.scaled[i][j]];
      const { scale, temperature } = settings;
      if (scale === 1) return `${shown(score)} ÷ ${shown(Number(temperature))} ${equals(held(score) / held(temperature), scaled)}`;
      const factor = scale / temperature;
      return `${shown(score)} × ${shown(factor)} ${equals(held(score) * held(factor), scaled)}`;
    },
    masked: (i, j) => (steps.visible[i][j] ? say("staysAs", { number: shown(steps.masked[i][j]) }) : say("becomesHidden")),
    weights: (i, j) => {
      const power = (score) => (inWords ? `e^${shown(score)}` : `exp(${shown(score)})`);
      const each = steps.masked[i].map(power);
      const sum = each.length > 6 ? `${each[0]} + … + ${each.at(-1)}` : each.join(" + ");
      const weight = steps.weights[i][j];
      if (settings.normalize !== "softmax") return shown(weight);
      const powers = steps.masked[i].map((score) => (Number.isFinite(score) ? Math.exp(held(score)) : 0));
      const share = powers[j] / powers.reduce((total, one) => total + one, 0);
      return `${each[j]} / (${sum}) ${equals(share, weight)}`;
    },
    outputs: (i, j) => `${shown(steps.weights[i][j])} × ${ofValue(j)}`,
  };
  const list = (numbers) => `[${numbers.map(shown).join(", ")}]`;
  // Where the numbers of values have names, those that are not 0 are called by them.
  const named = (numbers) =>
    numbers.flatMap((number, k) => (number ? [`${names[k]} ${shown(number)}`] : [])).join(", ");
  const ofValue = (j) => {
    const value = matrices.values[j];
    if (!names.length) return list(value);
    const entries = value.filter(Boolean);
    return entries.length === 1 && entries[0] === 1 ? names[value.indexOf(1)] : `(${named(value)})`;
  };
  // Of one query: what a number of its mix is the sum of.
  const ofQuality = (k) => {
    const [[weights], parts] = [steps.weights, matrices.values.map((value) => value[k])];
    return `${names[k] ?? k + 1}: ${products(weights, parts)} ${equals(sumOf(weights, parts), steps.outputs[0][k])}`;
  };
  const ofRow = (stage, i) => {
    if (stage !== "outputs") return columns.map((column, j) => `${column} ${shown(steps[stage][i][j])}`).join(", ");
    if (names.length) return named(steps.outputs[i]);
    const parts = columns.flatMap((_, j) =>
      steps.weights[i][j] ? [`${shown(steps.weights[i][j])}·${list(matrices.values[j])}`] : [],
    );
    return `${parts.join(" + ") || 0} = ${list(steps.outputs[i])}`;
  };
  // What has been computed of a pair up to this stage; of one query, all steps.
  const ofPair = (stage, i, j) =>
    (rows.length === 1 ? stages.slice(0, stages.indexOf(stage) + 1) : [stage])
      .map((one) => sayings[one](i, j)).join("\n");
  const tell = ({ stage, i, j }, isWhole) => {
    if (i === null) return telling(say(isOne ? "pointAtBar" : "pointAt"), false);
    const row = `${rows[i]}: ${ofRow(stage, i)}`;
    if (j === null) return telling(row);
    const cell = `${rows[i]} · ${columns[j]}: ${ofPair(stage, i, j)}`;
    telling(stage === "outputs" && isWhole ? `${cell}\n${row}` : cell);
  };

  // --- what is drawn ---

  // A bar is as long as its number is large; any other box as strong.
  // A narrow cell has room for two decimals, whatever the number.
  const cellText = (number) =>
    grid.dataset.cells && Number.isFinite(number) ? shown(Math.round(number * 100) / 100 || 0) : shown(number);
  const measure = (box, share, least = 0) => {
    const { wide } = box.dataset;
    if (wide) box.setAttribute("width", share * wide);
    else box.setAttribute("fill-opacity", least + (1 - least) * share);
  };

  const paintCell = (cell, stage, isReached) => {
    const [i, j] = cell.dataset.at.split(" ").map(Number);
    const array = steps[stage];
    const number = array[i][j];
    const most = stage === "weights" ? 1 : Math.max(...array.flat().filter(Number.isFinite).map(Math.abs)) || 1;
    const [box, text] = cell.children;
    measure(box, isReached && Number.isFinite(number) ? Math.min(Math.abs(number) / most, 1) : 0);
    box.classList.toggle("minus", number < 0);
    text.classList.toggle("veiled", !isReached);
    if (text.textContent || isReached) text.textContent = text.dataset.small ? "" : cellText(number);
    cell.dataset.value = number;
    const hides = hasWeights && !steps.visible[i][j] && ["masked", "weights"].includes(stage);
    cell.classList.toggle("hides", hides && isReached);
  };

  const mark = ({ i, j }) => {
    for (const [at, cell] of cells) {
      const [row, column] = at.split(" ").map(Number);
      cell.classList.toggle("lit", row === i || column === j);
      cell.classList.toggle("chosen", row === i && column === j);
    }
    for (const label of figure.querySelectorAll("[data-row]")) label.classList.toggle("lit", Number(label.dataset.row) === i);
    for (const label of figure.querySelectorAll("[data-column]")) label.classList.toggle("lit", Number(label.dataset.column) === j);
  };

  const paintFlows = ({ stage, i, j }, isWhole) => {
    const isFlowing = stage === "outputs" || stage === "weights";
    figure.querySelector(".late").classList.toggle("unreached", stage !== "outputs");
    for (const path of paths) {
      const [row, column] = path.dataset.at.split(" ").map(Number);
      const weight = steps.weights[row][column];
      const isMeant = i === null || row === i;
      path.setAttribute("stroke-width", 0.6 + 16 * Math.min(Math.max(weight, 0), 1));
      path.setAttribute("stroke-opacity", weight > 0 ? 0.08 + 0.72 * Math.min(weight, 1) : 0);
      path.dataset.value = weight;
      path.classList.toggle("unreached", !isFlowing);
      path.classList.toggle("faint", !isMeant);
      path.classList.toggle("chosen", row === i && column === j);
      path.classList.toggle("moving", stage === "outputs" && isMeant && weight > 0.02);
    }
    for (const end of figure.querySelectorAll("[data-end]")) {
      const [role, place] = end.dataset.end.split(" ");
      const vectors = role === "output" ? steps.outputs : matrices.values;
      const vector = vectors[Number(place)];
      const most = Math.max(...vectors.flat().map(Math.abs)) || 1;
      [...end.querySelectorAll("rect")].forEach((box, k) => {
        measure(box, Math.min(Math.abs(vector[k]) / most, 1), 0.06);
        box.classList.toggle("minus", vector[k] < 0);
      });
      end.dataset.value = JSON.stringify(vector);
      // An output is there once it is mixed.
      const isMixed = stage === "outputs" && (isWhole || Number(place) <= i);
      end.classList.toggle("unreached", role === "output" && !isMixed);
    }
  };

  const draw = (moment, place) => {
    // A stage fills cell by cell; the one before it is seen where it has not come.
    const shown = moment.stage === "outputs" ? "weights" : moment.stage;
    grid.dataset.stage = shown;
    for (const cell of cells.values()) {
      const [i, j] = cell.dataset.at.split(" ").map(Number);
      const own = moments.findIndex(
        (one) => one.stage === moment.stage && one.i === i && (one.j === null || one.j === j),
      );
      paintCell(cell, shown, place === undefined || moment.stage === "outputs" || own <= place);
    }
    mark(moment);
    if (isOne) mix.paint(steps, matrices, moment, place === undefined);
    else if (hasWeights) paintFlows(moment, place === undefined);
    for (const button of figure.querySelectorAll("[data-does='stage']")) {
      button.ariaPressed = String(button.dataset.stage === moment.stage);
    }
    tell(moment, place === undefined);
  };

  // --- what is done ---

  // The pair that was chosen last, if any; the pointer looks at others without choosing them.
  let chosen = { i: null, j: null };
  const choose = ({ i, j }) => {
    chosen = { i, j };
    if (controls.row) controls.row.value = i ?? 0;
    if (controls.column) controls.column.value = j ?? 0;
  };
  const showMoment = (place) => {
    choose(moments[place]);
    draw(moments[place], place);
  };
  const player = startPlayer(figure, { moments: () => moments.length, show: showMoment, pause: () => 900 });
  const look = (at = chosen) => draw({ stage: moments[player.at()].stage, ...at });
  // A stage as a whole, with what was chosen before: a step further is the next stage.
  const turnTo = (stage) => {
    const kept = chosen;
    player.go(lastOf(stage));
    choose(kept);
    look();
  };

  const controls = startControls(figure, (name, value) => {
    player.stop();
    if (name === "row" || name === "column") {
      choose({ i: Number(controls.row?.value ?? 0), j: Number(controls.column?.value ?? 0) });
      return look();
    }
    settings[name] = value;
    compute();
    if (name === "mask") turnTo("weights");
    else look();
  });
  for (const button of figure.querySelectorAll("[data-does='stage']")) {
    button.addEventListener("click", () => turnTo(button.dataset.stage));
  }
  for (const shape of [...cells.values(), ...paths]) {
    const [i, j] = shape.dataset.at.split(" ").map(Number);
    shape.addEventListener("pointerenter", () => {
      // What takes several lines to say would move the cell from under the pointer.
      if (isBrief && !figure.classList.contains("plays")) look({ i, j });
    });
    shape.addEventListener("click", () => {
      player.stop();
      choose({ i, j });
      look();
    });
  }
  for (const row of figure.querySelectorAll(".mixed")) {
    row.addEventListener("click", () => {
      player.stop();
      telling(ofQuality(Number(row.dataset.quality)));
    });
  }
  for (const svg of figure.querySelectorAll("svg")) {
    svg.addEventListener("pointerleave", () => {
      if (!figure.classList.contains("plays")) look();
    });
  }
  for (const { lastChild } of cells.values()) if (!lastChild.textContent) lastChild.dataset.small = "yes";
  compute();
  // It opens at its first stage as a whole, and Play begins there, too.
  player.open();
  choose({ i: null, j: null });
  look();

  // On paper a drawing is at its end, where all of it is to be seen.
  addEventListener("beforeprint", () => turnTo(stages.at(-1)));

  // --- one query: bars use the width that there is ---

  if (isOne) startStretching(figure, look);

  // --- numbers that are changed elsewhere: a workbench's that belongs to this drawing ---

  document.addEventListener("matrices", ({ detail }) => {
    if (detail.place !== figure.dataset.place) return;
    player.stop();
    for (const name of ["queries", "keys", "values"]) if (detail[name]) matrices[name] = detail[name];
    compute();
    turnTo(stages.at(-1));
  });
};
