"""Every page and lesson with every control operated: no script throws, no request fails, and what is
in a table stands below its heading.
"""

import pytest

from qkvsearch.lessons import LESSONS
from tests.web.browser.test_every_page import PAGES, in_chinese

# The documentation of the API is a library's page.
OURS = {path: filled for path, filled in PAGES.items() if path not in ("/docs", "/learn/softmax")}
LESSON_PAGES = {f"/learn/{name}": "#main h2" for name in LESSONS}
EVERY = {**OURS, **LESSON_PAGES}
WIDTHS = (390, 1280)

# Operates all controls that can be seen, also those that appear meanwhile, and returns how many.
OPERATE = """async () => {
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const told = (field) => {
    for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
  };
  const visible = (field) => field.checkVisibility() && !field.disabled && !field.closest("dialog");
  const done = new Set();
  const found = (selector) =>
    [...document.querySelectorAll(selector)].find((field) => visible(field) && !done.has(nameOf(field)));
  // A list that is drawn anew has other elements of the same names.
  const nameOf = (field) => [
    field.tagName, field.id, field.name, field.className, field.closest("[data-place],[data-bench],[id]")?.id,
    field.closest("[data-place]")?.dataset.place, field.closest("[data-bench]")?.dataset.bench,
    JSON.stringify(field.dataset), field.type === "button" ? field.textContent : "",
  ].join("|");
  const operate = {
    select: async (field) => {
      const values = [...field.options].map((option) => option.value);
      for (const value of [...values.slice(0, 8), values.at(-1), values[0]]) {
        field.value = value;
        told(field);
        await pause(5);
      }
    },
    "input[type=range]": async (field) => {
      for (const value of [field.min, field.max, (Number(field.min) + Number(field.max)) / 2]) {
        field.value = value;
        told(field);
        await pause(5);
      }
    },
    "input[type=checkbox]": async (field) => {
      field.click();
      await pause(50);
      field.click();
    },
    "summary, button": async (field) => field.click(),
  };
  for (const [selector, act] of Object.entries(operate)) {
    for (let field; (field = found(selector)) && done.size < 250; ) {
      done.add(nameOf(field));
      await act(field);
      await pause(20);
    }
  }
  return done.size;
}"""
# The cells of tables that are not a table's cells, or that do not stand below their headings.
ASTRAY = """() => {
  const astray = [];
  for (const table of document.querySelectorAll("table")) {
    if (!table.checkVisibility()) continue;
    const headings = [];
    for (const heading of table.tHead?.rows[0]?.cells ?? []) {
      const { left, right } = heading.getBoundingClientRect();
      headings.push({ left, right, span: heading.colSpan });
    }
    for (const row of table.tBodies[0]?.rows ?? []) {
      let place = 0;
      for (const cell of row.cells) {
        const style = getComputedStyle(cell).display;
        if (style === "none") continue;
        const named = `${table.className} ${cell.className}: ${cell.textContent.slice(0, 30)}`;
        if (style !== "table-cell") astray.push(`${named} is ${style}`);
        const heading = headings[place];
        const { left, right } = cell.getBoundingClientRect();
        const isSingle = cell.colSpan === 1 && heading?.span === 1;
        if (isSingle && (Math.abs(left - heading.left) > 1 || Math.abs(right - heading.right) > 1)) {
          astray.push(`${named} from ${left} to ${right}, below ${heading.left} to ${heading.right}`);
        }
        place += cell.colSpan;
      }
    }
  }
  return astray;
}"""
# Pairs of controls of which one covers a part of the other.
OVERLAPPING = """() => {
  const fields = [...document.querySelectorAll("#main :is(button, input, select, textarea, summary, a)")]
    .filter((field) => field.checkVisibility() && !field.closest("svg, .drawing, .hidden-visually, dialog"))
    .filter((field) => !["fixed", "absolute", "sticky"].includes(getComputedStyle(field).position));
  const pieces = fields.flatMap((field) => [...field.getClientRects()].map((box) => ({ field, box })));
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
  const found = [];
  pieces.forEach((one, i) => pieces.slice(i + 1).forEach((other) => {
    if (one.field.contains(other.field) || other.field.contains(one.field)) return;
    if (over(one.box, other.box)) found.push(`${one.field.outerHTML.slice(0, 80)} / ${other.field.outerHTML.slice(0, 80)}`);
  }));
  return found;
}"""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("path", EVERY)
def test_every_control_works_and_what_it_shows_is_in_its_place(path, language, width, site, visit):
    address = in_chinese(path) if language == "zh" else path
    with visit(site, None, viewport={"width": width, "height": 800}) as page:
        failed = []
        page.on("dialog", lambda dialog: dialog.dismiss())
        page.on("response", lambda answer: answer.status >= 400 and failed.append(answer.url))
        page.goto(site.url + address)
        page.wait_for_selector(EVERY[path])
        assert page.evaluate(ASTRAY) == []
        assert page.evaluate(OVERLAPPING) == []
        assert page.evaluate(OPERATE) > 0
        page.wait_for_load_state("networkidle")
        assert page.evaluate(ASTRAY) == []
        assert failed == []
