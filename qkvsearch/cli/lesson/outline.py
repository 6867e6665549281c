"""The course's outline in the terminal: what there is, what is done, where to begin."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from qkvsearch.cli.lesson.view import INDENT, paragraph, prose
from qkvsearch.cli.render import as_rich_table, rendered, terminal_width
from qkvsearch.lessons import COURSE_LESSONS
from qkvsearch.lessons.messages import say

# Columns of a terminal in which the table's titles would have to break within words.
NARROW = 60


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
    course = _entries(rows) if terminal_width() < NARROW else _lines(rows)
    return f"{prose(about)}\n{course}\n{rendered(lines)}"


PAGE = "`qkvsearch teach --all --format html -o course.html`"


def goals_table(rows: Sequence[dict[str, Any]]) -> str:
    """List each lesson with its goal below it."""
    lines: list[Text] = []
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


def _entries(rows: Sequence[dict[str, Any]]) -> str:
    """Yield a paragraph for each lesson."""
    return rendered(_entry(row, _noted(f"{row['name']}: {row['title']}", row)) for row in rows)


def _entry(row: dict[str, Any], text: str) -> Text:
    return paragraph(text, indent=INDENT, first=f"{row['number']:>2}  ")


def _lines(rows: Sequence[dict[str, Any]]) -> str:
    columns = [("", "right"), (say("lesson"), "left"), (say("title"), "wrap")]
    columns += [(say("minutes"), "right"), ("", "left")]
    cells = []
    for row in rows:
        done = say("done") if row["done"] else say("at step {n}", n=row["step"] or 1)
        done = done if row["done"] or row["step"] else ""
        cells.append([row["number"], row["name"], row["title"], row["minutes"], done])
    return rendered([as_rich_table(columns, cells)])
