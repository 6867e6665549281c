"""Dates of catalogs and times of logs: cells in any common form as dates, ISO text or seconds."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from qkvsearch.data.columns.facts import Reading, say_nothing
from qkvsearch.data.files.scratch import first_places, pieces_of, spread
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError
from qkvsearch.terminal import shorten

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
