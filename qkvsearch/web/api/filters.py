"""`filter=column:value`: a condition made of values that facets show, without SQL."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from qkvsearch.engine import Engine
from qkvsearch.rank.conditions import note_on_order
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.column_types import type_named
from qkvsearch.web.problems import Problem
from qkvsearch.where import Where

ColumnFilter = Annotated[str, Field(max_length=2000, examples=["channel:Tiny Oven"])]
Filters = Annotated[
    tuple[ColumnFilter, ...],
    Field(
        max_length=100,
        fail_fast=True,  # a million errors take seconds
        exclude=True,
        description="COLUMN:VALUE as in a facet, or COLUMN:LEAST..MOST of numbers and dates; "
        "repeatable. MOST is in a range of dates, and in one of numbers where all numbers of the "
        "column are whole; with `..=` it always is. An item has one of the values of each column "
        "that is named. A range with its larger end first is turned round: a note says so in "
        "answers that have notes.",
    ),
]
# An expression with `?` placeholders, and their values.
WhereClause = tuple[str, list[Any]]


def condition(
    engine: Engine, filters: Sequence[str], where: str | None, without: StoredColumn | None = None
) -> Where | None:
    """Return the condition of filters and `where` together, None for none. without: a column whose
    filters are left out. Raises `Problem` and `QkvError`.
    """
    clauses: list[WhereClause] = []
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
    """Return the values requested of each column, ranges with their smaller end first. Raises
    `Problem` for an unknown column.
    """
    columns: dict[StoredColumn, list[str]] = {}
    for text in filters:
        column, value = _split(engine, text)
        in_order = type_named(column.type).in_order(_as_stored(column, value))
        columns.setdefault(column, []).append(in_order)
    return columns


def _as_stored(column: StoredColumn, value: str) -> str:
    """Return a value that is written as in the file the way cells are stored."""
    return type_named(column.type).as_stored(value, column.convention)


def filter_notes(engine: Engine, filters: Sequence[str]) -> list[str]:
    """Return a note for each range that was requested with its larger end first."""
    notes = []
    for text in filters:
        column, typed = _split(engine, text)
        value = _as_stored(column, typed)
        in_order = type_named(column.type).in_order(value)
        if in_order != value:
            notes.append(note_on_order(text, f"{column.name}:{in_order}"))
    return notes


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


def _clause(engine: Engine, column: StoredColumn, value: str) -> WhereClause:
    name = engine.catalog.catalog_columns.sql_name(column)
    distinct = engine.catalog.values.cells(column.stored).distinct
    return type_named(column.type).condition(name, value, distinct)
