"""A log's column of times: numbers or dates, in whatever form, to whole seconds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from qkvsearch.data.columns.date_cells import COMPACT, SERIAL_DAYS, UNITS, parse_dates
from qkvsearch.data.columns.reading import say_nothing
from qkvsearch.data.files.scratch import first_places, pieces_of, spread
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError
from qkvsearch.terminal import shorten

# Numbers from here on can only be times: seconds of 2001 and later, or finer units.
SECONDS_OF_NOW = 1e9
WITHOUT_TIME = "{n} rows without a time count as earlier than all others"
# Where a cell has no time.
MISSING = int(np.iinfo(np.int64).min)


def times_of(column: pd.Series, report: ReadReport) -> np.ndarray | None:
    """The column's times (int64, n): seconds since 1970, or numbers in an order of their own.

    A row without a time comes before all others. None where no row has one. Raises `DataError`
    where at least half of the cells are no times.
    """
    codes, distinct = pd.factorize(column)
    first = first_places(codes, len(distinct))
    cells = pd.Series(distinct, column.index[first], dtype=object, name=column.name)
    seconds = seconds_of(cells, np.bincount(codes[codes >= 0], minlength=len(distinct)), report)
    return with_missing(spread(np.append(seconds, MISSING), codes), report)


def with_missing(seconds: np.ndarray, report: ReadReport) -> np.ndarray | None:
    """Times (int64, n), those that are `MISSING` before all others; None where all are."""
    missing = seconds == MISSING
    n_missing = int(np.count_nonzero(missing))
    if n_missing == len(seconds):
        return None
    if n_missing:
        report.note(n_missing, WITHOUT_TIME)
        seconds[missing] = seconds[~missing].min() - 1
    return seconds


def seconds_of(cells: pd.Series, counts: np.ndarray, report: ReadReport) -> np.ndarray:
    """The times (int64, m) of distinct cells of text, `MISSING` for what is none, which is counted.
    The index of `cells` is the first row of each, ascending; counts (m,): how many rows have it.
    """
    found = _seconds(cells, counts, report)
    return found.astype("Int64").fillna(MISSING).to_numpy(dtype=np.int64)


def seconds_of_numbers(values: np.ndarray, name: object, report: ReadReport) -> bool:
    """The same of whole numbers (int64, n), in place, `MISSING` where a cell is empty. False, and
    nothing is changed, where all may be dates: then their texts tell.
    """
    low, high = SERIAL_DAYS
    in_unit, n_known = dict.fromkeys(UNITS, 0), 0
    are_days = are_compact = True
    for rows in pieces_of(len(values)):
        known = values[rows][values[rows] != MISSING]
        n_known += len(known)
        are_days = are_days and bool(((known >= low) & (known <= high)).all())
        digits = COMPACT["%Y%m%d"]
        eight = (known >= 10 ** (digits - 1)) & (known < 10**digits)
        are_compact = are_compact and bool(eight.all())
        for unit, (lowest, beyond, _) in UNITS.items():
            in_unit[unit] += int(((known >= lowest) & (known < beyond)).sum())
    if are_days or are_compact:
        return False
    note_units(in_unit, n_known, name, report)
    for unit, (lowest, beyond, in_a_second) in UNITS.items():
        if in_unit[unit]:
            for rows in pieces_of(len(values)):
                of_unit = (values[rows] >= lowest) & (values[rows] < beyond)
                values[rows][of_unit] //= in_a_second
    return True


def are_times(cells: pd.Series) -> pd.Series:
    """Which of a column's cells are dates, or numbers that can only be times.

    >>> are_times(pd.Series(["2024-03-01", "1709290000", "7", "soon"])).tolist()
    [True, True, False, False]
    """
    numbers = numbers_of(cells)
    dates, _ = parse_dates(cells)
    # 1999 may be a year or a count, and 20240301 an id.
    return dates.notna() & ~(numbers.abs() < SECONDS_OF_NOW)


def numbers_of(column: pd.Series) -> pd.Series:
    """Those that 64 bits hold."""
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers.where(numbers.abs() < 2**63)


def _seconds(cells: pd.Series, counts: np.ndarray, report: ReadReport) -> pd.Series:
    """Whole numbers (Int64), missing where a cell is no time, which is counted."""
    numbers = numbers_of(cells)
    if numbers.notna().all() and not _are_dates(cells, numbers):
        return _in_seconds(numbers, cells.name, report)
    dates, notes = parse_dates(cells)
    if not (dates.notna() & numbers.isna()).any() and not _are_dates(cells, numbers):
        found = _in_seconds(numbers, cells.name, report)
    else:
        # In seconds, which reach further than nanoseconds.
        since = dates.dt.floor("s").dt.as_unit("s") - pd.Timestamp(0, tz="UTC").as_unit("s")
        found = since.dt.total_seconds().astype("Int64")
        report.notes.extend(notes)
    unread = found.isna().to_numpy(bool)
    bad = unread.copy()
    bad[unread] = ~say_nothing(cells[unread])
    n_bad, n_found = int(counts[bad].sum()), int(counts[~unread].sum())
    if n_bad:
        _count_unreadable(cells[bad], n_bad, n_bad + n_found, report)
    return found


def _are_dates(column: pd.Series, numbers: pd.Series) -> bool:
    """Whether all numbers are 20240301, or days as spreadsheets count them."""
    known = numbers.dropna()
    if known.empty:
        return True
    if known.between(*SERIAL_DAYS).all():
        return True
    texts = column[known.index].str.strip()
    return bool(
        (texts.str.len() == COMPACT["%Y%m%d"]).all() and parse_dates(texts)[0].notna().all()
    )


def _in_seconds(numbers: pd.Series, name: object, report: ReadReport) -> pd.Series:
    """Numbers as they are, but finer units than seconds, which are said."""
    n, (found, in_unit) = int(numbers.notna().sum()), whole_seconds(numbers)
    note_units(in_unit, n, name, report)
    return found


def whole_seconds(numbers: pd.Series) -> tuple[pd.Series, dict[str, int]]:
    """Numbers as whole seconds (Int64), and how many were in which finer unit."""
    in_unit = {}
    for unit, (lowest, beyond, in_a_second) in UNITS.items():
        of_unit = numbers.between(lowest, beyond, inclusive="left")
        if n := int(of_unit.sum()):
            numbers, in_unit[unit] = numbers.where(~of_unit, numbers // in_a_second), n
    return np.floor(numbers.astype("Float64")).astype("Int64"), in_unit


def note_units(in_unit: Mapping[str, int], n: int, name: object, report: ReadReport) -> None:
    """How many numbers were in which finer unit than seconds; n: how many there are."""
    for unit, count in in_unit.items():
        if count:
            which = "is" if count == n else "is in part"
            report.notes.append(f"column {name} {which} in {unit}, and was brought to seconds")


def _count_unreadable(bad: pd.Series, n_bad: int, filled: int, report: ReadReport) -> None:
    """Raises `DataError` where at least half of the cells are no times."""
    cell = shorten(bad.iloc[0])
    where = f"column {bad.name!r}: row {bad.index[0]}: {cell!r} is not a time"
    if 2 * n_bad >= filled:
        raise DataError(f"{report.file}: {where}; {n_bad:,} of {filled:,} cells are none")
    report.notes.append(f"{n_bad:,} of {filled:,} times could not be read; {where}")
    report.changed(bad.name, {"no time": n_bad})
