"""Numbers: amounts, percentages, years, lengths of time."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.folding import fold
from qkvsearch.errors import QkvError
from qkvsearch.tables.column_types.column_type import ColumnType, Range, range_condition
from qkvsearch.tables.ids import id_text

if TYPE_CHECKING:
    import pandas as pd

    from qkvsearch.tables.column_facts import ParsedCells

# More distinct numbers than this are counted in ranges.
MAX_NUMBERS, N_RANGES = 10, 6
STEPS = (1, 2, 2.5, 5, 10)
# How many of a unit are an hour and a minute.
LARGER_UNITS = {"seconds": (3600, 60), "minutes": (60,)}


class NumberType(ColumnType):
    """Stored as int or float: $5 as 5, 12% as 12, 1.299,00 as 1299."""

    name = "number"
    noun = "a number"
    facet_rank = 2
    is_numeric = True
    is_ordered = True
    shown_as = "number"

    def read(self, texts: pd.Series, counts: np.ndarray, convention: str = "") -> ParsedCells:
        from qkvsearch.tables.columns.numbers import read_numbers

        return read_numbers(texts, counts, convention)

    def is_as_written(self, text: str, cell: Any) -> bool:
        """Return True for 1.50 shown as 1.5 as well.

        >>> [NumberType().is_as_written(text, 1.5) for text in ("1.5", "1.50", "1,50", "$1.5")]
        [True, True, False, False]
        >>> NumberType().is_as_written("3.00", 3), NumberType().is_as_written("100", 1)
        (True, False)
        """
        if "." in text and "e" not in text.lower():
            text = text.rstrip("0").removesuffix(".")
        return text == id_text(cell)

    def searched(self, cell: Any) -> str:
        return id_text(cell)

    def entries(self, cell: Any) -> list[str]:
        return [id_text(cell)]

    def place(self, cell: Any) -> float:
        return float(cell)

    def counted(
        self, counts: Mapping[Any, int], distinct: Sequence[Any], unit: str
    ) -> dict[str, int]:
        return counted_numbers(counts, is_whole(distinct), unit)

    def test(self, text: str, is_prefix: bool) -> Callable[[Any], bool]:
        if not is_prefix:
            return _number_test(text)
        beginning = fold(text)
        return lambda cell: fold(id_text(cell)).startswith(beginning)

    def as_stored(self, value: str, convention: str) -> str:
        """Return a number, or the ends of a range, with a decimal point.

        >>> NumberType().as_stored("..1.299,00", ","), NumberType().as_stored(">=9,90", ",")
        ('..1299.00', '>=9.90')
        >>> NumberType().as_stored("1.299", ","), NumberType().as_stored("soon", ",")
        ('1.299', 'soon')
        """
        asked = Range.of(value)
        if asked is not None:
            ends = [_with_point(end, convention) for end in (asked.least, asked.most)]
            return str(asked._replace(least=ends[0], most=ends[1]))
        sign = _sign_of(value)
        return sign + _with_point(value.removeprefix(sign), convention)

    def in_order(self, value: str) -> str:
        """Return a range of numbers with the smaller one first.

        >>> NumberType().in_order("900..100"), NumberType().in_order("1e2..900")
        ('100..900', '1e2..900')
        """
        asked = Range.of(value)
        if asked is None:
            return value
        try:
            is_turned = float(asked.most) < float(asked.least)
        except ValueError:  # an end is open, or no number
            return value
        return asked.turned() if is_turned else value

    def condition(self, name: str, value: str, distinct: Sequence[Any]) -> tuple[str, list[Any]]:
        """Ranges of whole numbers end before the next one begins; others end where it does.

        >>> NumberType().condition("year", "1990..1999", [1990, 1999])[0]
        '(year >= ? AND year <= ?)'
        >>> NumberType().condition("price", "10..20", [12.5, 20])[0]
        '(price >= ? AND price < ?)'
        """
        until = "<=" if is_whole(distinct) else "<"
        return range_condition(name, value, until, lambda end: _number(name, end))


COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


def _sign_of(text: str) -> str:
    """Return the sign of a comparison that a text begins with, else ""."""
    return next((sign for sign in COMPARISONS if text.startswith(sign)), "")


def _with_point(text: str, convention: str) -> str:
    """Return a number as Python writes it; any other text as it is. convention: of the column."""
    try:
        float(text)
        return text
    except ValueError:
        if not any(map(str.isdecimal, text)):
            return text
    # It needs pandas, which most queries do not.
    from qkvsearch.tables.columns.numbers import written_number

    return written_number(text, convention) or text


def _number_test(text: str) -> Callable[[Any], bool]:
    """Return the test for a number, for a range as `1990..1999`, or for `>=1990`."""
    sign = _sign_of(text)
    number = text.removeprefix(sign)
    asked = Range.of(number)
    try:
        if asked is None:
            minimum = maximum = float(number)
        else:
            minimum = float(asked.least) if asked.least else -np.inf
            maximum = float(asked.most) if asked.most else np.inf
    except ValueError:
        return lambda cell: False
    if sign:
        return lambda cell: bool(COMPARISONS[sign](cell, minimum))
    return lambda cell: minimum <= cell <= maximum


def _number(name: str, text: str) -> int | float:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        # Without an end a range is open; what is no number is no end.
        if math.isfinite(number):
            return number
    raise QkvError(f"`filter`: {name} is a number, not {text!r}")


def is_whole(cells: Iterable[Any]) -> bool:
    """Return whether the numbers of a column are whole. Then a range includes both ends; otherwise
    its end is the start of the next range.

    >>> is_whole([1990, None, 2.0]), is_whole([1990, 2.5])
    (True, False)
    """
    return all(cell is None or float(cell).is_integer() for cell in cells)


def counted_numbers(
    counts: Mapping[Any, int], whole: bool = True, unit: str = ""
) -> dict[str, int]:
    """Count each number if there are few, otherwise ranges `lowest..highest`. whole: whether the
    numbers of the column are. unit: "seconds" and "minutes" have ranges of whole larger units. The
    last range of whole numbers ends at the largest of them, and one that has only its lowest number
    is called by that: a rating of 5 at most has no range up to 5.5.

    >>> counted_numbers({1991: 2, 1990: 1})
    {'1990': 1, '1991': 2}
    >>> counted_numbers(dict.fromkeys(range(0, 60, 5), 1))["10..19"]
    2
    >>> counted_numbers(dict.fromkeys((3 + n / 10 for n in range(20)), 1), whole=False)["3.5..4"]
    5
    >>> list(counted_numbers(dict.fromkeys((3 + n / 10 for n in range(21)), 1), whole=False))
    ['3..3.5', '3.5..4', '4..4.5', '4.5..5', '5']
    """
    if len(counts) <= MAX_NUMBERS:
        return {id_text(number): counts[number] for number in sorted(counts)}
    numbers = np.array(list(counts), dtype=np.float64)
    # Whole numbers of many digits may be equal in floating point.
    step = _step(float(np.ptp(numbers)) or 1.0, unit)
    # Ranges of whole numbers end before the next one begins, as in `year:1990..1999`.
    step, gap = (max(np.ceil(step), 1), 1) if whole else (step, 0)
    first = np.floor(numbers.min() / step) - 1
    n = int(np.floor(numbers.max() / step) - first) + 2
    # Counted by the displayed ends: 19 · 0.2 is a little more than 3.8.
    pattern = "{:.0f}" if whole else "{:.15g}"
    ends = [float(pattern.format((first + i) * step)) for i in range(n)]
    # Numbers of more digits may lie outside of the displayed ends.
    range_of = (np.searchsorted(ends, numbers, side="right") - 1).clip(0, n - 2)
    n_in_range = np.bincount(range_of, weights=list(counts.values()))
    largest = float(numbers.max())
    counted = {}
    for i in np.flatnonzero(n_in_range).tolist():
        lowest, highest = ends[i], ends[i + 1] - gap
        # Lengths of time are told in whole minutes or hours.
        if largest <= lowest or (whole and unit not in LARGER_UNITS):
            highest = min(highest, largest)
        name = pattern.format(lowest)
        if highest > lowest:
            name += f"..{pattern.format(highest)}"
        counted[name] = int(n_in_range[i])
    return counted


def _step(spread: float, unit: str = "") -> float:
    """Return a round number that divides the spread into about `N_RANGES` ranges."""
    larger = (size for size in LARGER_UNITS.get(unit, ()) if size * N_RANGES <= spread)
    size = next(larger, 1)
    power = size * 10 ** np.floor(np.log10(spread / size / N_RANGES))
    step = float(min(power * step for step in STEPS if power * step * N_RANGES >= spread))
    return step if size == 1 else size * np.ceil(step / size)
