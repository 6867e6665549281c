"""The course's outline in the terminal: what there is, what is done, where to begin."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from qkvsearch.cli.lesson.view import INDENT, paragraph, prose
from qkvsearch.cli.render import rendered
from qkvsearch.lessons import COURSE_LESSONS
from qkvsearch.lessons.messages import say


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


def _entry(row: dict[str, Any], text: str) -> Text:
    return paragraph(text, indent=INDENT, first=f"{row['number']:>2}  ")
