"""Dates, with or without a time of day."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from qkvsearch._utils.folding import fold
from qkvsearch.tables.column_types.column_type import ColumnType, Range, range_condition
from qkvsearch.tables.date_spans import (
    BETWEEN,
    DAY_FIRST,
    DateSpan,
    are_plain,
    counted_in_ranges,
    earliest,
    is_plain,
    overlap,
    sort_key,
    span_of,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from qkvsearch.tables.column_facts import ParsedCells

# Characters of a stored date: 2024, 2024-03 and 2024-03-01.
YEAR, MONTH, DAY = 4, 7, 10
ISO_DATE = re.compile(r"\d{4}(-\d\d(-\d\d( \d\d(:\d\d(:\d\d)?)?)?)?)?")

# A day in numbers, as people type it, in either order. MONTHS: the largest number of a month.
YEAR_FIRST = re.compile(r"(\d{4})[./年-](\d{1,2})[./月-](\d{1,2})日?")
YEAR_LAST = re.compile(
    r"(?P<first>\d{1,2})(?P<mark>[./-])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4})"
)
MONTHS = 12

# Every date has a number: digits, a Roman numeral or a century (世纪).
NUMERAL = re.compile(r"(?i)\d|\b[ivx]+(?:e|ème)?\b|世")

# A moment in UTC, which is stored without what it has beyond whole seconds.
ISO_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:\.0+)?)?(?:Z|\+00:?00)?")


class DateType(ColumnType):
    """Stored as text: 2024-03-01, or 2024-03-01 10:00:00 in UTC. A year matches all its days."""

    name = "date"
    noun = "a date"
    facet_rank = 3
    is_ordered = True
    equals_beginnings = True
    shown_as = "date"
    loses_words = True

    def may_be(self, text: str) -> bool:
        """
        >>> [DateType().may_be(text) for text in ("1 May 2024", "XIIe siècle", "May", "Rain")]
        [True, True, False, False]
        """
        return NUMERAL.search(text) is not None

    def read(self, texts: pd.Series, counts: np.ndarray, convention: str = "") -> ParsedCells:
        from qkvsearch.tables.columns.dates import read_dates

        return read_dates(texts, counts, convention)

    def read_requested(
        self, texts: pd.Series, counts: np.ndarray, convention: str = ""
    ) -> ParsedCells:
        from qkvsearch.tables.columns.dates import read_dates

        return read_dates(texts, counts, convention, requested=True)

    def is_as_written(self, text: str, cell: Any) -> bool:
        """Return True for the same moment in ISO 8601 as well.

        >>> DateType().is_as_written("2024-03-01T00:00:00.000Z", "2024-03-01")
        True
        >>> DateType().is_as_written("1 March 2024", "2024-03-01")
        False
        """
        match = ISO_MOMENT.fullmatch(text)
        if match is None:
            return text == str(cell)
        day, minute, second = match.groups()
        moment = f"{day} {minute}:{second or '00'}"
        return str(cell) in (moment, moment.removesuffix(" 00:00:00"))

    def has_lost_words(self, cell: Any, original: str) -> bool:
        """Return whether the original has more than the words of dates.

        >>> DateType().has_lost_words("0960/1279", "Song dynasty (960–1279)")
        True
        >>> DateType().has_lost_words("1880/1900", "c. 1890")
        False
        """
        # The words of dates are read where there is such a text alone.
        from qkvsearch.tables.columns.uncertain_dates import has_names, read_uncertain

        is_read = cell is None or read_uncertain(original) is not None
        return is_read and has_names(original)

    def place(self, cell: Any) -> str:
        text = str(cell)
        return earliest(text)[:DAY] if BETWEEN in text else text[:DAY]

    def order(self, cell: Any) -> str:
        return sort_key(str(cell))

    def counted(
        self, counts: Mapping[Any, int], distinct: Sequence[Any], unit: str
    ) -> dict[str, int]:
        """Count by year, or by month if all dates are in one year. A column with uncertain or early
        dates is counted by decade or century.
        """
        if not are_plain(distinct):
            return counted_in_ranges(counts, [cell for cell in distinct if cell is not None])
        years = {str(cell)[:YEAR] for cell in counts}
        length = YEAR if len(years) > 1 else MONTH
        total: Counter[str] = Counter()
        for cell, n in counts.items():
            total[str(cell)[:length]] += n
        return dict(sorted(total.items()))

    def test(self, text: str, is_prefix: bool) -> Callable[[Any], bool]:
        asked_range = Range.of(text)
        if asked_range is not None and not is_prefix:
            return _range_test(asked_range.least, asked_range.most)
        beginning, asked = fold(text), None if is_prefix else date_span(text)
        is_stored = self.is_beginning(text)

        def is_date(cell: Any) -> bool:
            date = str(cell)
            if fold(date).startswith(beginning):
                return True
            if asked is None or (is_stored and is_plain(date)):
                return False
            span = span_of(date)
            return span is not None and overlap(span, asked)

        return is_date

    def is_beginning(self, text: str, uncertain: bool = False) -> bool:
        """Return whether a text is a stored date, or the beginning of one.

        >>> DateType().is_beginning("2024-03"), DateType().is_beginning("2024-3")
        (True, False)
        >>> DateType().is_beginning("500 BCE"), DateType().is_beginning("500 BCE", uncertain=True)
        (False, True)
        """
        if uncertain:
            return date_span(text) is not None
        if not ISO_DATE.fullmatch(text):
            return False
        with suppress(ValueError):
            datetime.fromisoformat(text + "0001-01-01 00:00:00"[len(text) :])
            return True
        return False

    def as_stored(self, value: str, convention: str) -> str:
        """Return a day, or the ends of a range, as ISO 8601 writes them. With dots the day comes
        first, otherwise as in the column.

        >>> DateType().as_stored("13.03.2024..1.4.2024", "")
        '2024-03-13..2024-04-01'
        >>> [DateType().as_stored("3/4/2024", order) for order in (DAY_FIRST, "")]
        ['2024-04-03', '2024-03-04']
        """
        asked = Range.of(value)
        if asked is None:
            return _iso_day(value, convention)
        ends = [_iso_day(end, convention) for end in (asked.least, asked.most)]
        return str(asked._replace(least=ends[0], most=ends[1]))

    def in_order(self, value: str) -> str:
        """Return a range of dates with the earlier one first. An end has all days of its year.

        >>> DateType().in_order("2025..2024-03"), DateType().in_order("2024-03..2024")
        ('2024-03..2025', '2024-03..2024')
        """
        asked = Range.of(value)
        if asked is None:
            return value
        first, last = date_span(asked.least), date_span(asked.most)
        if first is None or last is None:
            return value
        return asked.turned() if last.last < first.first else value

    def condition(self, name: str, value: str, distinct: Sequence[Any]) -> tuple[str, list[Any]]:
        return range_condition(name, value, "<=", str)


def _iso_day(text: str, convention: str) -> str:
    """Return a day that is written in numbers as ISO 8601 writes it; any other text as it is."""
    if match := YEAR_FIRST.fullmatch(text):
        year, month, day = map(int, match.groups())
    elif match := YEAR_LAST.fullmatch(text):
        first, second, year = (int(match[name]) for name in ("first", "second", "year"))
        is_day_first = match["mark"] == "." or convention.endswith(DAY_FIRST)
        if second > MONTHS or (first <= MONTHS and not is_day_first):
            first, second = second, first
        day, month = first, second
    else:
        return text
    try:
        return datetime(year, month, day).date().isoformat()
    except ValueError:  # there is no such day
        return text


def _range_test(first: str, last: str) -> Callable[[Any], bool]:
    """Return the test for a range of dates, which includes all days of both ends.

    >>> is_in = _range_test("2024-03", "2025")
    >>> [is_in(date) for date in ("2024-02-29", "2024-03-01", "2025-12-31 23:59:59", "2020/2024")]
    [False, True, True, True]
    """
    ends = [end for end in (first, last) if end]
    lowest, highest = date_span(first), date_span(last)
    if (first and lowest is None) or (last and highest is None):
        return lambda cell: False
    are_stored = all(map(DateType().is_beginning, ends))

    def is_within(cell: Any) -> bool:
        date = str(cell)
        if are_stored and is_plain(date):
            return first <= date[: len(first)] and (not last or date[: len(last)] <= last)
        span = span_of(date)
        if span is None:
            return False
        is_late_enough = lowest is None or span.last >= lowest.first
        return is_late_enough and (highest is None or span.first <= highest.last)

    return is_within


def date_span(text: str) -> DateSpan | None:
    """Return the span of a stored date, or of one as people write it; None for any other text.

    >>> date_span("1890s") == date_span("1890/1899"), date_span("soon")
    (True, None)
    """
    span = span_of(text)
    if span is not None or not text:
        return span
    # The words of dates are read where there is such a text alone.
    from qkvsearch.tables.columns.uncertain_dates import read_uncertain

    reading = read_uncertain(text)
    return None if reading is None else span_of(reading.stored)
