// What the tests of every control do and look at within a page: a function of the name of one of them.
(name) => {
  // Operates all controls that can be seen, also those that appear meanwhile, and returns how many.
  const operate = async () => {
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
      field.form?.dataset.quiz,
      JSON.stringify(field.dataset), field.type === "button" ? field.textContent : "",
    ].join("|");
    const acts = {
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
        // What is open above the page keeps the rest of it from being used.
        document.querySelector("dialog[open]")?.close();
      },
      "summary, button": async (field) => {
        // A browser draws, and focuses, what is near the window alone.
        field.scrollIntoView({ block: "center" });
        await pause(5);
        field.click();
        // What is open above the page keeps the rest of it from being used.
        document.querySelector("dialog[open]")?.close();
      },
    };
    for (const [selector, act] of Object.entries(acts)) {
      for (let field; (field = found(selector)) && done.size < 250; ) {
        done.add(nameOf(field));
        await act(field);
        await pause(20);
      }
    }
    return done.size;
  };

  // The cells of tables that are not a table's cells, or that do not stand below their headings.
  const astray = () => {
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
  };

  // Pairs of controls of which one covers a part of the other.
  const overlapping = () => {
    const fields = [...document.querySelectorAll("#main :is(button, input, select, textarea, summary, a)")]
      .filter((field) => field.checkVisibility() && !field.closest("svg, .drawing, .hidden-visually, dialog"))
      .filter((field) => !["fixed", "absolute", "sticky"].includes(getComputedStyle(field).position))
      // What a list that scrolls hides has a place, too.
      .filter((field) => {
        for (let over = field.parentElement; over; over = over.parentElement) {
          if (over.scrollHeight > over.clientHeight + 1 && getComputedStyle(over).overflowY !== "visible") return false;
        }
        return true;
      });
    const pieces = fields.flatMap((field) => [...field.getClientRects()].map((box) => ({ field, box })));
    const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
    const found = [];
    pieces.forEach((one, i) => pieces.slice(i + 1).forEach((other) => {
      if (one.field.contains(other.field) || other.field.contains(one.field)) return;
      if (over(one.box, other.box)) found.push(`${one.field.outerHTML.slice(0, 80)} / ${other.field.outerHTML.slice(0, 80)}`);
    }));
    return found;
  };

  return { operate, astray, overlapping }[name]();
}
