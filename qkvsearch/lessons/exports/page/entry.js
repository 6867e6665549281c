// Fields for numbers. What is typed counts at once if it is a number that fits; else the last one
// still does, and the reader hears of it on leaving the field.

// changed() hears of each number that counts. place: a part of ids, unique in the page. Returns what
// makes a number of an input, and shows it again.
const startEntries = (say, changed, place) => {
  let problems = 0;
  const complain = (input, message) => {
    const beside = input.closest(".matrix, .field, .picture");
    let problem = beside.querySelector(".problem");
    if (message && !problem) {
      problem = document.createElement("p");
      problem.className = "problem";
      problem.id = `${place}-problem-${(problems += 1)}`;
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

  // hold: what gets and sets the number. isPositive: whether it has to be above 0.
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
      changed();
    };
    const takeBack = () => {
      const isChanged = hold.get() !== before;
      hold.set(before);
      show();
      if (isChanged) changed();
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
      changed();
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

  return editable;
};
