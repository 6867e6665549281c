"""The cells of a column, each different one once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ColumnCells:
    """different: the cells that differ, None where some are blank. codes: int32 (n_items,), which
    of them each item has.

    >>> cells = ColumnCells(["red", None], np.array([0, 1, 0]))
    >>> cells.holds(lambda cell: cell == "red"), cells.counts(np.array([True, True, False]))
    (array([ True, False,  True]), {'red': 1})
    """

    different: Sequence[Any]
    codes: np.ndarray

    def holds(self, test: Callable[[Any], bool]) -> np.ndarray:
        """bool (n_items,), whether an item's cell passes the test; no blank one does."""
        passes = (cell is not None and test(cell) for cell in self.different)
        return np.fromiter(passes, bool, len(self.different))[self.codes]

    def counts(self, items: np.ndarray) -> dict[Any, int]:
        """How many of these items, bool (n_items,), have each cell, but for blank ones."""
        found = np.bincount(self.codes[items], minlength=len(self.different))
        there: Iterable[int] = np.flatnonzero(found).tolist()
        return {
            self.different[code]: int(found[code])
            for code in there
            if self.different[code] is not None
        }
