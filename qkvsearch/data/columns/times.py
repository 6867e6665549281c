"""A log's column of times: numbers or dates, in whatever form, to whole seconds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from qkvsearch.data.columns.date_cells import COMPACT, SERIAL_DAYS, UNITS, parse_dates
from qkvsearch.data.columns.reading import say_nothing
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError

# Numbers from here on can only be times: seconds of 2001 and later, or finer units.
SECONDS_OF_NOW = 1e9
WITHOUT_TIME = "{n} rows without a time count as earlier than all others"


def times_of(column: pd.Series, report: ReadReport) -> np.ndarray | None:
    """The column's times (int64, n): seconds since 1970, or numbers in an order of their own.

    A row without a time comes before all others. None where no row has one. Raises `DataError`
    where at least half of the cells are no times.
    """
    seconds = seconds_of(column, np.ones(len(column), np.int64), report)
    missing = seconds.isna()
    if missing.all():
        return None
    report.note(int(missing.sum()), WITHOUT_TIME)
    return seconds.fillna(seconds.min() - 1).to_numpy(dtype=np.int64)


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


def seconds_of(column: pd.Series, counts: np.ndarray, report: ReadReport) -> pd.Series:
    """Whole numbers (Int64), missing where a cell is empty or no time, which is counted. counts
    (n,): of each cell, so many there are.
    """
    numbers, filled = numbers_of(column), column.notna()
    if (numbers.notna() == filled).all() and not _are_dates(column, numbers):
        return _in_seconds(numbers, column.name, report)
    dates, notes = parse_dates(column)
    if not (dates.notna() & numbers.isna()).any() and not _are_dates(column, numbers):
        found = _in_seconds(numbers, column.name, report)
    else:
        since = (dates - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(seconds=1)
        found = since.astype("Int64")
        report.notes.extend(notes)
    unread = (filled & found.isna()).to_numpy(bool, copy=True)
    unread[unread] = ~say_nothing(column[unread])
    if unread.any():
        bad, there = column[unread], found.notna().to_numpy(bool)
        _count_unreadable(bad, int(counts[unread].sum()), int(counts[there | unread].sum()), report)
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
    n, (found, of_units) = int(numbers.notna().sum()), whole_seconds(numbers)
    note_units(of_units, n, name, report)
    return found


def whole_seconds(numbers: pd.Series) -> tuple[pd.Series, dict[str, int]]:
    """Numbers as whole seconds (Int64), and how many were in which finer unit."""
    of_units = {}
    for unit, (lowest, beyond, in_a_second) in UNITS.items():
        of_unit = numbers.between(lowest, beyond, inclusive="left")
        if n := int(of_unit.sum()):
            numbers, of_units[unit] = numbers.where(~of_unit, numbers // in_a_second), n
    return np.floor(numbers.astype("Float64")).astype("Int64"), of_units


def note_units(of_units: Mapping[str, int], n: int, name: object, report: ReadReport) -> None:
    """That numbers were in finer units than seconds; n: how many there are."""
    for unit, count in of_units.items():
        which = "is" if count == n else "is in part"
        report.notes.append(f"column {name} {which} in {unit}, and was brought to seconds")


def _count_unreadable(bad: pd.Series, n_bad: int, filled: int, report: ReadReport) -> None:
    """Raises `DataError` where at least half of the cells are no times."""
    where = f"column {bad.name!r}: row {bad.index[0]}: {bad.iloc[0]!r} is not a time"
    if 2 * n_bad >= filled:
        raise DataError(f"{report.file}: {where}; {n_bad:,} of {filled:,} cells are none")
    report.notes.append(f"{n_bad:,} of {filled:,} times could not be read; {where}")
    report.changed(bad.name, {"no time": n_bad})
