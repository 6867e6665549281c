// Of the page alone: what was answered and read is kept in this browser, and numbers can be covered
// until they are predicted.

(() => {
  const KEPT = `qkvsearch-course:${location.pathname}`;
  const words = JSON.parse(document.getElementById("words").textContent);
  const say = (name, live = {}) => words[name].replace(/\{(\w+)\}/g, (_, key) => live[key]);
  const known = { answers: {}, last: null, predicts: false };
  try {
    Object.assign(known, JSON.parse(localStorage.getItem(KEPT)));
  } catch {
    // None yet, damaged, or not allowed.
  }
  const keep = () => {
    try {
      localStorage.setItem(KEPT, JSON.stringify(known));
    } catch {
      // Then it lasts as long as the page is open.
    }
  };

  // --- answers ---

  for (const quiz of document.querySelectorAll("[data-quiz]")) {
    const given = known.answers?.[quiz.dataset.quiz];
    if (typeof given === "string") {
      for (const field of quiz.querySelectorAll("input")) {
        if (field.type === "radio") field.checked = field.value === given;
        else field.value = given;
      }
      quiz.dispatchEvent(new Event("submit", { cancelable: true }));
    }
    quiz.addEventListener("submit", () => {
      known.answers[quiz.dataset.quiz] = String([...new FormData(quiz).values()][0] ?? "");
      keep();
    });
  }

  // --- what was explained ---

  for (const field of document.querySelectorAll("[data-explains]")) {
    const before = known.sentences?.[field.dataset.explains];
    if (typeof before === "string") field.value = before;
    field.addEventListener("input", () => {
      known.sentences = { ...known.sentences, [field.dataset.explains]: field.value };
      keep();
    });
  }

  // --- where the reader is ---

  const before = document.getElementById(known.last ?? "");
  if (before?.matches(".step")) {
    const link = document.createElement("a");
    link.href = `#${before.id}`;
    link.className = "resume";
    link.textContent = say("resume", { title: before.querySelector("h3").textContent });
    document.querySelector("header").append(link);
  }
  const reached = new IntersectionObserver(
    (found) => {
      const here = found.filter((entry) => entry.isIntersecting).at(-1);
      if (here) known.last = here.target.id;
      if (here) keep();
    },
    { rootMargin: "-20% 0px -60% 0px" },
  );
  for (const step of document.querySelectorAll(".step")) reached.observe(step);

  // --- predict before you look ---

  const computed = [
    ...document.querySelectorAll(
      ".step > .matrices > :is([data-role=score], [data-role=weights], [data-role=output])",
    ),
  ];
  const uncover = (matrix) => {
    matrix.classList.remove("covered");
    matrix.querySelector(":scope > button")?.remove();
  };
  const cover = (matrix) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = say("reveal", { name: matrix.querySelector(".name").textContent });
    button.addEventListener("click", () => uncover(matrix));
    matrix.classList.add("covered");
    matrix.prepend(button);
  };
  const toggle = document.createElement("button");
  toggle.type = "button";
  toggle.className = "predict";
  toggle.textContent = say("predict");
  const show = () => {
    toggle.setAttribute("aria-pressed", String(known.predicts));
    computed.forEach(uncover);
    if (known.predicts) computed.forEach(cover);
  };
  toggle.addEventListener("click", () => {
    known.predicts = !known.predicts;
    show();
    keep();
  });
  if (computed.length) document.querySelector("header").append(toggle);
  show();
})();
