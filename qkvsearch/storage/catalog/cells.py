"""The cells of a column, each different one once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch._utils.deadline import check_deadline
from qkvsearch._utils.query_lock import released


@dataclass(frozen=True)
class ColumnCells:
    """different: the cells that differ, None where some are blank. codes: int32 (n_items,), which
    of them each item has.

    >>> cells = ColumnCells(["red", None], np.array([0, 1, 0]))
    >>> some = np.array([True, True, False])
    >>> cells.holds(lambda cell: cell == "red", some), cells.counts(some)
    (array([ True, False, False]), {'red': 1})
    """

    different: Sequence[Any]
    codes: np.ndarray

    def holds(self, test: Callable[[Any], bool], items: np.ndarray) -> np.ndarray:
        """bool (n_items,), which of these items, bool (n_items,), have a cell that passes the test;
        no blank one does. Only cells of these items are tested.
        """
        passes = np.zeros(len(self.different), dtype=bool)
        with released():  # there may be a million cells
            for code in np.flatnonzero(np.bincount(self.codes[items])).tolist():
                check_deadline()
                cell = self.different[code]
                passes[code] = cell is not None and test(cell)
        return passes[self.codes] & items

    def counts(self, items: np.ndarray) -> dict[Any, int]:
        """How many of these items, bool (n_items,), have each cell, but for blank ones."""
        found = np.bincount(self.codes[items], minlength=len(self.different))
        there: Iterable[int] = np.flatnonzero(found).tolist()
        return {
            self.different[code]: int(found[code])
            for code in there
            if self.different[code] is not None
        }
