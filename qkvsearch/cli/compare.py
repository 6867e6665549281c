"""Comparison: `qkvsearch compare` shows what a change did to the answers."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.commands import command
from qkvsearch.cli.context import settings
from qkvsearch.cli.hits import question_option
from qkvsearch.cli.render import Output, page_options
from qkvsearch.cli.text_table import (
    TableColumns,
    fitting_widths,
    heading_lines,
    is_too_narrow,
    lines_of_row,
    rendered,
    row_lines,
    styled,
)
from qkvsearch.cli.wrapping import terminal_width, wrapped
from qkvsearch.errors import Count, QkvError
from qkvsearch.terminal import in_one_line, shorten

if TYPE_CHECKING:
    from rich.text import Text

    from qkvsearch.evaluation.comparison.compared import ChangedQuery, ComparedSide, Comparison
    from qkvsearch.evaluation.comparison.moves import Move

    Line = str | Text

COLUMNS: TableColumns = (
    ("", "left"),
    ("from", "right"),
    ("to", "right"),
    ("title", "wrap"),
    ("reason", "wrap"),
)
# The table shows so many queries, the most changed ones first.
MAX_QUERIES = 10
# Of the items of a query that moved for the same reason, it shows so many.
MAX_ALIKE = 2
# Characters of a title.
MAX_TITLE = 50
# Two shares that differ by less are the same.
ROUNDING = 1e-9
FILE = click.Path(path_type=Path)


def _number(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    """Return the value of an option. Raises `click.BadParameter` for NaN, which is in any range."""
    if value is not None and isnan(value):
        raise click.BadParameter("it is not a number")
    return value


@command(short_help="Show which answers a change has changed.")
@click.argument("builds", nargs=-1, metavar="[BUILD] [BUILD]")
@click.option(
    "--queries",
    metavar="FILE",
    type=FILE,
    help="Queries, one a line: text, or id<TAB>text.  [default: made of the catalog]",
)
@question_option(
    "heads", metavar="NAMES", help="The heads by which the second build answers.  [default: all]"
)
@click.option(
    "--before-heads",
    metavar="NAMES",
    help="The heads by which the first build answers.  [default: all]",
)
@question_option("rules", "--rules/--no-rules", show_default=True)
@click.option(
    "--before-rules/--before-no-rules",
    default=None,
    help="Apply the owner's rules to the first build.  [default: as to the second]",
)
@click.option(
    "--fail-under",
    metavar="X",
    type=click.FloatRange(0, 1),
    callback=_number,
    help="Exit with 1 if a smaller share of the hits stayed, such as .9.",
)
@question_option(
    "random_state", "--seed", default=0, show_default=True, help="Random seed of made queries."
)
@page_options
def compare(
    builds: tuple[str, ...],
    queries: Path | None,
    fail_under: float | None,
    output: Output,
    **options: Any,
) -> None:
    """Compare the ten hits of queries in two builds, and say why each item rose or fell.

    A BUILD is an id, as builds lists them. One is compared with the current build. Without any, the
    current build is compared with the one before it (after a rollback to the first build, with the
    newest one), or with --heads or --before-no-rules with itself. Nothing is changed. The owner's
    rules are those of today in both builds.

    The reason of a move is what became of the items that it passed, or that passed it: they left or
    joined the catalog, or their scores differ. Then it names the word or the head that changed the
    item's lead over them most, and by how much. JSON has every changed query, and -o FILE.html is a
    page to look at.

    \b
    Examples:
      qkvsearch -w shop compare --queries queries.txt
      qkvsearch -w shop compare 20261129-032308-0a6d05 --fail-under .9
      qkvsearch -w shop compare --heads lexical -o compared.html
      qkvsearch -w shop compare --before-no-rules
    """
    if len(builds) > 2:
        raise click.UsageError("name two builds at most; qkvsearch builds lists them")
    run = settings()
    engine = run.open()
    with run.progress() as progress:
        result = engine.compare(*builds, queries=queries, **options, progress=progress)
    run.notes(result.notes)
    _write(result, output)
    if output.path is not None:
        run.message(result.summary)
    if fail_under is not None and result.kept < fail_under - ROUNDING:
        raise QkvError(
            f"only {result.kept:.6g} of the hits stayed, less than `fail_under` {fail_under:g}"
        )


def _write(result: Comparison, output: Output) -> None:
    if output.format == "html":
        output.write_document({"html": result.to_page})
    else:
        rows = result.to_records()
        output.write_one(result.to_dict(), rows, lambda: _tables(result), result.names)


def _tables(result: Comparison) -> str:
    """Return a sentence, and a table for each of the most changed queries."""
    lines: list[Line] = [
        _filled(f"{_side(result.before)} → {_side(result.after)}", "dim"),
        _filled(result.summary, "bold"),
    ]
    shown = result.by_change()[:MAX_QUERIES]
    rows = [_rows(query) for query in shown]
    every_row = [row for of_query in rows for row in of_query]
    widths = fitting_widths(COLUMNS, every_row)
    is_list = is_too_narrow(COLUMNS, every_row)
    for query, of_query in zip(shown, rows, strict=True):
        lines += ["", _filled(f"{query.id}: {query.text}", "bold"), _filled(_kept(query), "dim")]
        if not is_list:
            lines += heading_lines(COLUMNS, widths)
        for row in of_query:
            lines += lines_of_row(COLUMNS, row) if is_list else row_lines(COLUMNS, row, widths)
    if n_more := result.changed - len(shown):
        more = Count(n_more)
        text = f"{more} more {more:query|queries} changed: --format json and -o FILE.html have all."
        lines += ["", _filled(text, "dim")]
    return rendered(lines)


def _filled(text: str, style: str) -> Line:
    return wrapped(styled(in_one_line(text), style), terminal_width(), indent=2)


def _side(side: ComparedSide) -> str:
    """Return a build, its number of items, the heads that were asked for, and the rules."""
    items = f"{Count(side.items)} {Count(side.items):item|items}"
    heads = "" if side.heads is None else f", {'+'.join(side.heads)}"
    rules = f", {side.rules_text}" if side.rules_text else ""
    return f"{side.id} ({items}{heads}{rules})"


def _kept(query: ChangedQuery) -> str:
    return "no hits before" if query.kept is None else f"{query.kept:.0%} of its hits stayed"


def _rows(query: ChangedQuery) -> list[list[Any]]:
    """Return a row for each move, and one for those that have the same reason as earlier ones."""
    rows = []
    for moves in (query.rose, query.fell):
        by_reason: dict[str, list[Move]] = {}
        for move in moves:
            by_reason.setdefault(move.by, []).append(move)
        for alike in by_reason.values():
            n_shown = MAX_ALIKE if len(alike) > MAX_ALIKE + 1 else len(alike)
            rows += [_row(move) for move in alike[:n_shown]]
            if n_more := len(alike) - n_shown:
                rows.append(["", "", "", f"and {n_more} others", "the same reason"])
    return rows


def _row(move: Move) -> list[Any]:
    arrow = styled("↑", "green") if move.rose else styled("↓", "red")
    ranks = ["–" if rank is None else rank for rank in (move.before, move.after)]
    title = shorten(" ".join(move.title.split()), MAX_TITLE)
    return [arrow, *ranks, title, move.by]
