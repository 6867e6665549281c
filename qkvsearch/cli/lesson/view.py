"""A lesson's parts as text for the terminal, each no wider than it."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.cells import cell_len
from rich.text import Text as Line

from qkvsearch.cli.lesson.drawn import drawing_view
from qkvsearch.cli.lesson.emphasis import MAX_COLUMNS, marked
from qkvsearch.cli.lesson.grids import legends, matrix_view, table_view
from qkvsearch.cli.text_table import rendered
from qkvsearch.cli.wrapping import terminal_width, wrapped
from qkvsearch.lessons import COURSE_LESSONS
from qkvsearch.lessons.drawings import Drawing
from qkvsearch.lessons.exports.document import compared_weights
from qkvsearch.lessons.exports.markdown import goal_and_time
from qkvsearch.lessons.messages import say, shown
from qkvsearch.lessons.parts import Curve, Formula, Lesson, Matrix, Part, ShownTable, Switch, Text
from qkvsearch.lessons.workbench import Workbench
from qkvsearch.terminal import printable

# Lessons that compute with the reader's own matrices.
OWN_MATRICES = ("self-attention", "masks")
# A curve's height in lines, each in eighths.
CURVE_HEIGHT = 6
# The columns of a curve, at most.
CURVE_WIDTH = 48
BLOCKS = " ▁▂▃▄▅▆▇█"
INDENT = 4


def heading(lesson: Lesson) -> str:
    """Return the lesson's number, title and goal."""
    number = say("Lesson {number}: {title}", number=lesson.number, title=lesson.title)
    return title(number, "═") + prose(goal_and_time(lesson))


def step_blocks(
    lesson: Lesson, place: int, explained: set[str]
) -> Iterator[tuple[Part | None, str]]:
    """Yield a step's title and its parts, each with its text.

    place: of the step in the lesson as it is shown. explained: the signs that have been explained
    already; those explained here join them.
    """
    step = lesson.steps[place]
    number = {"number": lesson.first + place, "n": lesson.n_steps, "title": step.title}
    named = say("Step {number} of {n}: {title}", **number)
    yield None, title(named, "─")
    for part in step.parts:
        yield part, _block(part, lesson, explained)


def _block(part: Part, lesson: Lesson, explained: set[str]) -> str:
    if isinstance(part, Matrix):
        return rendered([*matrix_view(part, terminal_width()), *_legends(part, explained)])
    if isinstance(part, Drawing):
        return rendered(drawing_view(part, terminal_width()))
    if isinstance(part, Workbench):
        compared = [_block(matrix, lesson, explained) for matrix in compared_weights(part)]
        return "\n".join([*compared, rendered([_workbench(part, lesson.name)])])
    if isinstance(part, Switch):
        blocks = [rendered([bold(part.caption)])]
        for setting in part.settings:
            named = say("*{setting}*: {note}", setting=setting.name, note=setting.note)
            blocks += [prose(named), _block(setting.matrix, lesson, explained)]
        return "\n".join(blocks)
    return rendered(_view(part))


def title(text: str, line: str) -> str:
    """Return a heading over a line, which distinguishes it where nothing is bold."""
    heading_line = bold(text)
    width = max(map(cell_len, heading_line.plain.split("\n")))
    return rendered([heading_line, Line(line * width, style="dim")])


def paragraph(text: str, indent: int = 0, first: str = "") -> Line:
    """Return a paragraph with *emphasis* and `code`; `first` precedes it, in its indent."""
    return wrapped(
        Line(first).append_text(marked(text)), min(terminal_width(), MAX_COLUMNS), indent
    )


def prose(text: str, indent: int = 0, first: str = "") -> str:
    """Return a `paragraph` as text for the terminal."""
    return rendered([paragraph(text, indent, first)])


def bold(text: str) -> Line:
    """Return a heading."""
    line = paragraph(text)
    line.stylize("bold")
    return line


def _legends(matrix: Matrix, explained: set[str]) -> Iterator[Line]:
    for legend in legends(matrix):
        if legend not in explained:
            line = paragraph(legend)
            line.stylize("dim")
            yield line
    explained.update(legends(matrix))


def _view(part: Text | Formula | ShownTable | Curve) -> list[Line]:
    if isinstance(part, Text):
        return [paragraph(part.text)]
    if isinstance(part, Formula):
        line = Line(" " * INDENT + printable(part.text), style="bold")
        return [wrapped(line, terminal_width(), indent=2 * INDENT)]
    if isinstance(part, ShownTable):
        return [bold(part.caption), *table_view(part, terminal_width())]
    return _curve(part)


def _workbench(bench: Workbench, lesson: str) -> Line:
    command = f"`--format html -o {lesson}.html`"
    how = say("Try it on the page ({command}). {caption}", command=command, caption=bench.caption)
    if lesson in OWN_MATRICES:
        how = say("{how} Here, give `--input FILE` and `--mask`.", how=how)
    return paragraph(how, INDENT)


def _curve(curve: Curve) -> list[Line]:
    """Draw columns of blocks over a line, with the highest and the lowest value."""
    values = np.asarray(curve.values, dtype=float)
    name = Line(printable(curve.name), style="bold")
    if not len(values) or not np.isfinite(values).all():
        return [name, paragraph(shown(values))]
    low = min(float(values.min()), 0.0)
    high = float(values.max())
    labels = [shown(high), *[""] * (CURVE_HEIGHT - 2), shown(low)]
    margin = max(map(cell_len, labels))
    width = max(min(CURVE_WIDTH, terminal_width() - margin - 2), 1)
    places = np.linspace(0, len(values) - 1, width).round().astype(int)
    eighths = np.round((values[places] - low) / ((high - low) or 1.0) * CURVE_HEIGHT * 8)
    lines = []
    for k, label in enumerate(labels):
        filled = np.clip(eighths - (CURVE_HEIGHT - 1 - k) * 8, 0, 8).astype(int)
        space = " " * (margin - cell_len(label))
        lines.append(Line(f"{space}{label} │{''.join(BLOCKS[n] for n in filled)}"))
    ends = say(
        "{name}: {first} at the start, {last} at the end, {n} values over {x}.",
        name=curve.name,
        first=values[0],
        last=values[-1],
        n=len(values),
        x=curve.x,
    )
    return [*lines, paragraph(ends)]


# --- the outline of the course ---


def outline_page(rows: Sequence[dict[str, Any]], following: str | None) -> str:
    """List the lessons, a line each, and how to go on. following: the next one, or None."""
    about = say(
        "{n} lessons, from one drawing to a transformer at work, about {hours} hours in all.",
        n=len(COURSE_LESSONS),
        hours=round(sum(row["minutes"] for row in rows) / 60, 1),
    )
    step = next((row["step"] for row in rows if row["name"] == following), None)
    command = f"`qkvsearch teach {following or rows[0]['name']}`"
    if step is not None:
        last = say("Go on at step {step}: {command}", step=step, command=command)
    elif following is None:
        last = say("All lessons are done. Any of them again: {command}", command=command)
    elif any(row["done"] for row in rows):
        last = say("Go on: {command}", command=command)
    else:
        last = say("Begin: {command}", command=command)
    page = say("As a page to try things on: {command}", command=PAGE)
    lines = [paragraph(last), paragraph(page)]
    entries = [_entry(row, _noted(f"{row['name']}: {row['title']}", row)) for row in rows]
    return f"{prose(about)}\n{rendered(entries)}\n{rendered(lines)}"


PAGE = "`qkvsearch teach --all --format html -o course.html`"


def goals_table(rows: Sequence[dict[str, Any]]) -> str:
    """List each lesson with its goal below it."""
    lines: list[Line] = []
    for row in rows:
        lines.append(_entry(row, f"{row['name']}: {row['title']}"))
        lines[-1].stylize("bold")
        lines.append(paragraph(_noted(row["goal"], row), indent=INDENT, first=" " * INDENT))
    return rendered(lines)


def _noted(text: str, row: dict[str, Any]) -> str:
    """Add how long the lesson takes, and whether it is done."""
    if row["done"]:
        return say("{text} ({n} min, done)", text=text, n=row["minutes"])
    return say("{text} ({n} min)", text=text, n=row["minutes"])


def _entry(row: dict[str, Any], text: str) -> Line:
    return paragraph(text, indent=INDENT, first=f"{row['number']:>2}  ")
