"""Cells of text to dates, kept as ISO text: 2024-03-01, or 2024-03-01 10:00:00 in UTC."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from qkvsearch.data.columns.reading import Reading

LOOKS_LIKE_A_DATE = (
    r"(?i)\s*(?:[0-9]{1,4}[-/. ][0-9]{1,2}[-/. ][0-9]{1,4}"
    r"|(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,? )?(?:[0-9]{1,2}(?:st|nd|rd|th|\.)?[ -])?"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?[ -][0-9]).*"
)


def read_dates(texts: pd.Series, counts: np.ndarray, convention: str = "") -> Reading:
    """The distinct cells `texts`, of which there are `counts`, as ISO text.

    >>> read_dates(pd.Series(["2024-03-01", "March 2, 2024"]), np.ones(2)).values.tolist()
    ['2024-03-01', '2024-03-02']
    """
    likely = texts.str.fullmatch(LOOKS_LIKE_A_DATE).astype(bool)
    values = pd.Series(None, index=texts.index, dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = pd.to_datetime(
            texts[likely], errors="coerce", utc=True, format="mixed", dayfirst=True
        )
    found = found.dropna()
    midnight = (found == found.dt.normalize()).all() if len(found) else True
    values[found.index] = found.dt.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M:%S")
    reading = Reading("date", values)
    reading.change("date to ISO", (values != texts).to_numpy(bool))
    return reading
