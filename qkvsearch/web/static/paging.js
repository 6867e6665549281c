// A lesson one step at a time: each page is a step, and the last one is what ends the lesson.
import { el } from "./dom.js";

/** steps: the sections that are pages. endings: what is one page together, after them. forth, back:
 * the names of the buttons; left(step) hears of a step that the reader goes on from. */
export function startPaging(steps, endings, { forth, back, left }) {
  const pages = [...steps.map((step) => [step]), endings];
  const previous = el("button", { type: "button", class: "back-step" }, back);
  const next = el("button", { type: "button", class: "forth" }, forth);
  const place = el("span", { class: "place" });
  endings.at(-1).after(el("div", { class: "paging" }, previous, place, next));
  let here = 0;

  const show = (wanted) => {
    here = wanted;
    pages.forEach((page, n) => page.forEach((part) => (part.hidden = n !== here)));
    previous.hidden = here === 0;
    next.hidden = here === pages.length - 1;
    const article = previous.closest("article");
    article.dataset.page = here + 1;
    article.toggleAttribute("data-last", here === pages.length - 1);
    // Steps are counted as the lesson counts them: what ends it is none.
    place.textContent = here < steps.length ? `${here + 1} / ${steps.length}` : "";
    // The list of steps shows where the reader is.
    const shown = pages[here].flatMap((part) => [part, ...part.querySelectorAll("[id]")]);
    const addresses = new Set(shown.filter((part) => part.id).map((part) => `#${part.id}`));
    for (const link of document.querySelectorAll("#contents a[href*='#']")) {
      if (addresses.has(link.hash)) link.setAttribute("aria-current", "step");
      else link.removeAttribute("aria-current");
    }
  };
  const headingOf = (page) => page[0].querySelector("h3");
  /** Show a page and begin at its top, for those who see it and those who hear it. */
  const turnTo = (wanted) => {
    if (wanted > here && steps[here]) left(steps[here]);
    show(wanted);
    const heading = headingOf(pages[wanted]);
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    heading.scrollIntoView({ block: "start" });
    history.pushState(null, "", `#${pages[wanted][0].id || heading.id}`);
  };
  next.addEventListener("click", () => turnTo(here + 1));
  previous.addEventListener("click", () => turnTo(here - 1));

  /** What the address names is shown, on whatever page it is. */
  const follow = () => {
    // Ids are ASCII, so that nothing in the address has to be decoded, which fails for "#%".
    const named = document.getElementById(location.hash.slice(1));
    const wanted = named ? pages.findIndex((page) => page.some((part) => part.contains(named))) : 0;
    show(Math.max(wanted, 0));
    if (wanted >= 0 && named) named.scrollIntoView({ block: "start" });
  };
  window.addEventListener("hashchange", follow);
  window.addEventListener("popstate", follow);
  follow();
}
