"""Cells of any kind to a frame of text, as all tables are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import pandas as pd

from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, listed_names, suggest
from qkvsearch.limits import CELL, COLUMNS, ROWS

# Some rows of a file as text, and the report on all rows that were read up to them.
Piece: TypeAlias = tuple[pd.DataFrame, ReadReport]
# What stands above a table, such as its name and date, takes so many rows at most; a table below
# has so many columns at least, and as many in so many of the rows.
MOST_ABOVE, LEAST_COLUMNS, ALIKE = 20, 3, 0.9
A_NUMBER = r"[+-]?[\d.,]+"
# Ends of lines, tabs and the like: a name is written in one line, and in SQL.
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame in memory, in the form of one read from a file: columns of text, blanks missing."""
    frame = frame.set_axis(distinct(frame.columns), axis=1).reset_index(drop=True)
    texts = frame.astype(object).map(_readable).astype(str)
    return texts.where(frame.notna() & (texts != ""))


def table_of(
    rows: Sequence[Any], names: Sequence[Any] | None, label: str, name: str
) -> tuple[pd.DataFrame, ReadReport]:
    """Rows of cells of any kind, counted from 1. Raises `DataError` for too many."""
    ROWS.check(len(rows), label)
    # As objects: a gap would turn a column into floats, which cannot hold long numbers exactly.
    frame = pd.DataFrame(rows, columns=names, dtype=object)
    check_width(len(frame.columns), label)
    texts = as_text(frame)
    return texts.set_axis(range(1, len(texts) + 1)), ReadReport(name, read=len(texts))


def picked(part: str, names: Sequence[str], kind: str, label: str) -> str:
    """The one of a file's parts that is called `part`, in upper or lower case, or the only one.
    kind: what they are, such as "table". Raises `DataError` that lists them.
    """
    listed = f"({kind}s: {listed_names(names)})"
    if part:
        alike = [name for name in names if name.casefold() == part.casefold()]
        if part not in names and not alike:
            raise DataError(
                f"{label}: no {kind} {part!r} in it{suggest(part, list(names))} {listed}"
            )
        return part if part in names else alike[0]
    if not names:
        raise DataError(f"{label}: there is no {kind} in it")
    if len(names) > 1:
        raise DataError(
            f"{label}: {len(names):,} {kind}s are in it; say which, such as {label}#{names[0]} "
            f"{listed}"
        )
    return names[0]


def check_width(width: int, label: str) -> None:
    """Raises `DataError` where a table has more columns than a workspace can keep."""
    if width > COLUMNS.most:
        raise DataError(
            f"{label}: {width:,} columns, and a workspace keeps {COLUMNS.most:,} at most; leave "
            "out those that are not needed"
        )


def rows_above(rows: Sequence[Sequence[Any]]) -> int:
    """How many of the first rows have one cell at most, where a table with names of columns follows
    and they are not all blank; else 0.

    >>> rows_above([["Stock, May"], [], ["sku", "name", "price"], ["1", "Tent", "9.50"]])
    2
    """
    filled = [[str(cell).strip() for cell in row if cell is not None] for row in rows]
    counts = [sum(cell != "" for cell in row) for row in filled]
    first = next((place for place, count in enumerate(counts) if count > 1), 0)
    table = [place for place, count in enumerate(counts) if place >= first and count > 1]
    return (
        first
        if any(counts[:first])
        and first <= MOST_ABOVE
        and counts[first] >= LEAST_COLUMNS
        and len(table) > 1
        and sum(len(rows[place]) == len(rows[first]) for place in table) >= ALIKE * len(table)
        and not any(re.fullmatch(A_NUMBER, cell) for cell in filled[first])
        else 0
    )


def note_above(report: ReadReport, rows: int, text: str) -> None:
    """That so many rows were left out, which begin with this text."""
    start = " ".join(text.split())[:40].rstrip(" ,;|")
    report.note(rows, f"lines above the table, left out: {{n}} ({start!r})")


def without_long_cells(frame: pd.DataFrame, report: ReadReport) -> pd.DataFrame:
    """Without rows that have a cell longer than any book."""
    too_long = pd.Series(False, index=frame.index)
    for name in frame:
        too_long |= frame[name].str.len() > CELL.most
    if not too_long.any():
        return frame
    report.skip(f"with a cell of more than {CELL.most:,} characters", too_long.index[too_long])
    return frame[~too_long]


def distinct(names: Iterable[Any]) -> list[str]:
    """Names without spaces around them; repeated ones get a number: tag, tag.1."""
    taken: dict[str, None] = {}
    for place, name in enumerate(names):
        text = "" if name is None or name != name else _whole(str(name))
        text, number = CONTROLS.sub(" ", text).strip() or f"Unnamed: {place}", 0
        new = text
        while new in taken:
            number += 1
            new = f"{text}.{number}"
        taken[new] = None
    return list(taken)


def _readable(value: Any) -> str:
    """Raises `DataError` for a value that has no text, such as a whole number of 5,000 digits."""
    try:
        return _cell(value)
    except Exception as error:  # of a stranger's class
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"a cell of type {type(value).__name__} has no text: {reason}") from None


def _cell(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode(errors="replace")
    if isinstance(value, dict):
        return _whole(json.dumps(value, ensure_ascii=False, default=str))
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        whole = isinstance(value, float) and value.is_integer()
        return _whole(str(int(value) if whole else value))
    return "|".join(_cell(part) for part in value)


def _whole(text: str) -> str:
    """Half an emoji cannot be stored."""
    return text.encode(errors="replace").decode()
