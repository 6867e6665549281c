"""Facets: how the matches of a query spread over a column's values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from qkvsearch.data.catalog_columns import StoredColumn
from qkvsearch.data.columns.facts import LIST_SEPARATOR
from qkvsearch.data.ids import id_text
from qkvsearch.storage import StoredCatalog

# Values that are told of a column, the most frequent first.
MOST_VALUES = 20
# Numbers of more different values than these are counted in ranges.
MOST_NUMBERS, RANGES = 10, 6
STEPS = (1, 2, 2.5, 5, 10)

Facets = dict[str, dict[str, int]]


def facets(catalog: StoredCatalog, columns: Sequence[StoredColumn], matches: np.ndarray) -> Facets:
    """By column, how many of the items that match have each value, the most frequent first; numbers
    of many values, and dates, by ranges in their order. matches: bool (n_items,).

    An item with a list counts for each entry of it. Empty cells are not counted.
    """
    return {column.name: _counted(catalog, column, matches) for column in columns}


def _counted(catalog: StoredCatalog, column: StoredColumn, matches: np.ndarray) -> dict[str, int]:
    cells = catalog.column_cells(column.stored)
    counts = cells.counts(matches)
    if column.type == "number":
        return _numbers(counts, is_whole(cells.distinct))
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
    """Values, the same one perhaps several times; equally frequent ones come by the alphabet."""
    total: Counter[str] = Counter()
    for value, n in counted:
        total[value] += n
    return dict(sorted(total.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_VALUES])


def is_whole(cells: Iterable[Any]) -> bool:
    """Whether the numbers among a column's cells are whole: then both ends of a range are in it,
    and otherwise its end is where the next range begins.

    >>> is_whole([1990, None, 2.0]), is_whole([1990, 2.5])
    (True, False)
    """
    return all(cell is None or float(cell).is_integer() for cell in cells)


def _numbers(counts: Mapping[Any, int], whole: bool = True) -> dict[str, int]:
    """Each number, where they are few, and otherwise ranges `least..most`. whole: whether the
    numbers of the column are.

    >>> _numbers({1991: 2, 1990: 1}), _numbers(dict.fromkeys(range(0, 60, 5), 1))["10..19"]
    ({'1990': 1, '1991': 2}, 2)
    >>> _numbers(dict.fromkeys((3 + n / 10 for n in range(20)), 1), whole=False)["3.5..4"]
    5
    """
    if len(counts) <= MOST_NUMBERS:
        return {id_text(number): counts[number] for number in sorted(counts)}
    numbers = np.array(list(counts), dtype=np.float64)
    # Whole numbers of many digits may be one and the same in floating point.
    step = _step(float(np.ptp(numbers)) or 1.0)
    # Whole numbers end before the next range begins, as `year:1990..1999` has them.
    step, gap = (max(np.ceil(step), 1), 1) if whole else (step, 0)
    first = np.floor(numbers.min() / step) - 1
    n = int(np.floor(numbers.max() / step) - first) + 2
    # Counted by the numbers that are shown: 19 · 0.2 is a little more than 3.8.
    shown = "{:.0f}" if whole else "{:.15g}"
    ends = [float(shown.format((first + i) * step)) for i in range(n)]
    # Numbers of more digits than are shown, or than floating point has, may lie beyond the ends.
    range_of = (np.searchsorted(ends, numbers, side="right") - 1).clip(0, n - 2)
    found = np.bincount(range_of, weights=list(counts.values()))
    return {
        f"{shown.format(ends[i])}..{shown.format(ends[i + 1] - gap)}": int(found[i])
        for i in np.flatnonzero(found).tolist()
    }


def _step(spread: float) -> float:
    """A round number that divides the spread into about as many ranges as are shown."""
    unit = 10 ** np.floor(np.log10(spread / RANGES))
    return float(min(unit * step for step in STEPS if unit * step * RANGES >= spread))


def _dates(counted: Sequence[tuple[str, int]]) -> dict[str, int]:
    """By year, or by month where all are of one year."""
    length = 4 if len({cell[:4] for cell, _ in counted}) > 1 else 7
    total: Counter[str] = Counter()
    for cell, n in counted:
        total[cell[:length]] += n
    return dict(sorted(total.items()))
