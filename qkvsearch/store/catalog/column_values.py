"""The distinct cells of the catalog's columns, cached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch._utils.deadline import check_deadline
from qkvsearch._utils.folding import fold
from qkvsearch._utils.query_lock import released
from qkvsearch.store.catalog.item_table import ItemTable

# A column with more distinct cells is not cached: its cells would take more memory than the masks
# of all conditions.
MAX_CACHED_CELLS = 1 << 16


@dataclass(frozen=True)
class ColumnCells:
    """The cells of a column, each distinct cell once.

    distinct: the distinct cells, None for a blank one. codes: int32 (n_items,), the index of each
    item's cell in `distinct`.

    >>> cells = ColumnCells(["red", None], np.array([0, 1, 0]))
    >>> items = np.array([True, True, False])
    >>> cells.holds(lambda cell: cell == "red", items), cells.counts(items)
    (array([ True, False, False]), {'red': 1})
    """

    distinct: Sequence[Any]
    codes: np.ndarray

    def holds(self, test: Callable[[Any], bool], items: np.ndarray) -> np.ndarray:
        """Return which of these items, bool (n_items,), have a cell that passes the test, as bool
        (n_items,). A blank cell never does. Only cells of these items are tested.
        """
        passes = np.zeros(len(self.distinct), dtype=bool)
        with released():  # there may be a million cells
            for code in np.flatnonzero(np.bincount(self.codes[items])).tolist():
                check_deadline()
                cell = self.distinct[code]
                passes[code] = cell is not None and test(cell)
        return passes[self.codes] & items

    def counts(self, items: np.ndarray) -> dict[Any, int]:
        """Count these items, bool (n_items,), by their cell. Blank cells are left out."""
        counts = np.bincount(self.codes[items], minlength=len(self.distinct))
        codes: Iterable[int] = np.flatnonzero(counts).tolist()
        return {
            self.distinct[code]: int(counts[code])
            for code in codes
            if self.distinct[code] is not None
        }


class ColumnValues:
    """The cells of each stored column, read once where few are distinct."""

    def __init__(self, items: ItemTable) -> None:
        self._items = items
        self._cells: dict[str, ColumnCells] = {}
        self._groups: dict[str, np.ndarray] = {}
        self._folded: dict[str, str | None] = {}

    def clear(self) -> None:
        """Forget what was read."""
        for cache in (self._cells, self._groups, self._folded):
            cache.clear()

    def cells(self, name: str) -> ColumnCells:
        """Return the cells of a stored column."""
        cells = self._cells.get(name)
        if cells is None:
            cells = ColumnCells(*self._items.distinct_cells(name))
            if len(cells.distinct) <= MAX_CACHED_CELLS:
                self._cells[name] = cells
        return cells

    def folded(self, name: str) -> str | None:
        """Return a column's distinct cells, folded, a line each; None for too many to cache."""
        if name not in self._folded:
            cells = self.cells(name)
            if len(cells.distinct) > MAX_CACHED_CELLS:
                self._folded[name] = None
            else:  # removed items have cells as well
                present = cells.counts(np.ones(len(cells.codes), dtype=bool))
                self._folded[name] = "\n".join(fold(str(cell)) for cell in present)
        return self._folded[name]

    def groups(self, name: str) -> np.ndarray:
        """Return a number for each item, int64 (n_items,).

        Items have the same number if their cells of a stored column are equal but for spaces. A
        blank cell has a number of its own.
        """
        groups = self._groups.get(name)
        if groups is None:
            groups = self._groups[name] = _numbered(self.cells(name))
        return groups


def _numbered(cells: ColumnCells) -> np.ndarray:
    number_of: dict[str, int] = {}
    numbers = np.full(len(cells.distinct), -1, dtype=np.int64)
    for code, cell in enumerate(cells.distinct):
        if cell is not None:
            spelled = " ".join(str(cell).split())
            numbers[code] = number_of.setdefault(spelled, len(number_of))
    of_items = numbers[cells.codes]
    own_numbers = len(number_of) + np.arange(len(of_items))
    return np.where(of_items < 0, own_numbers, of_items)
