"""Dates in whatever form people and programs write them, read cell by cell."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
# Three numbers, the year last or first, and perhaps a time of day.
CLOCK = r"(?:[ T,]+(?P<clock>\d.*))?$"
YEAR_LAST = (
    r"^(?P<first>\d{1,2})(?P<mark>[./ -])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4}|\d{2})" + CLOCK
)
YEAR_FIRST = r"^(?P<year>\d{4})[./年-](?P<month>\d{1,2})[./月-](?P<day>\d{1,2})日?" + CLOCK
# A month by its English name, and a number beside it.
IN_WORDS = (
    r"(?i)^(?=.*\d)(?:.*[^a-z])?"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}(?:[^a-z].*)?$"
)
LONGEST_IN_WORDS = 64
NO_DATES = ("now", "today")  # which pandas takes for this very moment
FORMS = ("%Y-%m-%d %I:%M:%S %p", "%Y-%m-%d %I:%M %p")
# In two digits, as POSIX has it: 69 to 99 are of the last century.
LAST_CENTURY = 69
# Numbers that are seconds since 1970 beside dates: of 1973 to 2286.
SECONDS = (1e8, 1e10)
# For each unit the range, from and below, of times between 1980 and 2286, and how many make a
# second. Numbers outside the ranges, such as 20010909014640, are none of these.
UNITS = {
    "milliseconds": (3e11, 1e13, 10**3),
    "microseconds": (3e14, 1e16, 10**6),
    "nanoseconds": (3e17, 1e19, 10**9),
}
# Dates without anything between their parts, and how many digits they have.
COMPACT = {"%Y": 4, "%Y%m%d": 8, "%Y%m%d%H%M%S": 14}
# Days since the end of 1899, as spreadsheets count them: 1954 to 2119.
SERIAL_DAYS = (20_000, 80_000)


def parse_dates(column: pd.Series, day_first: bool | None = None) -> tuple[pd.Series, list[str]]:
    """The dates (UTC) of a column of text, NaT for cells that are empty or no date, and notes.

    Each cell is read by itself, be it ISO 8601, 1/3/2024, March 1, 2024, seconds or milliseconds
    since 1970, 20240301 or a year; but whether the day or the month comes first is decided for the
    column, from the cells that leave no choice, or else by `day_first`; a note says where neither
    tells. A column that is all numbers from 20,000 to 80,000 is taken for the days that
    spreadsheets count.

    >>> dates, notes = parse_dates(pd.Series(["2024-03-01", "13/3/24 5 pm", "soon", None]))
    >>> dates.dt.strftime("%Y-%m-%d %H:%M").tolist(), notes
    (['2024-03-01 00:00', '2024-03-13 17:00', nan, nan], [])
    """
    codes, distinct = pd.factorize(column)
    cells = pd.Series(distinct, dtype=object).astype(str).str.strip()
    numeric = cells.str.fullmatch(NUMBER)
    found, notes = _of_texts(cells[~numeric], column.name, day_first)
    found = pd.concat([found, _of_numbers(cells[numeric], alone=not found.notna().any())])
    found = pd.concat([found.reindex(cells.index), _nothing([-1])])  # code -1: no cell
    return found.iloc[codes].set_axis(column.index).rename(column.name), notes


def iso_dates(cells: pd.Series) -> pd.Series:
    """The dates (UTC) of distinct texts that are ISO 8601, NaT for others: these are read without a
    look at the other cells of a column.

    >>> iso_dates(pd.Series(["2024-03-01 10:00", "1/3/24"])).isna().tolist()
    [False, True]
    """
    stripped = cells.str.strip()
    other = stripped.str.lower().isin(NO_DATES) | stripped.str.fullmatch(NUMBER)
    return _parsed(stripped[~other], format="ISO8601").reindex(cells.index)


def _nothing(index: Any) -> pd.Series:
    return pd.Series(pd.NaT, index=index, dtype="datetime64[us, UTC]")


def _of_texts(cells: pd.Series, name: object, told: bool | None) -> tuple[pd.Series, list[str]]:
    """Of distinct texts that are no numbers, and what is doubtful of them."""
    found = _parsed(cells[~cells.str.lower().isin(NO_DATES)], format="ISO8601")
    found = found.reindex(cells.index)
    parts = cells[found.isna()].str.extract(YEAR_FIRST).dropna(subset=["year"])
    found.update(_from_parts(parts["year"], parts["month"], parts["day"], parts["clock"]))
    parts = cells[found.isna()].str.extract(YEAR_LAST).dropna(subset=["year"])
    words = cells[found.isna()].drop(index=parts.index)
    words = words[(words.str.len() <= LONGEST_IN_WORDS) & words.str.match(IN_WORDS)]
    found.update(_parsed(words))
    found.update(_parsed(words[found[words.index].isna()], format="mixed"))
    if parts.empty:
        return found, []
    day_first, notes = _day_first(parts, found, name, told)
    found.update(_year_last(parts, day_first))
    return found, notes


def _day_first(
    parts: pd.DataFrame, others: pd.Series, name: object, told: bool | None
) -> tuple[bool, list[str]]:
    """Whether the day comes before the month: as the cells tell, else as told, else with a note.

    Then the order is taken that puts more of the dates among those of the other cells, or else
    the month comes first. Dots always mean that the day does.
    """
    doubtful = parts[parts["mark"] != "."]
    first, second = doubtful["first"].astype(int), doubtful["second"].astype(int)
    votes = int((first > 12).sum()) - int((second > 12).sum())
    if votes or (first == second).all():
        return votes > 0, []
    if told is not None:
        return told, []
    example = "/".join(doubtful[first != second].iloc[0][["first", "second", "year"]])
    known = others.dropna()
    inside = [
        int(_year_last(doubtful, order).between(known.min(), known.max()).sum())
        if len(known)
        else 0
        for order in (False, True)
    ]
    day_first = inside[1] > inside[0]
    order = "day" if day_first else "month"
    return day_first, [f"column {name}: no cell tells day from month; {example} read {order} first"]


def _year_last(parts: pd.DataFrame, day_first: bool) -> pd.Series:
    """Dates whose day and month stand in this order, or in the other where that is no month."""
    first, second = parts["first"].astype(int), parts["second"].astype(int)
    day_is_first = (first > 12) | ((second <= 12) & (day_first | (parts["mark"] == ".")))
    day, month = first.where(day_is_first, second), second.where(day_is_first, first)
    year = parts["year"].astype(int)
    short = parts["year"].str.len() == 2
    year += np.where(short, np.where(year < LAST_CENTURY, 2000, 1900), 0)
    return _from_parts(year, month, day, parts["clock"])


def _from_parts(year: pd.Series, month: pd.Series, day: pd.Series, clock: pd.Series) -> pd.Series:
    dates = [part.astype(str).str.zfill(n) for part, n in ((year, 4), (month, 2), (day, 2))]
    texts = dates[0] + "-" + dates[1] + "-" + dates[2]
    texts += (" " + clock.str.upper().str.strip()).fillna("")
    found = _parsed(texts, format="ISO8601")
    for form in (*FORMS, "mixed"):
        left = texts[found.isna()]
        found.update(_parsed(left, format=form))
    return found


def _parsed(texts: pd.Series, **form: str) -> pd.Series:
    """By pandas; a year before 1000 is one that the text lacks."""
    if texts.empty:
        return _nothing(texts.index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of no common form, which is no surprise
        dates = pd.to_datetime(texts, errors="coerce", utc=True, **form).dt.as_unit("us")
    return dates.where(dates.dt.year >= 1000)


def _of_numbers(cells: pd.Series, alone: bool) -> pd.Series:
    """Of distinct numbers; alone: there are no dates beside them."""
    numbers = pd.to_numeric(cells, errors="coerce").astype(float)
    if alone and len(numbers) and numbers.between(*SERIAL_DAYS).all():
        return pd.to_datetime(numbers, unit="D", origin="1899-12-30", utc=True).dt.as_unit("us")
    seconds = numbers.where(numbers.between(*SECONDS, inclusive="left"))
    for lowest, beyond, in_a_second in UNITS.values():
        of_unit = numbers.between(lowest, beyond, inclusive="left")
        seconds = seconds.where(~of_unit, numbers // in_a_second)
    found = pd.to_datetime(seconds, unit="s", utc=True).dt.as_unit("us")
    for form, n_digits in COMPACT.items():
        of_form = cells[cells.str.fullmatch(rf"(?:1[5-9]|2\d)\d{{{n_digits - 2}}}")]
        found.update(_parsed(of_form, format=form))
    return found
