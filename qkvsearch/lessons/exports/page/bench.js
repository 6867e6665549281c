// A workbench: its given cells become inputs, and every step is computed again at each change.

const startBench = (bench, say) => {
  const settings = JSON.parse(bench.dataset.settings);
  const given = [...bench.querySelectorAll("table[data-given]")];
  const computed = [...bench.querySelectorAll("table[data-step]")];
  const controls = [...bench.querySelectorAll("[data-control]")];
  const status = bench.querySelector(".status");
  const cellsOf = (table) => [...table.tBodies[0].rows].map((row) => [...row.querySelectorAll("td")]);
  const nameOf = (table) => table.caption.querySelector(".name").textContent;

  const state = { ...settings };
  const read = (table) => cellsOf(table).map((row) => row.map((cell) => numbers.held(cell.dataset.value)));
  const matrices = Object.fromEntries(given.map((table) => [table.dataset.given, read(table)]));
  const first = structuredClone(matrices);

  // --- what is computed ---

  const paint = (cell, number, isVisible, hasShades) => {
    const text = numbers.shown(number);
    const value = cell.querySelector(".value");
    cell.toggleAttribute("data-changed", value.textContent !== text);
    value.textContent = text;
    cell.dataset.value = number;
    if (hasShades) cell.dataset.heat = numbers.heat(number);
    cell.classList.toggle("hides", !isVisible);
    cell.querySelector(".unseen")?.remove();
    if (!isVisible) {
      const unseen = document.createElement("span");
      unseen.className = "unseen";
      unseen.textContent = say("hidden");
      cell.append(" ", unseen);
    }
  };

  let waiting;
  const compute = () => {
    const chosen = attention.steps(matrices, state);
    for (const table of computed) {
      const { mask } = table.dataset; // its own, where masks are compared
      const steps = mask ? attention.steps(matrices, { ...state, mask }) : chosen;
      const step = table.dataset.step;
      const hides = step === "masked" || step === "weights";
      cellsOf(table).forEach((row, i) =>
        row.forEach((cell, j) =>
          paint(cell, steps[step][i][j], !hides || steps.visible[i][j], step === "weights"),
        ),
      );
    }
    // One sentence, once the reader pauses.
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const last = computed.at(-1);
      // Columns that are only numbered have no names to say.
      const called = [...last.tHead.rows[0].cells].slice(1).map(({ textContent: name }) => (/^\d+$/.test(name) ? "" : `${name} `));
      const row = cellsOf(last)[0].map((cell, k) => `${called[k]}${numbers.shown(numbers.held(cell.dataset.value))}`);
      status.textContent = say("recomputed", { step: nameOf(last), row: row.join(", ") });
    }, 600);
  };

  // --- what is typed ---

  const inputs = startEntries(say, compute, bench.getAttribute("aria-labelledby"));

  const inputFor = (table, cell, i, j) => {
    const array = matrices[table.dataset.given];
    const input = document.createElement("input");
    Object.assign(input, { type: "text", inputMode: "decimal", autocomplete: "off" });
    const column = table.tHead.rows[0].cells[j + 1].textContent;
    const row = cell.parentElement.cells[0].textContent;
    input.setAttribute("aria-label", say("cell", { matrix: nameOf(table), row, column }));
    input.tabIndex = i || j ? -1 : 0;
    cell.replaceChildren(input);
    const hold = {
      get: () => array[i][j],
      set: (number) => {
        array[i][j] = number;
        cell.dataset.value = number;
      },
    };
    return { show: inputs(input, hold, false), hold, original: first[table.dataset.given][i][j] };
  };

  // --- moving between cells: one of a matrix is in the order of Tab, arrows reach the others ---

  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const leaves = (input, sideways) => {
    const { selectionStart: start, selectionEnd: end, value } = input;
    if (start === 0 && end === value.length) return true;
    return start === end && (sideways < 0 ? start === 0 : end === value.length);
  };
  const move = (table, event) => {
    const step = STEPS[event.key];
    if (!step || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    if (step[1] && !leaves(event.target, step[1])) return;
    const cells = cellsOf(table);
    const i = cells.findIndex((row) => row.includes(event.target.closest("td")));
    const j = cells[i].indexOf(event.target.closest("td"));
    event.preventDefault();
    cells[i + step[0]]?.[j + step[1]]?.querySelector("input")?.focus();
  };

  // --- beginning ---

  const edits = given.flatMap((table) => {
    table.setAttribute("role", "grid");
    table.addEventListener("keydown", (event) => move(table, event));
    table.addEventListener("focusin", (event) => {
      for (const input of table.querySelectorAll("input")) input.tabIndex = -1;
      event.target.tabIndex = 0;
      event.target.select();
    });
    return cellsOf(table).flatMap((row, i) => row.map((cell, j) => inputFor(table, cell, i, j)));
  });

  const shows = controls.map((control) => {
    const name = control.dataset.control;
    if (control.tagName === "INPUT") {
      return inputs(control, { get: () => state[name], set: (number) => (state[name] = number) }, true);
    }
    control.addEventListener("change", () => {
      state[name] = control.value;
      compute();
    });
    return () => (control.value = state[name]);
  });

  bench.querySelector(".reset").addEventListener("click", () => {
    Object.assign(state, settings);
    for (const edit of edits) {
      edit.hold.set(edit.original);
      edit.show();
    }
    for (const show of shows) show();
    compute();
  });
  for (const show of [...edits.map((edit) => edit.show), ...shows]) show();
  for (const hidden of bench.querySelectorAll(".controls, .hint")) hidden.hidden = false;
};
