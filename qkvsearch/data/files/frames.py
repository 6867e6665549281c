"""Cells of any kind to a frame of text, as all tables are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, listed_names, suggest

# More characters than a book has. A longer cell is the rest of a file after a stray quote.
MAX_CELL = 10_000_000
# A workspace keeps a table in SQLite, which has 2,000 columns at most; it adds some of its own.
MAX_COLUMNS = 1_990
# Ends of lines, tabs and the like: a name is written in one line, and in SQL.
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame in memory, in the form of one read from a file: columns of text, blanks missing."""
    frame = frame.set_axis(distinct(frame.columns), axis=1).reset_index(drop=True)
    texts = frame.astype(object).map(_cell).astype(str)
    return texts.where(frame.notna() & (texts != ""))


def table_of(
    rows: Sequence[Any], names: Sequence[Any] | None, label: str, name: str
) -> tuple[pd.DataFrame, ReadReport]:
    """Rows of cells of any kind, counted from 1."""
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
    if width > MAX_COLUMNS:
        raise DataError(
            f"{label}: {width:,} columns, and a workspace keeps {MAX_COLUMNS:,} at most; leave out "
            "those that are not needed"
        )


def without_long_cells(frame: pd.DataFrame, report: ReadReport) -> pd.DataFrame:
    """Without rows that have a cell longer than any book."""
    too_long = pd.Series(False, index=frame.index)
    for name in frame:
        too_long |= frame[name].str.len() > MAX_CELL
    if not too_long.any():
        return frame
    report.skip(f"with a cell of more than {MAX_CELL:,} characters", too_long.index[too_long])
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
