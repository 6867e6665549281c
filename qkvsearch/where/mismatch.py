"""Check which types can be compared, and explain why others cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from qkvsearch.errors import QkvError
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.column_types import TEXT, TYPES, ColumnType, type_named
from qkvsearch.terminal import shorten

if TYPE_CHECKING:
    from sqlglot import exp

CellsOfColumn = Callable[[StoredColumn], Iterator[Any]]
# How many cells an error shows, how many characters of each, and how many cells are searched.
SHOWN_CELLS, SHOWN_LENGTH, LOOKED_AT = 3, 30, 100_000
SHOWN_SQL = 80
# Types by how SQL compares their cells: as numbers, and as texts of any kind.
NUMBERS = tuple(each.name for each in TYPES if each.is_numeric)
SEARCHED = frozenset(each.name for each in TYPES if each.is_text)
WRITE_DATES = "write a date as '2024-03-01', or its beginning: '2024-03', '2024'"


@dataclass(frozen=True)
class Value:
    """A part of a condition. type: None where it can have any type, such as NULL. column: the
    column, if the part is one. literal: the value, where it is known.
    """

    type: str | None
    node: exp.Expression
    column: StoredColumn | None = None
    literal: Any = None
    is_null: bool = False

    @property
    def sql(self) -> str:
        """The part as SQL, with a value instead of its placeholder."""
        if self.literal is not None and self.node.key == "placeholder":
            return repr(self.literal)
        return written(self.node)


def written(node: exp.Expression) -> str:
    """Return a part of a condition as SQL, shortened."""
    return shorten(node.sql("sqlite"), SHOWN_SQL)


def check_pair(
    left: Value,
    right: Value,
    cells: CellsOfColumn,
    is_null_safe: bool = False,
    is_ordering: bool = False,
) -> None:
    """Raise `QkvError` if the two cannot be compared. is_ordering: by which one is more."""
    for value in (left, right):
        if value.is_null and not is_null_safe:
            raise QkvError("nothing equals NULL, nor is it more or less: write IS NULL or IS NOT")
    if left.type is None or right.type is None:
        return
    left_type, right_type = type_named(left.type), type_named(right.type)
    if left_type.is_numeric and right_type.is_numeric:
        if left_type.compares_with(right.literal) and right_type.compares_with(left.literal):
            return
    elif left_type.equals_beginnings or right_type.equals_beginnings:
        of = left_type if left_type.equals_beginnings else right_type
        is_uncertain = any(
            value.column is not None and value.column.is_uncertain for value in (left, right)
        )
        if _is_of(left, of, is_uncertain) and _is_of(right, of, is_uncertain):
            _require_column(left, right, of)
            return
    elif left.type == right.type or (left_type.is_text and right_type.is_text):
        return
    raise _mismatch(left, right, cells, is_ordering)


def _is_of(value: Value, column_type: ColumnType, uncertain: bool) -> bool:
    """Return whether a value has a type, or is a text that can be the beginning of such a cell, or
    of an uncertain one.
    """
    if value.type == column_type.name:
        return True
    text = value.literal if value.type == TEXT.name else None
    return isinstance(text, str) and column_type.is_beginning(text, uncertain)


def check_apart(dates: Sequence[str]) -> None:
    """Raise `QkvError` where one includes another: SQLite would keep one of the two."""
    for longer in dates:
        for shorter in dates:
            if longer != shorter and longer.startswith(shorter):
                raise QkvError(f"{shorter!r} already includes {longer!r}: leave one out")


def misfit(value: Value, wanted: str, node: exp.Expression, cells: CellsOfColumn) -> QkvError:
    """Return the error for an argument of the wrong type."""
    if wanted == "number":
        hint = f"; build with `types` {value.column.name}:number" if value.column else ""
    elif value.literal is not None:
        hint = f": write '{value.sql}'"
    else:
        hint = f": write CAST({value.sql} AS TEXT) to look at its digits"
    return QkvError(f"{shown(value, cells)}, and {written(node)} needs a {wanted}{hint}")


def shown(value: Value, cells: CellsOfColumn, offending: bool = False) -> str:
    """Describe a value, with some of its cells. offending: prefer cells that are not numbers."""
    if value.column is None:
        return f"{value.sql} is {_noun(value)}"
    examples = _examples(cells(value.column), offending)
    such_as = f", such as {', '.join(examples)}" if examples else ""
    return f"column {value.column.name!r} is {_noun(value)}{such_as}"


def _noun(value: Value) -> str:
    return TEXT.noun if value.type is None else type_named(value.type).noun


def _mismatch(left: Value, right: Value, cells: CellsOfColumn, is_ordering: bool) -> QkvError:
    if left.column is None and right.column is not None:
        left, right = right, left
    offending = left.type == "text" and right.type == "number"
    both = f"{shown(left, cells, offending)}, and {shown(right, cells)}"
    return QkvError(f"{both}: {_advice(left, right, is_ordering)}")


def _advice(left: Value, right: Value, is_ordering: bool) -> str:
    """Return what to write instead."""
    types = {left.type, right.type}
    if "date" in types:
        year = next((value.literal for value in (left, right) if value.type == "number"), None)
        if year is not None and 1000 <= year <= 9999 and year == int(year):
            return f"write the date in quotes, '{int(year):04d}'"
        return WRITE_DATES
    if "yes/no" in types:
        name = (left if left.type == "yes/no" else right).sql
        return f"write {name} = 1 for yes, {name} = 0 for no"
    if left.type == "list":
        return f"look for an entry by has({left.sql}, 'ENTRY')"
    if left.type == "number" and isinstance(right.literal, str):
        with suppress(ValueError):
            return f"write {float(right.literal):.15g} without quotes"
        return "compare it with a number, without quotes"
    if left.type == "text" and right.literal is not None:
        advice = f"compare it with '{right.sql}'"
        if left.column is None or left.column.role in ("id", "title"):
            return advice
        as_number = f"build with `types` {left.column.name}:number"
        if is_ordering:
            # As texts, '800' is more than '5000'.
            return (
                f"texts are compared letter by letter, so {as_number}, from cells that are numbers"
            )
        return f"{advice}, or {as_number}"
    return "both have to be of one type"


def _require_column(left: Value, right: Value, column_type: ColumnType) -> None:
    """Raise `QkvError` if neither is a column: only for columns, SQLite compares partial dates."""
    if left.column is None and right.column is None:
        date = left if left.type == column_type.name else right
        raise QkvError(f"{date.sql}: compare columns of dates themselves, as in added < '2024'")


def _examples(cells: Iterator[Any], offending: bool) -> list[str]:
    """Return a few distinct cells. offending: prefer cells that are not numbers."""
    distinct = list(dict.fromkeys(islice(cells, LOOKED_AT)))
    chosen = [cell for cell in distinct if not (offending and _is_number(str(cell)))] or distinct
    return [
        repr(shorten(cell, SHOWN_LENGTH) if isinstance(cell, str) else cell)
        for cell in chosen[:SHOWN_CELLS]
    ]


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        float(text)
        return True
    return False
