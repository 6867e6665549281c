"""Facets: how many matches of a query have each value of a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from qkvsearch.rank.display import unit_of
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.columns.facts import LIST_SEPARATOR
from qkvsearch.tables.ids import id_text

# The values that are listed of a column, the most frequent first.
MAX_VALUES = 20
# More distinct numbers than this are counted in ranges.
MAX_NUMBERS, N_RANGES = 10, 6
STEPS = (1, 2, 2.5, 5, 10)
# How many of a unit are an hour and a minute.
LARGER_UNITS = {"seconds": (3600, 60), "minutes": (60,)}

Facets = dict[str, dict[str, int]]


def facets(catalog: StoredCatalog, columns: Sequence[StoredColumn], matches: np.ndarray) -> Facets:
    """Count by column how many matching items have each value, the most frequent first; many
    distinct numbers, and dates, are counted in ranges in their order. matches: bool (n_items,).

    An item with a list counts for each entry. Empty cells are not counted.
    """
    return {column.name: _counted(catalog, column, matches) for column in columns}


def _counted(catalog: StoredCatalog, column: StoredColumn, matches: np.ndarray) -> dict[str, int]:
    cells = catalog.values.cells(column.stored)
    counts = cells.counts(matches)
    if column.type == "number":
        return _numbers(counts, is_whole(cells.distinct), unit_of(catalog, column))
    if column.type == "date":
        return _dates([(str(cell), n) for cell, n in counts.items()])
    if column.type == "yes/no":
        return _most_frequent(("yes" if cell else "no", n) for cell, n in counts.items())
    if column.type == "list":
        return _most_frequent(
            (entry, n)
            for cell, n in counts.items()
            for entry in dict.fromkeys(str(cell).split(LIST_SEPARATOR))
        )
    return _most_frequent((str(cell), n) for cell, n in counts.items())


def _most_frequent(counted: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the most frequent values, equal ones by alphabet. A value may occur several times."""
    total: Counter[str] = Counter()
    for value, n in counted:
        total[value] += n
    return dict(sorted(total.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_VALUES])


def is_whole(cells: Iterable[Any]) -> bool:
    """Return whether the numbers of a column are whole. Then a range includes both ends; otherwise
    its end is the start of the next range.

    >>> is_whole([1990, None, 2.0]), is_whole([1990, 2.5])
    (True, False)
    """
    return all(cell is None or float(cell).is_integer() for cell in cells)


def _numbers(counts: Mapping[Any, int], whole: bool = True, unit: str = "") -> dict[str, int]:
    """Count each number if there are few, otherwise ranges `lowest..highest`. whole: whether the
    numbers of the column are. unit: "seconds" and "minutes" have ranges of whole larger units.

    >>> _numbers({1991: 2, 1990: 1}), _numbers(dict.fromkeys(range(0, 60, 5), 1))["10..19"]
    ({'1990': 1, '1991': 2}, 2)
    >>> _numbers(dict.fromkeys((3 + n / 10 for n in range(20)), 1), whole=False)["3.5..4"]
    5
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
    return {
        f"{pattern.format(ends[i])}..{pattern.format(ends[i + 1] - gap)}": int(n_in_range[i])
        for i in np.flatnonzero(n_in_range).tolist()
    }


def _step(spread: float, unit: str = "") -> float:
    """Return a round number that divides the spread into about `N_RANGES` ranges."""
    larger = (size for size in LARGER_UNITS.get(unit, ()) if size * N_RANGES <= spread)
    size = next(larger, 1)
    power = size * 10 ** np.floor(np.log10(spread / size / N_RANGES))
    step = float(min(power * step for step in STEPS if power * step * N_RANGES >= spread))
    return step if size == 1 else size * np.ceil(step / size)


def _dates(counted: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Count by year, or by month if all dates are in one year."""
    length = 4 if len({cell[:4] for cell, _ in counted}) > 1 else 7
    total: Counter[str] = Counter()
    for cell, n in counted:
        total[cell[:length]] += n
    return dict(sorted(total.items()))
