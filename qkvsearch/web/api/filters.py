"""`filter=column:value`: a condition made of values that facets show, without SQL."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import Field

from qkvsearch.engine import Engine
from qkvsearch.rank.facets import is_whole
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.web.problems import Problem
from qkvsearch.where import Where

Filter = Annotated[str, Field(max_length=2000, examples=["channel:Tiny Oven"])]
Filters = Annotated[
    tuple[Filter, ...],
    Field(
        max_length=100,
        fail_fast=True,  # a million errors take seconds
        exclude=True,
        description="COLUMN:VALUE as in a facet, or COLUMN:LEAST..MOST of numbers and dates; "
        "repeatable. An item has one of the values of each column that is named.",
    ),
]
# An expression with `?` placeholders, and their values.
Clause = tuple[str, list[Any]]


def condition(
    engine: Engine, filters: Sequence[str], where: str | None, without: StoredColumn | None = None
) -> Where | None:
    """Return the condition of filters and `where` together, None for none. without: a column whose
    filters are left out. Raises `Problem` and `QkvError`.
    """
    clauses: list[Clause] = []
    for column, values in by_column(engine, filters).items():
        if column != without:
            alternatives = [_clause(engine, column, value) for value in values]
            either = " OR ".join(expression for expression, _ in alternatives)
            bound = [value for _, those in alternatives for value in those]
            clauses.append((f"({either})", bound))
    if not clauses:
        return where
    expression = " AND ".join(expression for expression, _ in clauses)
    if where is not None:
        engine.catalog.conditions.mask(where)  # refused as it is, before it is put in brackets
        expression += f" AND (\n{where}\n)"
    return expression, [value for _, values in clauses for value in values]


def by_column(engine: Engine, filters: Sequence[str]) -> dict[StoredColumn, list[str]]:
    """Return the values requested of each column. Raises `Problem` for an unknown column."""
    columns: dict[StoredColumn, list[str]] = {}
    for text in filters:
        column, value = _split(engine, text)
        columns.setdefault(column, []).append(value)
    return columns


def _split(engine: Engine, text: str) -> tuple[StoredColumn, str]:
    """Split COLUMN:VALUE. A column's name may contain colons: the longest known name counts."""
    columns = engine.catalog.catalog_columns
    colons = [index for index, letter in enumerate(text) if letter == ":"]
    for index in reversed(colons):
        if columns.has(text[:index]):
            return columns.find(text[:index]), text[index + 1 :]
    if not colons:
        raise Problem(400, f"`filter`: a column, a colon and a value, not {text!r}")
    return columns.find(text[: colons[0]], "filter"), ""


def _clause(engine: Engine, column: StoredColumn, value: str) -> Clause:
    name = engine.catalog.catalog_columns.sql_name(column)
    if column.type == "list":
        return f"has({name}, ?)", [value]
    if column.type == "yes/no":
        if value not in ("yes", "no"):
            raise Problem(400, f"`filter`: {column.name} is yes or no, not {value!r}")
        return f"{name} = ?", [int(value == "yes")]
    if column.type == "number":
        # Ranges of whole numbers end before the next one begins; others end where it does.
        whole = is_whole(engine.catalog.values.cells(column.stored).distinct)
        return _range(name, value, "<=" if whole else "<", lambda end: _number(column, end))
    if column.type == "date":
        return _range(name, value, "<=", str)
    return f"{name} = ?", [value]


def _range(name: str, value: str, until: str, read: Callable[[str], Any]) -> Clause:
    """Return the clause of LEAST..MOST, either of which may be left out, or of one value."""
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
