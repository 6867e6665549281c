"""Stored dates as spans of time: the first and the last moment that a cell may be.

A stored cell is a day (2024-03-01), a month, a year (1850), or two of them as ISO 8601 writes an
interval: 1880/1900. An end that is not known is `..`, as in ../1899. Years before our era are below
1, as astronomers count them: 500 BCE is -0499, and 1 BCE is 0000.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

END = r"(-\d{4,6}|\d{4}|\d{6})(?:-(\d\d)(?:-(\d\d)(?: (\d\d)(?::(\d\d)(?::(\d\d))?)?)?)?)?"
STORED = re.compile(rf"(?:{END}|\.\.)(?:/(?:{END}|\.\.))?")
OPEN, BETWEEN = "..", "/"
# The convention of a column that has such spans, with others behind it.
UNCERTAIN = "uncertain"
# The end of the convention of a column where the day comes before the month.
DAY_FIRST = "day first"
# Years beyond all that may be stored: an open end reaches them.
FIRST_YEAR, LAST_YEAR = -999_999, 999_999
# Of cells that are days, with or without a time: their lengths, and the first year.
LENGTHS_OF_DAYS = frozenset((10, 19))
FIRST_PLAIN = "1000"
# A column whose dates reach over more years than this is counted by century.
MAX_YEARS_BY_DECADE = 200
DECADE, CENTURY = 10, 100


class DateSpan(NamedTuple):
    """The first and the last moment of a date, as numbers that grow with time."""

    first: int
    last: int


@lru_cache(maxsize=1 << 16)
def span_of(text: str) -> DateSpan | None:
    """Return the span of a stored date, or of the beginning of one; None for any other text.

    >>> span_of("1850") == span_of("1850-01-01/1850-12-31"), span_of("1850-13")
    (True, None)
    >>> span_of("-0499").last < span_of("-0043").first < span_of("0000").first
    True
    """
    if not STORED.fullmatch(text):
        return None
    first, _, last = text.partition(BETWEEN)
    if not first or first == last == OPEN or text == OPEN:
        return None
    starts, ends = _moments(first), _moments(last or first)
    if starts is None or ends is None or starts.first > ends.last:
        return None
    return DateSpan(starts.first, ends.last)


def _moments(end: str) -> DateSpan | None:
    """Return the first and the last moment of one end of a span."""
    if end == OPEN:
        return DateSpan(_moment(FIRST_YEAR, 1, 1, 0, 0, 0), _moment(LAST_YEAR, 12, 31, 23, 59, 59))
    match = re.fullmatch(END, end)
    if match is None:
        return None
    year, *parts = (None if part is None else int(part) for part in match.groups())
    assert year is not None
    first = _filled(parts, (1, 1, 0, 0, 0))
    month = first[0]
    if not 1 <= month <= 12:
        return None
    n_days = _days_of(year, month)
    last = _filled(parts, (12, 31 if parts[0] is None else n_days, 23, 59, 59))
    is_day = parts[1] is None or 1 <= parts[1] <= n_days
    if not is_day or first[2] > 23 or first[3] > 59 or first[4] > 59:
        return None
    return DateSpan(_moment(year, *first), _moment(year, *last))


def _filled(parts: Sequence[int | None], instead: Sequence[int]) -> list[int]:
    """Return the parts of a date, with others instead of those that it lacks."""
    pairs = zip(parts, instead, strict=True)
    return [other if part is None else part for part, other in pairs]


def _days_of(year: int, month: int) -> int:
    """Return the number of days of a month, in years before our era as well."""
    return monthrange(year % 400 + 400, month)[1]  # leap years repeat after 400 years


def _moment(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    """Return a number that grows with time, by equal months of 32 days."""
    return ((((year * 13 + month) * 32 + day) * 24 + hour) * 60 + minute) * 60 + second


def year_of(moment: int) -> int:
    """Return the year of a moment of a span."""
    month_and_year = moment // (32 * 24 * 3600)
    return (month_and_year - 1) // 13


def overlap(one: DateSpan, other: DateSpan) -> bool:
    """Return whether two dates may be the same."""
    return one.first <= other.last and other.first <= one.last


def earliest(cell: str) -> str:
    """Return the first year, month, day or moment of a stored date, as a stored date.

    >>> earliest("1880/1900"), earliest("../1899"), earliest("1850")
    ('1880-01-01', '-999999-01-01', '1850-01-01')
    """
    first = cell.partition(BETWEEN)[0]
    if first == OPEN:
        return f"{FIRST_YEAR}-01-01"
    return _with_parts(first, "-01", "-01")


def latest(cell: str) -> str:
    """Return the last year, month, day or moment of a stored date, as a stored date.

    >>> latest("1880/1900"), latest("1851/.."), latest("1850-02")
    ('1900-12-31', '999999-12-31', '1850-02-28')
    """
    last = cell.rpartition(BETWEEN)[2]
    if last == OPEN:
        return f"{LAST_YEAR}-12-31"
    match = re.fullmatch(END, last)
    if match is None or match[3] is not None:
        return last
    n_days = _days_of(int(match[1]), int(match[2] or 12))
    return _with_parts(last, "-12", f"-{n_days:02d}")


def _with_parts(end: str, month: str, day: str) -> str:
    """Return a date with the month and the day that it lacks."""
    n_parts = end.lstrip("-").count("-")
    return end + (month + day, day, "")[min(n_parts, 2)]


def sort_key(cell: str) -> str:
    """Return a text that sorts as the first moment of a stored date does.

    >>> sorted(["1850", "0100", "-0043", "../1899", "-0499/-0400"], key=sort_key)
    ['../1899', '-0499/-0400', '-0043', '0100', '1850']
    """
    if cell.startswith(OPEN):
        return ""
    if not cell.startswith("-"):
        return cell
    year, _, rest = cell[1:].partition("-")
    return f"-{10**6 - int(year.partition(BETWEEN)[0]):06d}-{rest}"


def are_plain(cells: Collection[str | None]) -> bool:
    """Return whether all filled cells of a column are days from the year 1000 on, with or without a
    time. No span is as long as these.

    >>> are_plain(["2024-03-01", "2024-03-01 10:00:00", None]), are_plain(["2024-03-01", "1850"])
    (True, False)
    """
    lengths = set(map(len, filter(None, cells)))
    return lengths <= LENGTHS_OF_DAYS and min(filter(None, cells), default="9") >= FIRST_PLAIN


def is_plain(cell: str) -> bool:
    """Return whether a cell is a day from the year 1000 on, with or without a time."""
    return len(cell) in LENGTHS_OF_DAYS and cell >= FIRST_PLAIN


def counted_in_ranges(counts: Mapping[str, int], distinct: Collection[str]) -> dict[str, int]:
    """Count dates by decade, or by century where the column's dates reach over more than 200 years.

    A date that may be in several ranges counts in each, as a condition on each finds it. An open
    end reaches to the end of the column. distinct: all cells of the column.

    >>> counted_in_ranges({"1893": 2, "1880/1900": 1}, ["1893", "1880/1900"])
    {'1880..1889': 1, '1890..1899': 3, '1900..1909': 1}
    >>> counted_in_ranges({"1893": 2, "-0499": 1}, ["1893", "-0499"])
    {'-0499..-0400': 1, '1801..1900': 2}
    """
    spans = [span for span in map(span_of, distinct) if span is not None]
    ends = [year_of(moment) for span in spans for moment in span]
    known = [year for year in ends if FIRST_YEAR < year < LAST_YEAR]
    if not known:
        return {}
    lowest, highest = min(known), max(known)
    size = DECADE if highest - lowest < MAX_YEARS_BY_DECADE else CENTURY
    # 1890 begins a decade, and 1801 a century.
    begins = 1 if size == CENTURY else 0
    n_of: dict[int, int] = {}
    for cell, n in counts.items():
        span = span_of(str(cell))
        if span is None:
            continue
        first, last = max(year_of(span.first), lowest), min(year_of(span.last), highest)
        for number in range((first - begins) // size, (last - begins) // size + 1):
            n_of[number] = n_of.get(number, 0) + n
    return {
        f"{written(number * size + begins)}{OPEN}{written((number + 1) * size + begins - 1)}": n
        for number, n in sorted(n_of.items())
    }


def written(year: int) -> str:
    """Return a year as it is stored.

    >>> written(850), written(-43)
    ('0850', '-0043')
    """
    return f"-{-year:04d}" if year < 0 else f"{year:04d}"
