"""Items coloured by a column: by its most frequent values, or by ranges of numbers and dates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from qkvsearch.data.catalog_columns import StoredColumn
from qkvsearch.data.columns.facts import LIST_SEPARATOR
from qkvsearch.storage import StoredCatalog
from qkvsearch.terminal import shorten

# Colours that people tell apart, whatever their eyes; and shades.
MOST_VALUES, RANGES = 6, 6
LONGEST = 40
NONE = -1
# A day is as exact as a range of dates needs.
DAY = len("2024-01-01")


def colours(catalog: StoredCatalog, column: StoredColumn, items: np.ndarray) -> dict[str, Any]:
    """`kind`, "values" or "ranges", their `labels`, and of each of these rows its code among them,
    -1 for another value or none.
    """
    cells = catalog.column_cells(column.stored)
    codes = cells.codes[items]
    counts = np.bincount(codes, minlength=len(cells.distinct))
    is_ordered = column.type in ("number", "date")
    of_cells = _by_ranges if is_ordered else _by_values
    labels, found = of_cells(cells.distinct, counts, _reading(column))
    return {
        "kind": "ranges" if is_ordered else "values",
        "labels": labels,
        "codes": found[codes].tolist(),
    }


def _reading(column: StoredColumn) -> Callable[[Any], Any]:
    """How a cell is read: as all its entries, or where there is an order as one that has it."""
    if column.type == "number":
        return float
    if column.type == "date":
        return lambda cell: str(cell)[:DAY]
    if column.type == "list":
        return lambda cell: list(dict.fromkeys(str(cell).split(LIST_SEPARATOR)))
    if column.type == "yes/no":
        return lambda cell: ["yes" if cell else "no"]
    return lambda cell: [str(cell)]


def _by_values(
    cells: Any, counts: np.ndarray, read: Callable[[Any], list[str]]
) -> tuple[list[str], np.ndarray]:
    """The most frequent values; a list has the colour of the most frequent of its own."""
    read_cells = [[] if cell is None else read(cell) for cell in cells]
    total: Counter[str] = Counter()
    for entries, n in zip(read_cells, counts.tolist(), strict=True):
        for entry in entries:
            total[entry] += n
    ranked = sorted((-n, value) for value, n in total.items() if n)[:MOST_VALUES]
    place = {value: code for code, (_, value) in enumerate(ranked)}
    found = [
        min((place[entry] for entry in entries if entry in place), default=NONE)
        for entries in read_cells
    ]
    labels = [shorten(value, LONGEST) for value in place]
    return labels, np.array(found, dtype=np.int64)


def _by_ranges(
    cells: Any, counts: np.ndarray, read: Callable[[Any], Any]
) -> tuple[list[str], np.ndarray]:
    """Ranges of about as many items each, from the least cell to the greatest."""
    known = [code for code, cell in enumerate(cells) if cell is not None and counts[code]]
    found = np.full(len(cells), NONE, dtype=np.int64)
    if not known:
        return [], found
    order = sorted(known, key=lambda code: read(cells[code]))
    # Of each cell the share of the items before the middle of its own.
    sizes = counts[order]
    middles = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    ranges = np.minimum((middles * RANGES).astype(np.int64), RANGES - 1)
    # Equal cells are never parted, so that some ranges may be empty.
    _, ranges = np.unique(ranges, return_inverse=True)
    found[order] = ranges
    texts = [_text(read(cells[code])) for code in order]
    labels = []
    for place in range(int(ranges.max()) + 1):
        inside = [text for text, of in zip(texts, ranges, strict=True) if of == place]
        labels.append(inside[0] if inside[0] == inside[-1] else f"{inside[0]} – {inside[-1]}")
    return labels, found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.10g}"
