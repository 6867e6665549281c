// What makes the page answer: workbenches, drawings, quizzes, where the reader is, and what scrolls.

(() => {
  const words = JSON.parse(document.getElementById("words").textContent);
  const say = (name, live = {}) => words[name].replace(/\{(\w+)\}/g, (_, key) => live[key]);
  document.documentElement.classList.add("live");

  for (const bench of document.querySelectorAll("[data-bench]")) startBench(bench, say);

  for (const part of document.querySelectorAll("[data-switch]")) startSwitch(part);

  for (const drawing of document.querySelectorAll("[data-drawing]")) {
    drawings[drawing.dataset.drawing](drawing, say);
  }

  for (const quiz of document.querySelectorAll("[data-quiz]")) {
    const verdict = quiz.querySelector(".verdict");
    const worked = quiz.querySelector(".worked");
    quiz.querySelector(".check").hidden = false;
    worked.hidden = true;
    quiz.addEventListener("submit", (event) => {
      event.preventDefault();
      const given = [...new FormData(quiz).values()][0] ?? "";
      const { kind, answer, tolerance, wrong } = quiz.dataset;
      const asked = { kind, answer: JSON.parse(answer), tolerance: Number(tolerance) };
      if (!numbers.isAnswer(given, asked)) {
        delete quiz.dataset.verdict;
        verdict.textContent = say(kind === "words" ? "noWords" : "noNumber", { n: [asked.answer].flat().length });
        return;
      }
      const isRight = numbers.isRight(given, asked, say("none"));
      const isSecond = quiz.dataset.tried === "yes";
      quiz.dataset.tried = isRight ? "" : "yes";
      quiz.dataset.verdict = isRight ? "right" : "wrong";
      const isGiven = ([answer]) => numbers.isRight(given, { ...asked, answer }, say("none"));
      const shows = JSON.parse(wrong).find(isGiven)?.[1];
      const hint = shows ?? say(quiz.querySelector("fieldset") ? "another" : numbers.hint(given, asked));
      verdict.textContent = isRight ? say("right") : isSecond ? say("wrong") : say("again", { hint });
      worked.hidden = false;
      worked.open = !isRight && isSecond;
    });
  }

  // The lesson that is being read unfolds in the contents.
  const entries = new Map(
    [...document.querySelectorAll("#contents > ol > li")].map((item) => [
      item.querySelector("a").hash.slice(1),
      item,
    ]),
  );
  const reached = new IntersectionObserver(
    (found) => {
      const here = found.filter((entry) => entry.isIntersecting).at(-1);
      if (!here) return;
      for (const [name, item] of entries) {
        const isHere = name === here.target.id;
        item.classList.toggle("here", isHere);
        item.querySelector("a").ariaCurrent = isHere ? "true" : null;
      }
    },
    { rootMargin: "-20% 0px -75% 0px" },
  );
  for (const lesson of document.querySelectorAll("article")) reached.observe(lesson);

  // What is wider than its place can be reached, and scrolled, by keyboard.
  const measured = new ResizeObserver((found) => {
    for (const { target } of found) {
      if (target.scrollWidth <= target.clientWidth) {
        for (const name of ["tabindex", "role", "aria-label"]) target.removeAttribute(name);
        continue;
      }
      const name = target.querySelector(".name").textContent;
      target.tabIndex = 0;
      target.setAttribute("role", "group");
      target.setAttribute("aria-label", say("scrolls", { name }));
    }
  });
  for (const scroll of document.querySelectorAll(".scroll")) measured.observe(scroll);
})();
