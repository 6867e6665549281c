"""A log's column of times: numbers or dates, in whatever form, to whole seconds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from qkvsearch.data.columns.date_cells import COMPACT, SERIAL_DAYS, UNITS, parse_dates
from qkvsearch.data.columns.reading import say_nothing
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError

# Numbers from here on can only be times: seconds of 2001 and later, or finer units.
SECONDS_OF_NOW = 1e9


def times_of(column: pd.Series, report: ReadReport) -> np.ndarray | None:
    """The column's times (int64, n): seconds since 1970, or numbers in an order of their own.

    A row without a time comes before all others. None where no row has one. Raises `DataError`
    where at least half of the cells are no times.
    """
    seconds = _seconds(column, report)
    missing = seconds.isna()
    if missing.all():
        return None
    if n := int(missing.sum()):
        report.notes.append(f"{n:,} rows without a time count as earlier than all others")
    return seconds.fillna(seconds.min() - 1).to_numpy(dtype=np.int64)


def are_times(cells: pd.Series) -> pd.Series:
    """Which of a column's cells are dates, or numbers that can only be times.

    >>> are_times(pd.Series(["2024-03-01", "1709290000", "7", "soon"])).tolist()
    [True, True, False, False]
    """
    numbers = _numbers(cells)
    dates, _ = parse_dates(cells)
    # 1999 may be a year or a count, and 20240301 an id.
    return dates.notna() & ~(numbers.abs() < SECONDS_OF_NOW)


def _numbers(column: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers.where(numbers.abs() < 2**63)


def _seconds(column: pd.Series, report: ReadReport) -> pd.Series:
    """Whole numbers (Int64), missing where a cell is empty or no time, which is counted."""
    numbers, filled = _numbers(column), column.notna()
    if (numbers.notna() == filled).all() and not _are_dates(column, numbers):
        return _in_seconds(numbers, column.name, report)
    dates, notes = parse_dates(column)
    if not (dates.notna() & numbers.isna()).any() and not _are_dates(column, numbers):
        found = _in_seconds(numbers, column.name, report)
    else:
        since = (dates - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(seconds=1)
        found = since.astype("Int64")
        report.notes.extend(notes)
    bad = column[filled & found.isna()]
    bad, n_filled = bad[~say_nothing(bad)], int(found.notna().sum())
    if len(bad):
        _count_unreadable(bad, n_filled + len(bad), report)
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
    for unit, (lowest, beyond, in_a_second) in UNITS.items():
        of_unit = numbers.between(lowest, beyond, inclusive="left")
        if of_unit.any():
            numbers = numbers.where(~of_unit, numbers // in_a_second)
            which = "is" if of_unit.sum() == numbers.notna().sum() else "is in part"
            report.notes.append(f"column {name} {which} in {unit}, and was brought to seconds")
    return np.floor(numbers.astype("Float64")).astype("Int64")


def _count_unreadable(bad: pd.Series, filled: int, report: ReadReport) -> None:
    """Raises `DataError` where at least half of the cells are no times."""
    where = f"column {bad.name!r}: row {bad.index[0]}: {bad.iloc[0]!r} is not a time"
    if 2 * len(bad) >= filled:
        raise DataError(f"{report.file}: {where}; {len(bad):,} of {filled:,} cells are none")
    report.notes.append(f"{len(bad):,} of {filled:,} times could not be read; {where}")
    report.changed(bad.name, {"no time": len(bad)})
