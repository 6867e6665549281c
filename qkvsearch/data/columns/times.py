"""A column of times: numbers or dates, in whatever form, to whole seconds."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError

# For each unit the range, from and below, of times between 1980 and 2286, and how many make a
# second. Numbers outside the ranges, such as 20010909014640, stay as they are.
UNITS = {
    "milliseconds": (3e11, 1e13, 10**3),
    "microseconds": (3e14, 1e16, 10**6),
    "nanoseconds": (3e17, 1e19, 10**9),
}


def times_of(column: pd.Series, report: ReadReport, given: str | None) -> np.ndarray | None:
    """The column's times; None where the column was guessed and turns out to hold no times."""
    try:
        return _seconds(column, report)
    except DataError as error:
        if given is not None:
            raise
        report.notes.append(f"column {column.name} left out: {error}")
        return None


def _dates(column: pd.Series) -> pd.Series:
    """Dates in one format for the whole column: 12/02 and 13/02 are days of the same month."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no cell has this format
        found = [
            pd.to_datetime(column, errors="coerce", utc=True, **form)
            for form in ({"format": "ISO8601"}, {}, {"dayfirst": True})
        ]
    return max(found, key=lambda dates: int(dates.notna().sum()))


def _seconds(column: pd.Series, report: ReadReport) -> np.ndarray:
    """Whole seconds (or ranks) from numbers or dates; a row without a time comes first."""
    numbers = pd.to_numeric(column, errors="coerce")
    numbers = numbers.where(numbers.abs() < 2**63)
    if numbers.notna().sum() < column.notna().sum():
        dates = _dates(column)
        if dates.notna().sum() < column.notna().sum():
            bad = column[column.notna() & dates.isna()]
            worst = bad[numbers[bad.index].isna()]
            example = (bad if worst.empty else worst).iloc[0]
            raise DataError(f"{report.file}: column {column.name!r}: {example!r} is not a time")
        numbers = (dates - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(seconds=1)
    usual = numbers.median()
    for unit, (lowest, beyond, in_a_second) in UNITS.items():
        if lowest <= usual < beyond:
            numbers = numbers // in_a_second
            report.notes.append(f"column {column.name} is in {unit}, and was brought to seconds")
    return numbers.fillna(0).to_numpy(dtype=np.int64)
