"""Which stored rows are the items of a build, in the order of their ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class RowMap:
    """A stored row is a row of all segments, the base first; an item row is one of the items that
    are there, by id.

    stored: int64 (n_items,), each item's stored row. origin: int64 (n_items,), the base's row whose
    interactions the item has, −1 for none. n_base, n_stored: rows of the base, and of all segments.

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
        """Of a base alone, from which nothing departed."""
        every = np.arange(n_base, dtype=np.int64)
        return cls(every, every, n_base, n_base)

    @classmethod
    def joined(
        cls,
        n_base: int,
        tombstones: np.ndarray,
        after: np.ndarray,
        origin: np.ndarray,
        keys: Sequence[int] | Sequence[str],
    ) -> RowMap:
        """Of a base and the rows of segments behind it.

        departed: stored rows that are no items. after: int64 (n_new,), behind how many of the
        base's rows each new one comes, and `keys` its id, by which those of one item_rows are sorted.
        origin: as above, of the new rows.
        """
        n_stored = n_base + len(after)
        is_there = np.ones(n_stored, dtype=bool)
        is_there[tombstones] = False
        kept = np.flatnonzero(is_there[:n_base])
        new = [i for i in range(len(after)) if is_there[n_base + i]]
        new.sort(key=lambda i: (after[i], keys[i]))
        joining = np.array(new, dtype=np.int64)
        where = np.searchsorted(kept, after[joining]) if new else joining
        stored = np.insert(kept, where, joining + n_base)
        origins = np.concatenate([np.arange(n_base, dtype=np.int64), origin])
        return cls(stored, origins[stored], n_base, n_stored)

    def sorted_by(self, ids: Sequence[int] | Sequence[str]) -> RowMap:
        """The same items in another order: ids (n_items,), of each item row."""
        order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
        return RowMap(self.stored[order], self.origin[order], self.n_base, self.n_stored)

    def __len__(self) -> int:
        return len(self.stored)

    @cached_property
    def is_plain(self) -> bool:
        """Whether each item row is the base's own."""
        as_many = self.n_stored == self.n_base == len(self)
        return as_many and bool((self.stored == np.arange(self.n_base)).all())

    @cached_property
    def item_rows(self) -> np.ndarray:
        """int64 (n_stored,), the item row of each stored row, −1 for one that departed."""
        return _inverse(self.stored, self.n_stored)

    @cached_property
    def item_rows_of_base(self) -> np.ndarray:
        """int64 (n_base,), the item row that has the interactions of each of the base's rows, −1
        where they are gone.
        """
        return _inverse(self.origin, self.n_base)

    def take(self, pieces: Sequence[np.ndarray]) -> np.ndarray:
        """RowMap (n_items, …) of what each segment has of its own rows; without a copy where
        `is_plain`.
        """
        if self.is_plain:
            return pieces[0]
        first = pieces[0]
        found = np.empty((len(self), *first.shape[1:]), first.dtype)
        ends = np.cumsum([len(piece) for piece in pieces])
        for begin, end in self._runs(ends):
            stored = self.stored[begin]
            number = int(np.searchsorted(ends, stored, side="right"))
            start = stored - (ends[number] - len(pieces[number]))
            found[begin:end] = pieces[number][start : start + end - begin]
        return found

    def _runs(self, ends: np.ndarray) -> list[tuple[int, int]]:
        """First item row and last + 1 of each run of rows that stand one behind the other in one
        piece, to be copied at once. ends: the stored rows at which pieces end.
        """
        breaks = (np.diff(self.stored) != 1) | np.isin(self.stored[1:], ends)
        places = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(self)]
        return list(pairwise(places)) if len(self) else []

    def by_origin(self, array: np.ndarray) -> np.ndarray:
        """RowMap (n_items, …) of what the base has of its rows; zeros where an item has no origin."""
        if self.is_plain:
            return array
        found = np.zeros((len(self), *array.shape[1:]), array.dtype)
        has_one = self.origin >= 0
        found[has_one] = array[self.origin[has_one]]
        return found


def _inverse(rows: np.ndarray, n: int) -> np.ndarray:
    places = np.full(n, -1, dtype=np.int64)
    has_one = np.flatnonzero(rows >= 0)
    places[rows[has_one]] = has_one
    return places
