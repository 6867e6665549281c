// Slides: one is shown; arrow keys, Page Up and Page Down, Space, Home and End turn, and the address
// says which it is.

(() => {
  const slides = [...document.querySelectorAll(".slide")];
  const turns = Object.fromEntries(
    [...document.querySelectorAll("[data-turn]")].map((button) => [button.dataset.turn, button]),
  );
  const told = document.querySelector("footer output");
  let place = 0;

  // What does not fit into the window folds, and what still does not is made smaller.
  const LEAST = 0.6;
  const fit = () => {
    const body = slides[place].querySelector(".body");
    if (!body) return;
    const isTooHigh = () => document.documentElement.scrollHeight > innerHeight;
    body.style.zoom = 1;
    if (isTooHigh()) for (const part of body.querySelectorAll(".follows")) part.open = false;
    for (let zoom = 0.95; isTooHigh() && zoom >= LEAST; zoom -= 0.05) body.style.zoom = zoom;
  };

  const show = (wanted) => {
    place = Math.min(Math.max(wanted, 0), slides.length - 1);
    slides.forEach((slide, n) => (slide.hidden = n !== place));
    scrollTo(0, 0);
    fit();
    told.textContent = `${place + 1} / ${slides.length}`;
    turns.before.disabled = place === 0;
    turns.after.disabled = place === slides.length - 1;
  };
  const turnTo = (wanted) => {
    show(wanted);
    history.replaceState(null, "", `#${place + 1}`);
  };
  const byAddress = () => show((Number.parseInt(location.hash.slice(1), 10) || 1) - 1);

  const KEYS = {
    ArrowRight: () => place + 1,
    PageDown: () => place + 1,
    " ": () => place + 1,
    ArrowLeft: () => place - 1,
    PageUp: () => place - 1,
    Home: () => 0,
    End: () => slides.length - 1,
  };
  // What takes keys itself keeps them: fields, cells, and buttons, of which Space presses one.
  const keeps = (target, key) =>
    target.closest("input, select, textarea, .handle, [role=grid]") ||
    (key === " " && target.closest("button, summary, a"));
  document.addEventListener("keydown", (event) => {
    const to = KEYS[event.key];
    if (!to || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
    if (keeps(event.target, event.key)) return;
    event.preventDefault();
    turnTo(to());
  });
  turns.before.addEventListener("click", () => turnTo(place - 1));
  turns.after.addEventListener("click", () => turnTo(place + 1));
  addEventListener("hashchange", byAddress);
  addEventListener("resize", fit);
  document.querySelector("footer").hidden = false;
  byAddress();
})();
