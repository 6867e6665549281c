"""Which stored rows are the items of a build, in the order of their ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from qkvsearch._utils.caching import cached_property


@dataclass(frozen=True)
class RowMap:
    """A map between stored rows and item rows.

    Stored rows number the rows of all segments, the base first. Item rows number the items of the
    build in the order of their ids.

    stored: int64 (n_items,), the stored row of each item. origin: int64 (n_items,), the row of the
    base whose interactions the item has, −1 for none. n_base, n_stored: number of rows of the base
    and of all segments.

    >>> rows = RowMap(np.array([0, 3, 2]), np.array([0, -1, 1]), n_base=3, n_stored=4)
    >>> rows.item_rows.tolist(), rows.item_rows_of_base.tolist()
    ([0, -1, 2, 1], [0, 2, -1])
    """

    stored: np.ndarray
    origin: np.ndarray
    n_base: int
    n_stored: int

    @classmethod
    def plain(cls, n_base: int) -> RowMap:
        """Return the map of a base without segments and deleted rows."""
        rows = np.arange(n_base, dtype=np.int64)
        return cls(rows, rows, n_base, n_base)

    @classmethod
    def joined(
        cls,
        n_base: int,
        tombstones: np.ndarray,
        after: np.ndarray,
        origin: np.ndarray,
        keys: Sequence[int] | Sequence[str],
    ) -> RowMap:
        """Return the map of a base and the rows of the segments after it.

        tombstones: stored rows that are deleted. after: int64 (n_new,), how many rows of the base
        come before each new row. keys: the ids of the new rows, which sort those between the same
        rows of the base. origin: as above, of the new rows.
        """
        n_stored = n_base + len(after)
        is_item = np.ones(n_stored, dtype=bool)
        is_item[tombstones] = False
        of_base = np.flatnonzero(is_item[:n_base])
        new = [i for i in range(len(after)) if is_item[n_base + i]]
        new.sort(key=lambda i: (after[i], keys[i]))
        added = np.array(new, dtype=np.int64)
        where = np.searchsorted(of_base, after[added]) if new else added
        stored = np.insert(of_base, where, added + n_base)
        origins = np.concatenate([np.arange(n_base, dtype=np.int64), origin])
        return cls(stored, origins[stored], n_base, n_stored)

    def sorted_by(self, ids: Sequence[int] | Sequence[str]) -> RowMap:
        """Return the same items sorted by other ids (n_items,), one for each item row."""
        order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
        return RowMap(self.stored[order], self.origin[order], self.n_base, self.n_stored)

    def __len__(self) -> int:
        return len(self.stored)

    @cached_property
    def is_plain(self) -> bool:
        """Whether item rows, stored rows and rows of the base are the same."""
        same_number = self.n_stored == self.n_base == len(self)
        return same_number and bool((self.stored == np.arange(self.n_base)).all())

    @cached_property
    def item_rows(self) -> np.ndarray:
        """int64 (n_stored,), the item row of each stored row, −1 for a deleted one."""
        return _inverse(self.stored, self.n_stored)

    @cached_property
    def item_rows_of_base(self) -> np.ndarray:
        """int64 (n_base,), the item that has each base row's interactions, −1 for a deleted one."""
        return _inverse(self.origin, self.n_base)

    def take(self, pieces: Sequence[np.ndarray]) -> np.ndarray:
        """Gather the items' rows (n_items, …) of all segments; no copy where `is_plain`."""
        if self.is_plain:
            return pieces[0]
        first = pieces[0]
        gathered = np.empty((len(self), *first.shape[1:]), first.dtype)
        ends = np.cumsum([len(piece) for piece in pieces])
        for begin, end in self._runs(ends):
            stored = self.stored[begin]
            number = int(np.searchsorted(ends, stored, side="right"))
            start = stored - (ends[number] - len(pieces[number]))
            gathered[begin:end] = pieces[number][start : start + end - begin]
        return gathered

    def _runs(self, ends: np.ndarray) -> list[tuple[int, int]]:
        """Return start and stop of each run of item rows that are adjacent in one segment, and can
        be copied at once. ends: the stored rows at which segments end.
        """
        breaks = (np.diff(self.stored) != 1) | np.isin(self.stored[1:], ends)
        starts = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(self)]
        return list(pairwise(starts)) if len(self) else []

    def by_origin(self, array: np.ndarray) -> np.ndarray:
        """Return rows (n_items, …) of a base's array by `origin`; zeros for items without one."""
        if self.is_plain:
            return array
        rows = np.zeros((len(self), *array.shape[1:]), array.dtype)
        has_origin = self.origin >= 0
        rows[has_origin] = array[self.origin[has_origin]]
        return rows


def _inverse(rows: np.ndarray, n: int) -> np.ndarray:
    inverse = np.full(n, -1, dtype=np.int64)
    indices = np.flatnonzero(rows >= 0)
    inverse[rows[indices]] = indices
    return inverse
