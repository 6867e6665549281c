"""The course's outline in the terminal: what there is, what is done, where to begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from qkvsearch.cli.lesson.view import INDENT, bold, paragraph, rendered
from qkvsearch.lessons.messages import say

if TYPE_CHECKING:
    from rich.console import RenderableType


def outline_page(rows: Sequence[dict[str, Any]], following: str | None) -> str:
    """A line a lesson, and how to go on. following: the first that is not done, None after all."""
    about = say(
        "Ten lessons, from vectors of words to a transformer at work, about {n} minutes together.",
        n=sum(row["minutes"] for row in rows),
    )
    command = f"`qkvsearch teach {following or rows[0]['name']}`"
    if following is None:
        last = say("All lessons are done. Any of them again: {command}", command=command)
    elif any(row["done"] for row in rows):
        last = say("Go on: {command}", command=command)
    else:
        last = say("Begin: {command}", command=command)
    page = say("As a page to try things on: {command}", command=PAGE)
    lines = [paragraph(last), paragraph(page)]
    return f"{rendered([paragraph(about)])}\n{_lines(rows)}\n{rendered(lines)}"


PAGE = "`qkvsearch teach --all --format html -o course.html`"


def goals_table(rows: Sequence[dict[str, Any]]) -> str:
    """Each lesson with its goal below it."""
    lines: list[RenderableType] = []
    for row in rows:
        notes = [say("{n} min", n=row["minutes"]), *([say("done")] if row["done"] else [])]
        lines.append(bold(f"{row['number']:>2}  {row['name']}: {row['title']}"))
        goal = f"{row['goal']} ({', '.join(notes)})"
        lines.append(paragraph(goal, indent=INDENT, first=" " * INDENT))
    return rendered(lines)


def _lines(rows: Sequence[dict[str, Any]]) -> str:
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("", justify="right", no_wrap=True)
    grid.add_column(say("lesson"), no_wrap=True)
    grid.add_column(say("title"), overflow="fold")
    grid.add_column(say("minutes"), justify="right", no_wrap=True)
    grid.add_column("", no_wrap=True)
    for row in rows:
        done = say("done") if row["done"] else ""
        cells = (str(row["number"]), row["name"], row["title"], str(row["minutes"]), done)
        grid.add_row(*map(Text, cells))
    return rendered([grid])
