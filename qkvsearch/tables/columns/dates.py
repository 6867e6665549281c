"""Dates of catalogs and times of logs: cells in any common form as dates, ISO text or seconds."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd

from qkvsearch._utils.scratch import pieces_of
from qkvsearch.errors import Count, DataError, quantity
from qkvsearch.tables.column_facts import ParsedCells, are_missing, examples_of
from qkvsearch.tables.columns.uncertain_dates import (
    CIRCA_READ,
    LAST_PLAIN_YEAR,
    SURE,
    TELLING,
    DateReading,
    read_uncertain,
)
from qkvsearch.tables.date_spans import BETWEEN, DAY_FIRST, UNCERTAIN
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.times import UNKNOWN_TIME

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
MAX_IN_WORDS = 64
MOMENTS = ("now", "today")  # pandas reads these as the current time
FORMS = ("%Y-%m-%d %I:%M:%S %p", "%Y-%m-%d %I:%M %p")
# Years of two digits from 69 on are of the last century, as in POSIX.
LAST_CENTURY = 69
# Numbers that are seconds since 1970 where the column has dates: 1973 to 2286.
SECONDS = (1e8, 1e10)
# For each unit, the lowest number of a time since 1980, the first one behind 2286, and how many
# make a second. A number outside these ranges, such as 20010909014640, has another meaning.
UNITS = {
    "milliseconds": (3e11, 1e13, 10**3),
    "microseconds": (3e14, 1e16, 10**6),
    "nanoseconds": (3e17, 1e19, 10**9),
}
# Dates of digits alone, and how many they have.
COMPACT = {"%Y": 4, "%Y%m%d": 8, "%Y%m%d%H%M%S": 14}
# Days since the end of 1899, as spreadsheets count them: 1954 to 2119.
SERIAL_DAYS = (20_000, 80_000)
MONTH_FIRST = "month first"
# A year before 1000 as ISO 8601 writes it, and the day that programs write for no date. pandas
# gives a date without a year one before 1000 as well.
EARLY_YEAR, NO_DAY = r"0\d{3}-\d", "0001-01-01"
FIRST_YEAR = 1000
# A day and a month in either order.
EITHER_ORDER = r"^\s*([0-9]{1,2})[/ -]([0-9]{1,2})[/ -][0-9]{2}"
NUMBERS_WITH_DOTS = r"v?[0-9]+(?:\.[0-9]+)+"
# Larger numbers can only be times: seconds of 2001 and later, or finer units.
MIN_TIME = 1e9
WITHOUT_TIME = (
    "{n} {n:row without a time counts|rows without a time count} as earlier than all others"
)


def parse_dates(
    column: pd.Series, day_first: bool | None = None, early: bool = False
) -> tuple[pd.Series, list[str]]:
    """Parse a column of text: the dates (UTC), NaT for an empty cell or no date, and notes.

    Each cell is parsed by itself, be it ISO 8601, 1/3/2024, March 1, 2024, seconds or milliseconds
    since 1970, 20240301 or a year. The order of day and month is that of the cells that allow one
    order only, or else `day_first`; without both, a note says which order was chosen. A column of
    numbers from 20,000 to 80,000 alone holds the days that spreadsheets count. early: years before
    1000 are read as well, where they have four digits.

    >>> dates, notes = parse_dates(pd.Series(["2024-03-01", "13/3/24 5 pm", "soon", None]))
    >>> dates.dt.strftime("%Y-%m-%d %H:%M").tolist(), notes
    (['2024-03-01 00:00', '2024-03-13 17:00', nan, nan], [])
    """
    codes, distinct = pd.factorize(column)
    cells = pd.Series(distinct, dtype=object).astype(str).str.strip()
    numeric = cells.str.fullmatch(NUMBER)
    dates, notes = _dates_of_texts(cells[~numeric], column.name, day_first)
    dates = pd.concat([dates, _dates_of_numbers(cells[numeric], alone=not dates.notna().any())])
    if not early:
        dates = dates.where(dates.dt.year >= FIRST_YEAR)
    dates = pd.concat([dates.reindex(cells.index), _no_dates([-1])])  # code −1: an empty cell
    return dates.iloc[codes].set_axis(column.index).rename(column.name), notes


def _no_dates(index: Any) -> pd.Series:
    return pd.Series(pd.NaT, index=index, dtype="datetime64[us, UTC]")


def _dates_of_texts(
    cells: pd.Series, name: object, default: bool | None
) -> tuple[pd.Series, list[str]]:
    """Parse distinct texts that are no numbers. default: whether the day comes first."""
    dates = _by_pandas(cells[~cells.str.lower().isin(MOMENTS)], format="ISO8601")
    dates = dates.reindex(cells.index)
    parts = cells[dates.isna()].str.extract(YEAR_FIRST).dropna(subset=["year"])
    dates.update(_from_parts(parts["year"], parts["month"], parts["day"], parts["clock"]))
    parts = cells[dates.isna()].str.extract(YEAR_LAST).dropna(subset=["year"])
    words = cells[dates.isna()].drop(index=parts.index)
    words = words[(words.str.len() <= MAX_IN_WORDS) & words.str.match(IN_WORDS)]
    dates.update(_by_pandas(words))
    dates.update(_by_pandas(words[dates[words.index].isna()], format="mixed"))
    if parts.empty:
        return dates, []
    day_first, notes = _is_day_first(parts, name, default)
    dates.update(_year_last(parts, day_first))
    return dates, notes


def _is_day_first(
    parts: pd.DataFrame, name: object, default: bool | None
) -> tuple[bool, list[str]]:
    """Decide whether the day comes before the month: by the cells, else by `default`, else the
    month comes first, with a note. With dots, the day always comes first.
    """
    doubtful = parts[parts["mark"] != "."]
    first, second = doubtful["first"].astype(int), doubtful["second"].astype(int)
    votes = int((first > 12).sum()) - int((second > 12).sum())
    if votes or (first == second).all():
        return votes > 0, []
    if default is not None:
        return default, []
    example = "/".join(doubtful[first != second].iloc[0][["first", "second", "year"]])
    return False, [f"column {name}: no cell tells day from month; {example} read month first"]


def _year_last(parts: pd.DataFrame, day_first: bool) -> pd.Series:
    """Return dates by an order of day and month, or by the other one where that is no date."""
    first, second = parts["first"].astype(int), parts["second"].astype(int)
    day_is_first = (first > 12) | ((second <= 12) & (day_first | (parts["mark"] == ".")))
    day, month = first.where(day_is_first, second), second.where(day_is_first, first)
    year = parts["year"].astype(int)
    short = parts["year"].str.len() == 2
    year += np.where(short, np.where(year < LAST_CENTURY, 2000, 1900), 0)
    return _from_parts(year, month, day, parts["clock"])


def _from_parts(year: pd.Series, month: pd.Series, day: pd.Series, clock: pd.Series) -> pd.Series:
    texts = [part.astype(str).str.zfill(n) for part, n in ((year, 4), (month, 2), (day, 2))]
    iso = texts[0] + "-" + texts[1] + "-" + texts[2]
    iso += (" " + clock.str.upper().str.strip()).fillna("")
    dates = _by_pandas(iso, format="ISO8601")
    for form in (*FORMS, "mixed"):
        dates.update(_by_pandas(iso[dates.isna()], format=form))
    return dates


def _by_pandas(texts: pd.Series, **form: str) -> pd.Series:
    """Parse texts by pandas. Years before 1000 have to be written with four digits."""
    if texts.empty:
        return _no_dates(texts.index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about texts without a common form
        dates = pd.to_datetime(texts, errors="coerce", utc=True, **form).dt.as_unit("us")
    has_year = dates.dt.year >= FIRST_YEAR
    if not (has_year | dates.isna()).all():
        has_year |= texts.str.match(EARLY_YEAR) & ~texts.str.startswith(NO_DAY)
    return dates.where(has_year)


def _dates_of_numbers(cells: pd.Series, alone: bool) -> pd.Series:
    """Parse distinct numbers. alone: the column has no other dates."""
    numbers = pd.to_numeric(cells, errors="coerce").astype(float)
    if alone and len(numbers) and numbers.between(*SERIAL_DAYS).all():
        return pd.to_datetime(numbers, unit="D", origin="1899-12-30", utc=True).dt.as_unit("us")
    values = numbers.to_numpy(copy=True)
    to_seconds(values)
    seconds = pd.Series(values, cells.index)
    seconds = seconds.where(seconds.between(*SECONDS, inclusive="left"))
    dates = pd.to_datetime(seconds, unit="s", utc=True).dt.as_unit("us")
    for form, n_digits in COMPACT.items():
        texts = cells[cells.str.fullmatch(rf"(?:1[5-9]|2\d)\d{{{n_digits - 2}}}")]
        dates.update(_by_pandas(texts, format=form))
    return dates


# --- a column of dates in a catalog ---


def read_dates(
    texts: pd.Series, counts: np.ndarray, convention: str = "", *, requested: bool = False
) -> ParsedCells:
    """Parse distinct cells to ISO text, with the time of day where any of them has one. A column
    with uncertain dates has spans of time as well, as `date_spans` describes them.

    convention: as in `ParsedCells`, "day first" or "month first", behind "uncertain" in a column
    with uncertain dates. requested: the caller says that these are dates.

    >>> two = np.ones(2)
    >>> read_dates(pd.Series(["2024-03-01", "March 2, 2024"]), two).values.tolist()
    ['2024-03-01', '2024-03-02']
    >>> read_dates(pd.Series(["1850", "c. 1890"]), two).values.tolist()
    ['1850', '1880/1900']
    """
    day_first = convention.endswith(DAY_FIRST) if convention.endswith("first") else None
    column, notes = parse_dates(texts, day_first, early=True)
    cells = _UncertainDates(texts, counts, column)
    if convention.startswith(UNCERTAIN) or cells.are_dates(requested):
        parsed = cells.parsed()
        column = column.where(cells.is_exact)
    else:
        parsed = ParsedCells("date", _as_iso(column))
    parsed.convention = ", ".join(filter(None, (parsed.convention, _convention(texts, column))))
    if texts[parsed.values.isna()].str.fullmatch(NUMBERS_WITH_DOTS).any():
        parsed.doubts = "version numbers"
    is_changed = (parsed.values != texts.str.strip()).to_numpy(bool)
    for noted in parsed.changed.values():
        is_changed = is_changed & ~noted
    parsed.change("written as ISO", is_changed)
    for note in notes:
        either = texts.str.match(EITHER_ORDER).to_numpy(bool)
        parsed.change(f"ambiguous: {note.rpartition('; ')[2]}", either)
    return parsed


def _as_iso(column: pd.Series) -> pd.Series:
    """Write dates as ISO 8601, with the time of day where any of them has one."""
    dates = column.dropna()
    at_midnight = (dates == dates.dt.normalize()).all()
    iso = np.datetime_as_string(
        dates.dt.tz_localize(None).to_numpy("datetime64[s]"), unit="D" if at_midnight else "s"
    )
    values = pd.Series(iso, index=dates.index, dtype=object).str.replace("T", " ", regex=False)
    return values.reindex(column.index)


# --- uncertain dates ---

# What most people write as a range of years, and ISO 8601 as a month: 1890-95.
YEAR_AND_TWO_DIGITS = r"\s*(\d\d)(\d\d)-(\d\d)\s*"
# A text that may be an uncertain date: short, with a digit or a Roman or Chinese numeral.
MAY_BE_UNCERTAIN = r"(?is)^(?=.{1,80}$)(?:.*\d|.*\b[ivx]+(?:e|ème)?\b|.*[世])"
# How many are read before all of them, and the share of them that has to be dates.
PROBE, PROBED = 50, 0.5
# The share of the cells of a column that have to be dates, and that without words beside them.
MIN_DATES, MIN_STRICT = 0.95, 0.8
MIN_PLAUSIBLE = 0.8


class _UncertainDates:
    """The distinct cells of a column, read as exact dates where they are, and as uncertain ones."""

    def __init__(self, texts: pd.Series, counts: np.ndarray, column: pd.Series) -> None:
        self.texts, self.counts = texts, counts
        # What pandas reads, NaT where it reads no date.
        self.column = column
        # Which cells are read as pandas reads them, once `parsed` has read all.
        self.is_exact = column.notna().to_numpy(bool)

    def are_dates(self, requested: bool) -> bool:
        """Return whether the column has uncertain dates, or years before our era.

        requested: the caller says that its cells are dates, so that one of them is enough.
        """
        if self._has_ranges_beside_years():
            return True
        unread = self.column.isna()
        if not unread.any():
            return False
        may_be = unread & self.texts.str.match(MAY_BE_UNCERTAIN)
        if not requested and not self._are_likely(unread, may_be):
            return False
        found = [read_uncertain(text) for text in self.texts[may_be]]
        uncertain = [reading for reading in found if reading is not None]
        if requested:
            return any(reading.is_strict for reading in uncertain)
        n_cells, n_exact = self.counts.sum(), self.counts[~unread.to_numpy(bool)].sum()
        n_of = self.counts[may_be.to_numpy(bool)].tolist()
        n_read = n_strict = n_exact
        for n, reading in zip(n_of, found, strict=True):
            if reading is not None:
                n_read += n
                n_strict += n if reading.is_strict else 0
        if n_read < MIN_DATES * n_cells or n_strict < MIN_STRICT * n_cells:
            return False
        return self._is_told_by(uncertain)

    def _has_ranges_beside_years(self) -> bool:
        """Return whether 1900-10 is a range, and no month: most other cells are years, and no cell
        has a month that is surely one.
        """
        digits = self.texts.str.extract(rf"^{YEAR_AND_TWO_DIGITS}$").dropna().astype(int)
        if digits.empty or (digits[2] <= digits[1]).any():
            return False
        is_other = ~self.texts.index.isin(digits.index)
        are_years = self.texts.str.fullmatch(r"\s*\d{4}\s*").to_numpy(bool)
        has_month = is_other & ~are_years & self.column.notna().to_numpy(bool)
        n_years, n_short = self.counts[are_years].sum(), self.counts[~is_other].sum()
        return bool(n_years > n_short and not has_month.any())

    def _are_likely(self, unread: pd.Series, may_be: pd.Series) -> bool:
        """Return whether enough cells may be dates, by the first ones: reading all takes long."""
        n_possible = self.counts[(~unread | may_be).to_numpy(bool)].sum()
        if n_possible < MIN_DATES * self.counts.sum():
            return False
        probed = self.texts[may_be].iloc[:PROBE]
        readings = [read_uncertain(text) for text in probed]
        n_dates = sum(reading is not None and reading.is_strict for reading in readings)
        return n_dates >= PROBED * len(probed)

    def _is_told_by(self, uncertain: list[DateReading]) -> bool:
        """Return whether these cells say that the column has dates, and no amounts or codes."""
        marks = frozenset().union(*(reading.marks for reading in uncertain))
        if marks & SURE:
            return True
        # About 1500, or 1200-1500, may be an amount. Beside years that is unlikely.
        years = self.texts[self.texts.str.fullmatch(r"\s*\d{3,4}\s*")].astype(int)
        are_years = years.between(FIRST_YEAR, LAST_PLAIN_YEAR)
        if marks & TELLING:
            return bool(years.empty or are_years.mean() >= MIN_PLAUSIBLE)
        has_ranges = any(BETWEEN in reading.stored for reading in uncertain)
        n_years = self.counts[self.texts.index.isin(years.index[are_years])].sum()
        return bool(has_ranges and 2 * n_years >= self.counts.sum())

    def parsed(self) -> ParsedCells:
        """Return the cells as spans of time."""
        digits = self.texts.str.extract(rf"^{YEAR_AND_TWO_DIGITS}$").dropna().astype(int)
        # 1890-95 says how the column writes 1910-12.
        has_short_ranges = bool(((digits[2] > digits[1]) & (digits[2] > 12)).any())
        has_short_ranges = has_short_ranges or self._has_ranges_beside_years()
        readings = [read_uncertain(text, has_short_ranges) for text in self.texts]
        is_exact = [
            date is not pd.NaT and (reading is None or not _says_more(reading))
            for date, reading in zip(self.column, readings, strict=True)
        ]
        self.is_exact = np.array(is_exact, dtype=bool)
        stored = [None if reading is None else reading.stored for reading in readings]
        values = pd.Series(stored, index=self.texts.index, dtype=object)
        values = values.mask(self.is_exact, _as_iso(self.column.where(self.is_exact)))
        parsed = ParsedCells("date", values, convention=UNCERTAIN)
        has_circa = [reading is not None and reading.has_circa for reading in readings]
        circa = np.array(has_circa, dtype=bool) & ~self.is_exact
        parsed.change(CIRCA_READ, circa)
        as_spans = values.str.contains(BETWEEN, na=False).to_numpy(bool)
        parsed.change("read as a span of years", as_spans & ~circa)
        is_early = values.str.match("-|0000", na=False).to_numpy(bool)
        parsed.change("BCE written as a year below 1", is_early & ~circa & ~as_spans)
        return parsed


def _says_more(reading: DateReading) -> bool:
    """Return whether a reading says more than the day that pandas reads, such as the first of 1850:
    it is a range, or a year or a month alone.
    """
    return bool(reading.marks & TELLING) or BETWEEN in reading.stored or not reading.marks


def _convention(texts: pd.Series, dates: pd.Series) -> str:
    """Return how most of the cells were read that are dates in either order; "" without any."""
    parts = texts[dates.notna()].str.extract(EITHER_ORDER).dropna().astype(int)
    either = parts[(parts[0] != parts[1]) & (parts.max(axis=1) <= 12)]
    if either.empty:
        return ""
    day_first = dates[either.index].dt.day == either[0]
    return DAY_FIRST if np.mean(day_first) > 0.5 else MONTH_FIRST


# --- a column of times in a log ---


def are_times(cells: pd.Series) -> pd.Series:
    """Return which cells are dates, or numbers that can only be times.

    >>> are_times(pd.Series(["2024-03-01", "1709290000", "7", "soon"])).tolist()
    [True, True, False, False]
    """
    dates, _ = parse_dates(cells)
    # 1999 may be a year or a count, and 20240301 an id.
    return dates.notna() & ~(_numbers_of_64_bits(cells).abs() < MIN_TIME)


def seconds_of(cells: pd.Series, counts: np.ndarray, report: ReadReport) -> np.ndarray:
    """Return the times (int64, m) of distinct texts, `UNKNOWN_TIME` for a text that is no time.

    The index of `cells` is the first row of each, ascending; counts (m,): how many rows have it.
    Raises `DataError` where more than half of the cells are no times.
    """
    numbers = _numbers_of_64_bits(cells)
    dates, notes = parse_dates(cells)
    if (dates.notna() & numbers.isna()).any() or _may_be_dates(cells, numbers):
        # In seconds, which reach further than nanoseconds.
        since = dates.dt.floor("s").dt.as_unit("s") - pd.Timestamp(0, tz="UTC").as_unit("s")
        seconds = since.dt.total_seconds().astype("Int64")
        report.notes += notes
    else:
        values = numbers.to_numpy(copy=True)
        note_units(to_seconds(values), int(numbers.notna().sum()), cells.name, report)
        seconds = np.floor(pd.Series(values).astype("Float64")).astype("Int64")
    missing = seconds.isna().to_numpy(bool)
    bad = missing.copy()
    bad[missing] = ~are_missing(cells[missing])
    if bad.any():
        n_bad, n_good = int(counts[bad].sum()), int(counts[~missing].sum())
        _note_unreadable(cells[bad], n_bad, n_bad + n_good, report)
    return seconds.fillna(UNKNOWN_TIME).to_numpy(dtype=np.int64)


def seconds_of_numbers(values: np.ndarray, name: object, report: ReadReport) -> bool:
    """Change whole numbers (int64, n) in place into seconds; `UNKNOWN_TIME` stays.

    Return False, and change nothing, where all may be dates: their texts have to be parsed.
    """
    low, high = SERIAL_DAYS
    n_digits, n_numbers = COMPACT["%Y%m%d"], 0
    are_days = are_compact = True
    for rows in pieces_of(len(values)):
        numbers = values[rows][values[rows] != UNKNOWN_TIME]
        n_numbers += len(numbers)
        are_days &= bool(((numbers >= low) & (numbers <= high)).all())
        are_compact &= bool(((numbers >= 10 ** (n_digits - 1)) & (numbers < 10**n_digits)).all())
    if are_days or are_compact:
        return False
    note_units(to_seconds(values), n_numbers, name, report)
    return True


def to_seconds(numbers: np.ndarray) -> dict[str, int]:
    """Bring numbers (n,) in finer units to seconds, in place. Return how many are in each unit."""
    in_unit = dict.fromkeys(UNITS, 0)
    for rows in pieces_of(len(numbers)):
        piece = numbers[rows]
        for unit, (low, end, in_a_second) in UNITS.items():
            of_unit = (piece >= low) & (piece < end)
            in_unit[unit] += int(of_unit.sum())
            piece[of_unit] //= in_a_second
    return in_unit


def _numbers_of_64_bits(column: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers.where(numbers.abs() < 2**63)


def _may_be_dates(cells: pd.Series, numbers: pd.Series) -> bool:
    """Return whether all numbers are dates such as 20240301, or days as spreadsheets count them."""
    numbers = numbers.dropna()
    if numbers.empty or numbers.between(*SERIAL_DAYS).all():
        return True
    texts = cells[numbers.index].str.strip()
    return bool(
        (texts.str.len() == COMPACT["%Y%m%d"]).all() and parse_dates(texts)[0].notna().all()
    )


def note_units(in_unit: Mapping[str, int], n: int, name: object, report: ReadReport) -> None:
    """Note how many of `n` numbers were in which finer unit than seconds."""
    for unit, count in in_unit.items():
        if count:
            which = "is" if count == n else "is in part"
            report.notes.append(f"column {name} {which} in {unit}, and was brought to seconds")


def _note_unreadable(bad: pd.Series, n_bad: int, n_filled: int, report: ReadReport) -> None:
    """Note cells that are no times. Raises `DataError` where they are more than half of them."""
    first = f"the first in row {report.where(int(bad.index[0]))}"
    verb = f"{Count(n_bad):is not a time|are not times}"
    message = f"column {bad.name!r}: {n_bad:,} of {quantity(n_filled, 'cell')} {verb}, {first}"
    if 2 * n_bad > n_filled:
        advice = f"name another `time_column`, or use `ignore` {quote(str(bad.name))}"
        raise DataError(f"{report.file}: {message}: {advice}")
    report.notes.append(message)
    report.changed(bad.name, {"no time": n_bad}, examples=examples_of(bad))
