"""Cells of text to dates, kept as ISO text: 2024-03-01, or 2024-03-01 10:00:00 in UTC."""

from __future__ import annotations

import numpy as np
import pandas as pd

from qkvsearch.data.columns.date_cells import parse_dates
from qkvsearch.data.columns.reading import Reading

DAY_FIRST, MONTH_FIRST = "day first", "month first"
# A day and a month in either order.
EITHER_ORDER = r"^\s*([0-9]{1,2})[/ -]([0-9]{1,2})[/ -][0-9]{2}"
NUMBERS_WITH_DOTS = r"v?[0-9]+(?:\.[0-9]+)+"


def read_dates(texts: pd.Series, convention: str = "") -> Reading:
    """Distinct cells as ISO text, with the time of day where any of them has one. convention: as
    in `Reading`, "day first" or "month first".

    >>> read_dates(pd.Series(["2024-03-01", "March 2, 2024"])).values.tolist()
    ['2024-03-01', '2024-03-02']
    """
    dates, notes = parse_dates(texts, convention == DAY_FIRST if convention else None)
    there = dates.dropna()
    at_midnight = (there == there.dt.normalize()).all()
    iso = np.datetime_as_string(
        there.dt.tz_localize(None).to_numpy("datetime64[s]"), unit="D" if at_midnight else "s"
    )
    values = pd.Series(iso, index=there.index, dtype=object).str.replace("T", " ", regex=False)
    values = values.reindex(texts.index)
    reading = Reading("date", values)
    if texts[dates.isna()].str.fullmatch(NUMBERS_WITH_DOTS).any():
        reading.doubts = "version numbers"
    reading.convention = _convention(texts, dates)
    reading.change("written as ISO", (values != texts.str.strip()).to_numpy(bool))
    for note in notes:
        cells = texts.str.match(EITHER_ORDER).to_numpy(bool)
        reading.change(f"ambiguous: {note.rpartition('; ')[2]}", cells)
    return reading


def _convention(texts: pd.Series, dates: pd.Series) -> str:
    """Which of day and month the cells have first that can be read either way; "" without any."""
    parts = texts[dates.notna()].str.extract(EITHER_ORDER).dropna().astype(int)
    either = parts[(parts[0] != parts[1]) & (parts.max(axis=1) <= 12)]
    if either.empty:
        return ""
    day_first = dates[either.index].dt.day == either[0]
    return DAY_FIRST if np.mean(day_first) > 0.5 else MONTH_FIRST
