"""Dates, with or without a time of day."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from qkvsearch._utils.folding import fold
from qkvsearch.tables.column_types.column_type import ColumnType, range_condition

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from qkvsearch.tables.columns.facts import ParsedCells

# Characters of a stored date: 2024, 2024-03 and 2024-03-01.
YEAR, MONTH, DAY = 4, 7, 10
ISO_DATE = re.compile(r"\d{4}(-\d\d(-\d\d( \d\d(:\d\d(:\d\d)?)?)?)?)?")

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

    def read(self, texts: pd.Series, counts: np.ndarray, convention: str = "") -> ParsedCells:
        from qkvsearch.tables.columns.dates import read_dates

        return read_dates(texts, convention)

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

    def place(self, cell: Any) -> str:
        return str(cell)[:DAY]

    def counted(
        self, counts: Mapping[Any, int], distinct: Sequence[Any], unit: str
    ) -> dict[str, int]:
        """Count by year, or by month if all dates are in one year."""
        years = {str(cell)[:YEAR] for cell in counts}
        length = YEAR if len(years) > 1 else MONTH
        total: Counter[str] = Counter()
        for cell, n in counts.items():
            total[str(cell)[:length]] += n
        return dict(sorted(total.items()))

    def test(self, text: str, is_prefix: bool) -> Callable[[Any], bool]:
        first, dots, last = text.partition("..")
        if dots and not is_prefix:
            return _range_test(first, last)
        beginning = fold(text)
        return lambda cell: fold(str(cell)).startswith(beginning)

    def is_beginning(self, text: str) -> bool:
        """Return whether a text is a stored date, or the beginning of one.

        >>> DateType().is_beginning("2024-03"), DateType().is_beginning("2024-3")
        (True, False)
        """
        if not ISO_DATE.fullmatch(text):
            return False
        with suppress(ValueError):
            datetime.fromisoformat(text + "0001-01-01 00:00:00"[len(text) :])
            return True
        return False

    def condition(self, name: str, value: str, distinct: Sequence[Any]) -> tuple[str, list[Any]]:
        return range_condition(name, value, "<=", str)


def _range_test(first: str, last: str) -> Callable[[Any], bool]:
    """Return the test for a range of dates, which includes all days of both ends.

    >>> is_in = _range_test("2024-03", "2025")
    >>> [is_in(date) for date in ("2024-02-29", "2024-03-01", "2025-12-31 23:59:59")]
    [False, True, True]
    """
    ends = [end for end in (first, last) if end]
    if not all(map(DateType().is_beginning, ends)):
        return lambda cell: False

    def is_within(cell: Any) -> bool:
        date = str(cell)
        return first <= date[: len(first)] and (not last or date[: len(last)] <= last)

    return is_within
