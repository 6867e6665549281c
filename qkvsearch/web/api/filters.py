"""`filter=column:value`: values that facets show, as a condition, so that pages write no SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import Field

from qkvsearch.data.catalog_columns import StoredColumn, quoted
from qkvsearch.engine import Engine
from qkvsearch.query.where import Where
from qkvsearch.search.facets import is_whole
from qkvsearch.web.problems import Problem

Filter = Annotated[str, Field(max_length=2000, examples=["channel:Tiny Oven"])]
Filters = Annotated[
    tuple[Filter, ...],
    Field(
        max_length=100,
        fail_fast=True,  # a million errors take seconds
        description="COLUMN:VALUE as in a facet, or COLUMN:LEAST..MOST of numbers and dates; "
        "repeatable. An item has one of the values of each column that is named.",
    ),
]
# A piece of a condition with `?`, and the values of these.
Clause = tuple[str, list[Any]]


def condition(
    engine: Engine, filters: Sequence[str], where: str | None, without: str | None = None
) -> Where | None:
    """What filters and `where` demand together, None for nothing; `without` the filters of one
    column. Raises `Problem` and `QkvError`.
    """
    found: list[Clause] = []
    for column, values in by_column(engine, filters).items():
        if column.name != without:
            pieces = [_clause(engine, column, value) for value in values]
            either = " OR ".join(expression for expression, _ in pieces)
            found.append((f"({either})", [value for _, those in pieces for value in those]))
    if not found:
        return where
    expression = " AND ".join(expression for expression, _ in found)
    if where is not None:
        build = engine.index  # one, though another may be published meanwhile
        build.catalog.mask(where)  # refused as it is, before it is put in brackets
        expression += f" AND (\n{where}\n)"
    return expression, [value for _, values in found for value in values]


def by_column(engine: Engine, filters: Sequence[str]) -> dict[StoredColumn, list[str]]:
    """The values that are wanted of each column. Raises `Problem` for what names no column."""
    found: dict[StoredColumn, list[str]] = {}
    for text in filters:
        column, value = _split(engine, text)
        found.setdefault(column, []).append(value)
    return found


def _split(engine: Engine, text: str) -> tuple[StoredColumn, str]:
    """A column's name may have colons itself: the longest that is one counts."""
    columns = engine.catalog.catalog_columns
    places = [place for place, letter in enumerate(text) if letter == ":"]
    for place in reversed(places):
        if columns.has(text[:place]):
            return columns.find(text[:place]), text[place + 1 :]
    if not places:
        raise Problem(400, f"`filter`: a column, a colon and a value, not {text!r}")
    return columns.find(text[: places[0]], "filter"), ""


def _clause(engine: Engine, column: StoredColumn, value: str) -> Clause:
    name = quoted(column.name)
    if column.type == "list":
        return f"has({name}, ?)", [value]
    if column.type == "yes/no":
        if value not in ("yes", "no"):
            raise Problem(400, f"`filter`: {column.name} is yes or no, not {value!r}")
        return f"{name} = ?", [int(value == "yes")]
    if column.type == "number":
        # Ranges of whole numbers end before the next one begins; others end where it does.
        whole = is_whole(engine.catalog.column_cells(column.stored).distinct)
        return _range(name, value, "<=" if whole else "<", lambda end: _number(column, end))
    if column.type == "date":
        return _range(name, value, "<=", str)
    return f"{name} = ?", [value]


def _range(name: str, value: str, until: str, read: Callable[[str], Any]) -> Clause:
    """Either end of `least..most` may be left out."""
    least, dots, most = value.partition("..")
    if not dots:
        return f"{name} = ?", [read(value)]
    pieces = [(f"{name} {sign} ?", end) for sign, end in ((">=", least), (until, most)) if end]
    if not pieces:
        raise Problem(400, f"`filter`: {value!r} has no end; LEAST..MOST, of which one may be left")
    expression = " AND ".join(piece for piece, _ in pieces)
    return f"({expression})", [read(end) for _, end in pieces]


def _number(column: StoredColumn, text: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise Problem(400, f"`filter`: {column.name} is a number, not {text!r}")
