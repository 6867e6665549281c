// A workbench: its given cells become inputs, and every step is computed again at each change.

const startBench = (bench, say) => {
  const settings = JSON.parse(bench.dataset.settings);
  // The one cell that may be changed, or undefined.
  const { open } = bench.dataset;
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

  // The drawing that shows the same numbers, if there is one, hears of each change.
  const { moves } = bench.dataset;
  const tellDrawing = () => {
    const detail = { place: moves, ...structuredClone(matrices) };
    document.dispatchEvent(new CustomEvent("matrices", { detail }));
  };

  let waiting;
  const compute = () => {
    if (moves) tellDrawing();
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

  let problems = 0;
  const complain = (input, message) => {
    const beside = input.closest(".matrix, .field");
    let problem = beside.querySelector(".problem");
    if (message && !problem) {
      problem = document.createElement("p");
      problem.className = "problem";
      problem.id = `${bench.getAttribute("aria-labelledby")}-problem-${(problems += 1)}`;
      problem.setAttribute("role", "alert");
      beside.append(problem);
    }
    if (message) {
      problem.textContent = message;
      input.setAttribute("aria-invalid", "true");
      input.setAttribute("aria-describedby", problem.id);
    } else if (input.hasAttribute("aria-invalid")) {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
      if (!beside.querySelector("[aria-invalid]")) problem?.remove();
    }
  };

  // What is typed counts at once if it is a number that fits; else the last one still does, and the
  // reader hears of it on leaving the field.
  const editable = (input, hold, isPositive) => {
    let before = hold.get();
    const show = () => {
      input.value = numbers.shown(hold.get());
      before = hold.get();
      complain(input, "");
    };
    const follow = () => {
      const number = numbers.one(input.value);
      if (Number.isNaN(number) || (isPositive && number <= 0)) return;
      complain(input, "");
      hold.set(number);
      compute();
    };
    const takeBack = () => {
      const isChanged = hold.get() !== before;
      hold.set(before);
      show();
      if (isChanged) compute();
    };
    const apply = () => {
      const last = numbers.shown(hold.get());
      if (input.value.trim() === last) return show();
      const number = numbers.one(input.value);
      if (Number.isNaN(number) || (isPositive && number <= 0)) {
        const why = isPositive ? "notPositive" : "notNumber";
        return complain(input, say(why, { entry: input.value.trim(), last }));
      }
      hold.set(number);
      show();
      compute();
    };
    input.addEventListener("input", follow);
    input.addEventListener("change", apply);
    input.addEventListener("keydown", (event) => {
      if (event.isComposing || event.keyCode === 229) return; // an input method takes the key
      if (event.key === "Enter") apply();
      if (event.key === "Escape") takeBack();
    });
    return show;
  };

  const inputFor = (table, cell, i, j) => {
    const array = matrices[table.dataset.given];
    const input = document.createElement("input");
    Object.assign(input, { type: "text", inputMode: "decimal", autocomplete: "off" });
    const column = table.tHead.rows[0].cells[j + 1].textContent;
    const row = cell.parentElement.cells[0].textContent;
    input.setAttribute("aria-label", say("cell", { matrix: nameOf(table), row, column }));
    input.tabIndex = !open && (i || j) ? -1 : 0;
    cell.replaceChildren(input);
    const hold = {
      get: () => array[i][j],
      set: (number) => {
        array[i][j] = number;
        cell.dataset.value = number;
      },
    };
    return { show: editable(input, hold, false), hold, original: first[table.dataset.given][i][j] };
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
    const isOpen = (i, j) => !open || open === `${table.dataset.given} ${i} ${j}`;
    return cellsOf(table).flatMap((row, i) =>
      row.flatMap((cell, j) => (isOpen(i, j) ? [inputFor(table, cell, i, j)] : [])),
    );
  });

  const shows = controls.map((control) => {
    const name = control.dataset.control;
    if (control.tagName === "INPUT") {
      return editable(control, { get: () => state[name], set: (number) => (state[name] = number) }, true);
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
