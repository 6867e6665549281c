"""Which stored rows are the items of a build.

A build has a base, and segments that were added to it. Three numbers are told apart:

- A *stored row* counts the rows of all segments, the base first: with a base of 3 rows, row 3 is
  the first one of the first segment.
- An *item row* counts the items of the build in the order of their ids. This is what all other
  modules call the position of an item.
- An *origin* is the row of the base that an item's interactions are stored under. An item that
  replaces one of the base keeps its origin; a new item has none, −1.

A row that was removed or replaced stays stored, as a tombstone, and is no item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property


class Run(NamedTuple):
    """Items that are neighbours in the build and in one segment, so that a slice copies them.

    items: their item rows. segment: the number of the segment. rows: their rows in the segment.
    """

    items: slice
    segment: int
    rows: slice


@dataclass(frozen=True)
class RowMap:
    """A map between stored rows, item rows and rows of the base.

    Here the base has rows 0 to 2 and a segment row 3. Row 1 is deleted, and row 3 comes second:

    >>> rows = RowMap(np.array([0, 3, 2]), np.array([0, -1, 2]), n_base=3, n_stored=4)
    >>> rows.item_rows.tolist(), rows.item_rows_of_base.tolist()
    ([0, -1, 2, 1], [0, -1, 2])
    >>> rows.take([np.array([5, 6, 7]), np.array([8])]).tolist()
    [5, 8, 7]
    """

    # The stored row of each item, int64 (n_items,).
    stored: np.ndarray
    # The row of the base whose interactions each item has, −1 for none, int64 (n_items,).
    origin: np.ndarray
    # The number of rows of the base, and of all segments.
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
        """Return the map of a base and the rows of the segments after it, in the order of ids.

        tombstones: stored rows that are deleted. after: int64 (n_new,), how many rows of the base
        come before each new row. origin: int64 (n_new,), the origin of each new row. keys: the ids
        of the new rows, which sort those between the same two rows of the base.
        """
        n_stored = n_base + len(after)
        is_item = np.ones(n_stored, dtype=bool)
        is_item[tombstones] = False
        of_base = np.flatnonzero(is_item[:n_base])
        # Only new rows are sorted by id: those of the base are in order, and may be millions.
        new = [row for row in range(len(after)) if is_item[n_base + row]]
        new.sort(key=lambda row: (after[row], keys[row]))
        added = np.array(new, dtype=np.int64)
        places = np.searchsorted(of_base, after[added])
        stored = np.insert(of_base, places, n_base + added)
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
    def keeps_base(self) -> bool:
        """Whether each row of the base has an item with this item row; others may follow them."""
        return bool((self.item_rows_of_base == np.arange(self.n_base)).all())

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
        first = pieces[0]
        if self.is_plain:
            return first
        gathered = np.empty((len(self), *first.shape[1:]), first.dtype)
        for run in self.runs([len(piece) for piece in pieces]):
            gathered[run.items] = pieces[run.segment][run.rows]
        return gathered

    def runs(self, lengths: Sequence[int]) -> Iterator[Run]:
        """Yield runs that have all items, in their order. lengths: the rows of each segment."""
        if not len(self):
            return
        ends = np.cumsum(lengths)
        segments = np.searchsorted(ends, self.stored, side="right")
        is_break = (np.diff(self.stored) != 1) | (np.diff(segments) != 0)
        begins = np.concatenate([[0], np.flatnonzero(is_break) + 1])
        stops = np.append(begins[1:], len(self))
        run_segments = segments[begins]
        # The first row of each run, counted in its own segment.
        segment_starts = ends - lengths
        first_rows = self.stored[begins] - segment_starts[run_segments]
        for begin, stop, segment, first_row in zip(
            # Python's own numbers: slicing by NumPy's takes longer.
            begins.tolist(),
            stops.tolist(),
            run_segments.tolist(),
            first_rows.tolist(),
            strict=True,
        ):
            rows = slice(first_row, first_row + stop - begin)
            yield Run(slice(begin, stop), segment, rows)

    def by_origin(self, array: np.ndarray) -> np.ndarray:
        """Return rows (n_items, …) of a base's array by `origin`; zeros for items without one."""
        if self.is_plain:
            return array
        rows = np.zeros((len(self), *array.shape[1:]), array.dtype)
        has_origin = self.origin >= 0
        rows[has_origin] = array[self.origin[has_origin]]
        return rows


def _inverse(rows: np.ndarray, n: int) -> np.ndarray:
    """Return where each number below `n` is in `rows`, −1 for nowhere, int64 (n,).

    >>> _inverse(np.array([2, -1, 0]), 4).tolist()
    [2, -1, 0, -1]
    """
    inverse = np.full(n, -1, dtype=np.int64)
    places = np.flatnonzero(rows >= 0)
    inverse[rows[places]] = places
    return inverse
