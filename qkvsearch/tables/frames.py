"""Cells of any kind to a frame of text: what the readers of all formats share."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from qkvsearch._utils import scratch
from qkvsearch._utils.limits import CELL, CELL_BYTES, COLUMNS, NAME
from qkvsearch.errors import DataError, listed_names, suggest
from qkvsearch.tables.column_facts import LIST_SEPARATOR
from qkvsearch.tables.report import ReadReport

# A batch of rows as text, and the report on all rows up to its end.
Piece: TypeAlias = tuple[pd.DataFrame, ReadReport]
# The most rows of a title above a table, and the lowest share of the rows below the header that
# have as many cells as it.
MAX_ABOVE, MIN_SAME_WIDTH = 20, 0.75
# Bytes of cells that are read at a time.
BATCH_BYTES = 1 << 25
TOO_LONG = f"with a cell of more than {CELL.value:,} characters"
# Within an entry of a list, the sign between entries is written so.
INSTEAD = "/"
_BYTES = bytes | bytearray | memoryview
Row = TypeVar("Row")
A_NUMBER = r"[+-]?[\d.,]+"
# Line ends, tabs and the like, which a column's name may not have: it is written in SQL.
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def as_text(frame: pd.DataFrame, report: ReadReport | None = None) -> pd.DataFrame:
    """Return a frame as a file with the same cells is read: columns of text, blanks missing.

    The columns in which a cell is a list or an object are noted in `report`, and so are entries of
    lists that have the sign between entries.
    """
    frame = frame.set_axis(distinct(frame.columns), axis=1)
    cells = frame.astype(object)
    if report is not None:
        for name in cells:
            if infer_dtype(cells[name]).startswith("mixed"):
                nested = frame.index[cells[name].map(_is_nested).to_numpy(bool)]
                if len(nested):
                    report.nested.setdefault(name, nested[0])
                    report.note_separators(str(name), sum(map(n_separators, cells[name])))
    texts = cells.map(readable, na_action="ignore").astype(str)
    return texts.where(frame.notna() & (texts != "")).reset_index(drop=True)


def text_of_rows(
    rows: Sequence[Any], numbers: Sequence[int], names: Sequence[Any], report: ReadReport
) -> pd.DataFrame:
    """Return rows of cells of any kind as text, with their numbers as index."""
    # As objects: a gap would turn a column into floats, which cannot hold long numbers exactly.
    frame = pd.DataFrame(rows, columns=list(names), index=list(numbers), dtype=object)
    return as_text(frame, report).set_axis(frame.index)


def batched(rows: Iterable[tuple[int, Row, int]]) -> Iterator[tuple[list[int], list[Row]]]:
    """Group numbered rows so that few are in memory at a time; at least one group, perhaps empty.

    rows: each with its number and the bytes that it takes.
    """
    numbers: list[int] = []
    group: list[Row] = []
    size, is_first = 0, True
    for number, row, n_bytes in rows:
        numbers.append(number)
        group.append(row)
        size += n_bytes
        if size >= BATCH_BYTES or len(group) >= scratch.ROWS_AT_ONCE:
            yield numbers, group
            numbers, group, size, is_first = [], [], 0, False
    if group or is_first:
        yield numbers, group


def cells_size(cells: Iterable[Any]) -> int:
    """Return the bytes that the cells of a row take, 8 for a value that is no text.

    >>> cells_size(["Tent", 9.5, None])
    28
    """
    return sum(CELL_BYTES + (len(c) if isinstance(c, str | bytes) else 0) for c in cells)


def pick_name(name: str, names: Sequence[str], kind: str, label: str) -> str:
    """Return the name that `name` spells in any case, or the only name where it is empty.

    kind: what is named, such as "table". Raises `DataError` that lists the names.
    """
    listed = f"({kind}s: {listed_names(names)})"
    if name:
        in_any_case = [each for each in names if each.casefold() == name.casefold()]
        if name not in names and not in_any_case:
            raise DataError(
                f"{label}: no {kind} {name!r} in it{suggest(name, list(names))} {listed}"
            )
        if name in names:
            return name
        if len(in_any_case) > 1:
            raise DataError(
                f"{label}: {name!r} fits {len(in_any_case):,} {kind}s that differ in case alone; "
                f"write one of them as it is: {listed_names(in_any_case)}"
            )
        return in_any_case[0]
    if not names:
        raise DataError(f"{label}: there is no {kind} in it")
    if len(names) > 1:
        raise DataError(
            f"{label}: {len(names):,} {kind}s are in it; say which, such as {label}#{names[0]} "
            f"{listed}"
        )
    return names[0]


def check_width(width: int, label: str) -> None:
    """Raise `DataError` where a table has more columns than a workspace can keep."""
    if width > COLUMNS.value:
        raise DataError(
            f"{label}: {width:,} columns, and a workspace keeps {COLUMNS.value:,} at most; leave "
            "out those that are not needed"
        )


def check_names(names: Sequence[str], label: str) -> None:
    """Raise `DataError` where a table has more columns than a workspace can keep, or longer names.

    >>> check_names(["id", "x" * 2000], "items.csv")
    Traceback (most recent call last):
    qkvsearch.errors.DataError: items.csv: more than 1,000 characters of a column's name are refused
    """
    check_width(len(names), label)
    NAME.check(max(map(len, names), default=0), label)


def rows_at_once(n_columns: int) -> int:
    """Return how many rows of a table are read at a time."""
    return max(1, min(scratch.ROWS_AT_ONCE, BATCH_BYTES // (CELL_BYTES * max(1, n_columns))))


def header_row(n_cells: Sequence[int], n_filled: Sequence[int]) -> int:
    """Return which of the rows that are not blank has the names of the columns.

    It is the first one with at least as many cells as most rows have. It is row 0 where that is
    doubtful: more than `MAX_ABOVE` rows are above it, or fewer than `MIN_SAME_WIDTH` of the rows
    below have as many cells. n_cells: the cells of each row; n_filled: without empty ones at the
    end.

    >>> header_row([1, 3, 3, 3], [1, 3, 2, 3])
    1
    """
    usual, usually_filled = map(_most_common, (n_cells, n_filled))
    pairs = list(zip(n_cells, n_filled, strict=True))
    # A delimiter may end each line, but for that of the names.
    usual -= min((n - filled for n, filled in pairs if n == usual), default=0)
    fits = (n >= usual and filled >= usually_filled for n, filled in pairs)
    row = next((row for row, fit in enumerate(fits) if fit), 0)
    below = n_cells[row + 1 :]
    is_table = len(below) > 0 and below.count(n_cells[row]) >= MIN_SAME_WIDTH * len(below)
    return row if is_table and row <= MAX_ABOVE else 0


def _most_common(numbers: Sequence[int]) -> int:
    """Return the most common of the numbers above 1, of several the first; 1 where none is."""
    ((number, _),) = Counter(n for n in numbers if n > 1).most_common(1) or [(1, 0)]
    return number


def begins_with_number(cells: Sequence[Any]) -> bool:
    """Return whether the first cell is a number: such a row holds data and is no header."""
    return bool(cells) and re.fullmatch(A_NUMBER, str(cells[0]).strip(' "\r\n')) is not None


def note_above(report: ReadReport, rows: int, text: str) -> None:
    """Note how many rows above the table were left out, and how they begin."""
    start = " ".join(text.split())[:40].rstrip(" ,;|")
    report.above = start
    report.note(rows, "lines above the table, left out: {n} ({start!r})", start=start)


def text_lengths(frame: pd.DataFrame) -> np.ndarray:
    """Return how many characters each cell of text has (n, columns), 0 where it is empty."""
    lengths = [frame[name].str.len().fillna(0).to_numpy(np.int64) for name in frame]
    return np.stack(lengths, axis=1) if lengths else np.zeros((len(frame), 0), np.int64)


def without_long_cells(
    frame: pd.DataFrame, lengths: np.ndarray, report: ReadReport
) -> pd.DataFrame:
    """Return a frame without the rows that have a cell longer than the limit."""
    too_long = (lengths > CELL.value).any(axis=1)
    if not too_long.any():
        return frame
    report.skip(TOO_LONG, frame.index[too_long])
    return frame[~too_long]


def without_headers(frame: pd.DataFrame, report: ReadReport) -> pd.DataFrame:
    """Return a frame without the rows that repeat the names of the columns, as joined files have
    them, and the lines above each. Raises `DataError` where a header has them in another order.
    """
    names = [str(name) for name in frame]
    cells: set[Any] = {*names, *(re.sub(r"\.\d+$", "", name) for name in names)}  # see `distinct`
    cells |= {np.nan for name in names if name.startswith("Unnamed: ")}
    rows = frame[frame.iloc[:, 0].isin(cells)] if len(names) > 1 else frame[:0]
    headers = []
    for row, texts in zip(rows.index, rows.to_numpy(object), strict=True):
        header = distinct(texts) if cells.issuperset(texts) else []
        if header == names:
            headers.append(row)
        elif sorted(header) == sorted(names):
            raise DataError(
                f"{report.file}, row {row:,}: a second header has the columns in another order: "
                "split the file there, and name both files"
            )
    if not headers:
        return frame
    repeated = pd.Series(frame.index.isin(headers), frame.index)
    for _ in range(MAX_ABOVE if report.above else 0):
        repeated |= repeated.shift(-1, fill_value=False) & frame.iloc[:, 1:].isna().all(axis=1)
    report.skip("that repeats the header", frame.index[repeated])
    return frame[~repeated]


def distinct(names: Iterable[Any]) -> list[str]:
    """Return names without spaces around them; repeated ones get a number: tag, tag.1."""
    taken: dict[str, None] = {}
    for index, name in enumerate(names):
        text = "" if name is None or name != name else _whole(str(name))
        text, number = CONTROLS.sub(" ", text).strip() or f"Unnamed: {index}", 0
        new = text
        while new in taken:
            number += 1
            new = f"{text}.{number}"
        taken[new] = None
    return list(taken)


def readable(value: Any) -> str:
    """Return a value as text. Raises `DataError` for one without, such as 5,000 digits."""
    try:
        return _cell(value)
    except Exception as error:  # of a stranger's class
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"a cell of type {type(value).__name__} has no text: {reason}") from None


def _is_nested(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str | _BYTES)


def _cell(value: Any) -> str:
    if isinstance(value, _BYTES):
        return bytes(value).decode(errors="replace")
    if isinstance(value, dict):
        return _whole(json.dumps(value, ensure_ascii=False, default=_json_value))
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        whole = isinstance(value, float) and value.is_integer()
        return _whole(str(int(value) if whole else value))
    if _has_objects(value):
        entries = [entry for entry in value if entry is not None]
        return _whole(json.dumps(entries, ensure_ascii=False, default=_json_value))
    return LIST_SEPARATOR.join(
        _cell(entry) if _is_nested(entry) else without_separator(_cell(entry))
        for entry in value
        if pd.isna(entry) is not True
    )


def without_separator(entry: str) -> str:
    """Return an entry of a list without the sign that is between entries."""
    return entry.replace(LIST_SEPARATOR, INSTEAD)


def n_separators(value: Any) -> int:
    """Return how many entries of a list, or of lists in it, have the sign between entries."""
    if not _is_nested(value) or isinstance(value, dict) or _has_objects(value):
        return 0  # `tables.fields` counts those of objects
    return sum(
        LIST_SEPARATOR in entry if isinstance(entry, str) else n_separators(entry)
        for entry in value
    )


def _has_objects(entries: Any) -> bool:
    """Return whether a list has objects in it, perhaps within other lists. Its cell is JSON, of
    which `tables.fields` makes columns.
    """
    for entry in entries:
        if isinstance(entry, str):
            continue
        if isinstance(entry, dict) or (_is_nested(entry) and _has_objects(entry)):
            return True
    return False


def _json_value(value: Any) -> Any:
    """Return a value that JSON does not know as one that it does, such as an array of NumPy."""
    return list(value) if _is_nested(value) else str(value)


def _whole(text: str) -> str:
    """Write half an emoji, which cannot be stored, as its number: \\ud83d."""
    return text.encode(errors="backslashreplace").decode()
