"""Arrays of a build that belong together: how they are read, changed and merged.

A build may consist of a base and of segments that were added to it. This module alone puts their
arrays together, as `ArraySpec.rows` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from qkvsearch._utils.scratch import GrowingArray
from qkvsearch.errors import DamagedError
from qkvsearch.store.array_spec import ArraySpec, check_numbers, check_shape
from qkvsearch.store.build_contents import BuildContents
from qkvsearch.store.segments import Segment
from qkvsearch.store.snapshot import Snapshot


class ItemLists(NamedTuple):
    """A list of entries for each item, without a copy of what is on disk.

    starts: int64 (n_lists + 1,), where the entries of each list begin. entries: those of the first
    lists. added: arrays with the entries of the other lists, numbered after `entries`. rows: int64
    (n_items,), the list of each item; None where they are in the same order.
    """

    starts: np.ndarray
    entries: np.ndarray
    added: list[np.ndarray]
    rows: np.ndarray | None


@dataclass(frozen=True)
class StoredArrays:
    """Arrays whose names begin with the same word.

    group: that word. arrays: the specification of each array, by the rest of its name.
    """

    group: str
    arrays: ClassVar[Mapping[str, ArraySpec]]

    # --- names ---

    def name_of(self, array: str) -> str:
        """Return the full name of one of the arrays."""
        return f"{self.group}.{array}"

    def owns(self, name: str) -> bool:
        """Return whether an array with this full name is one of these."""
        return name in map(self.name_of, self.arrays)

    def names_in(self, snapshot: Snapshot) -> list[str]:
        """Return the names of the arrays that a build has."""
        return [array for array in self.arrays if self.name_of(array) in snapshot]

    def is_in(self, snapshot: Snapshot) -> bool:
        """Return whether a build has any of the arrays."""
        return bool(self.names_in(snapshot))

    # --- reading a build ---

    def read(self, snapshot: Snapshot, *names: str, **sizes: int) -> dict[str, np.ndarray]:
        """Read and check arrays, by default all that the build has.

        Rows are in the order of the build's items. Arrays of lists, and those that only `joined`
        can put together, are read where the build is one base. sizes: lengths by their names in
        `ArraySpec.shape`. Raises `DamagedError`.
        """
        arrays = {}
        for name in names or self.names_in(snapshot):
            made_of = "" if self.is_of_lists(name) else self.arrays[name].rows
            if made_of == "texts":
                arrays[name] = snapshot.rows.take(self._of_segments(snapshot, name, sizes))
            elif made_of == "interactions":
                whole = self._newest(snapshot, name, sizes)
                arrays[name] = snapshot.rows.by_origin(whole)
            else:
                arrays[name] = self._newest(snapshot, name, sizes)
        return arrays

    def base_arrays(self, snapshot: Snapshot, *names: str, **sizes: int) -> dict[str, np.ndarray]:
        """Read and check arrays as the base has them, with the base's numbers of items."""
        return self._of_segment(snapshot.base, names, sizes)

    def pieces(
        self, snapshot: Snapshot, *names: str
    ) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        """Yield the arrays of each segment, and the item of each of its rows, −1 for none."""
        for segment, item_rows in snapshot.item_rows_by_segment():
            yield self._of_segment(segment, names, {}), item_rows

    def rows_at(self, snapshot: Snapshot, name: str, positions: np.ndarray) -> np.ndarray:
        """Read the rows (n, …) of an array for the items in the rows `positions` (n,).

        There are zeros for −1, and for an item without a row.
        """
        if self.arrays[name].rows == "texts":
            pieces = self._of_segments(snapshot, name, {})
            row_of = snapshot.rows.stored
        else:
            pieces = [self._newest(snapshot, name, {})]
            row_of = snapshot.rows.origin
        wanted = np.where(positions >= 0, row_of[positions], -1)
        rows = np.zeros((len(wanted), *pieces[0].shape[1:]), pieces[0].dtype)
        start = 0
        for piece in pieces:
            here = np.flatnonzero((wanted >= start) & (wanted < start + len(piece)))
            rows[here] = piece[wanted[here] - start]
            start += len(piece)
        return rows

    def item_lists(self, snapshot: Snapshot, starts: str, entries: str, **sizes: int) -> ItemLists:
        """Open the lists that are made of items' texts. starts, entries: names of arrays."""
        # Each segment has another number of entries.
        pieces = [
            self._of_segment(segment, [starts, entries], dict(sizes))
            for segment in snapshot.with_items
        ]
        first, *others = pieces
        if snapshot.rows.is_plain:
            return ItemLists(first[starts], first[entries], [], None)
        all_starts = [first[starts]]
        for piece in others:
            all_starts.append(piece[starts][1:] + all_starts[-1][-1])
        added = [piece[entries] for piece in others]
        return ItemLists(np.concatenate(all_starts), first[entries], added, snapshot.rows.stored)

    def numbered_lists(self, snapshot: Snapshot, starts: str) -> dict[str, np.ndarray]:
        """Read lists that are made of interactions, with the numbers of the build's items.

        starts: the name of the array that has where the lists begin. Entries of deleted items are
        left out, and the others are sorted by item. There is no copy where every item has the
        number that it has in the base.
        """
        names = [starts, *self._entries_of(starts, snapshot)]
        arrays = self.base_arrays(snapshot, *names)
        is_of_items = self.arrays[starts].shape == ("items",)
        if self._keeps_numbers(snapshot, is_of_items):
            return arrays
        item_rows = snapshot.rows.item_rows_of_base
        (numbers,) = (name for name in names if self.arrays[name].below == "items")
        n_lists = len(arrays[starts]) - 1
        lists = np.repeat(np.arange(n_lists), np.diff(arrays[starts]))
        if is_of_items:
            lists = item_rows[lists]
            n_lists = len(snapshot.rows)
        items = item_rows[arrays[numbers]]
        kept = np.flatnonzero((lists >= 0) & (items >= 0))
        kept = kept[np.lexsort((items[kept], lists[kept]))]
        counts = np.bincount(lists[kept], minlength=n_lists)
        renumbered = {name: arrays[name][kept] for name in names[1:]}
        renumbered[numbers] = items[kept].astype(arrays[numbers].dtype)
        return {starts: np.concatenate([[0], np.cumsum(counts)]), **renumbered}

    # --- changing and merging ---

    def put(self, contents: BuildContents, **arrays: Any) -> None:
        """Add arrays to the build; None removes one.

        They are not shared any more: writing under a shared name would change the other build.
        """
        for array, values in arrays.items():
            name = self.name_of(array)
            contents.shared.pop(f"{name}.npy", None)
            contents.arrays.pop(name, None)
            if values is not None:
                contents.arrays[name] = values

    def share(self, contents: BuildContents, snapshot: Snapshot, *arrays: str) -> None:
        """Share arrays of another build."""
        for name in map(self.name_of, arrays):
            contents.shared[f"{name}.npy"] = snapshot.file(name)

    def pending(self, contents: BuildContents, array: str) -> np.ndarray:
        """Return one of the arrays that will be published: a new one or a shared one."""
        return contents.array(self.name_of(array))

    def is_pending(self, contents: BuildContents, array: str) -> bool:
        """Return whether `contents` has one of the arrays."""
        return contents.has(self.name_of(array))

    def merge(self, contents: BuildContents, snapshot: Snapshot) -> None:
        """Add the arrays of one base that answers as all segments of a build do together."""
        names = self.names_in(snapshot)
        if snapshot.rows.is_plain:
            self.share(contents, snapshot, *names)
            return
        for name in names:
            spec = self.arrays[name]
            if not spec.rows:
                self.share(contents, snapshot, name)
            elif spec.lists and spec.rows == "texts":
                self._merge_item_lists(contents, snapshot, name)
            elif spec.lists and spec.rows == "interactions":
                self._merge_numbered_lists(contents, snapshot, name)
            elif spec.rows != "own" and not self.is_of_lists(name):
                self.put(contents, **self.read(snapshot, name))
            # Entries of lists are stored with their starts, and those that are "own" below.
        if any(self.arrays[name].rows == "own" for name in names):
            self.put(contents, **self.joined(snapshot))

    def joined(self, snapshot: Snapshot) -> dict[str, np.ndarray]:
        """Return those arrays of all segments, as one base has them, whose `rows` are "own"."""
        raise NotImplementedError(self.group)

    def _merge_item_lists(self, contents: BuildContents, snapshot: Snapshot, starts: str) -> None:
        """Copy the lists of all items in their order; they may take more than memory."""
        (name,) = self._entries_of(starts, snapshot)
        pieces = [self._of_segment(segment, [starts, name], {}) for segment in snapshot.with_items]
        all_starts = [piece[starts] for piece in pieces]
        lengths = snapshot.rows.take([np.diff(of_segment) for of_segment in all_starts])
        entries = GrowingArray(pieces[0][name].dtype)
        for run in snapshot.rows.runs([len(of_segment) - 1 for of_segment in all_starts]):
            begin = all_starts[run.segment][run.rows.start]
            end = all_starts[run.segment][run.rows.stop]
            entries.append(pieces[run.segment][name][begin:end].ravel())
        whole = entries.whole().reshape(-1, *pieces[0][name].shape[1:])
        merged_starts = np.concatenate([[0], np.cumsum(lengths)])
        self.put(contents, **{starts: merged_starts, name: whole})

    def _merge_numbered_lists(
        self, contents: BuildContents, snapshot: Snapshot, starts: str
    ) -> None:
        names = [starts, *self._entries_of(starts, snapshot)]
        if self._keeps_numbers(snapshot, self.arrays[starts].shape == ("items",)):
            self.share(contents, snapshot, *names)
        else:
            self.put(contents, **self.numbered_lists(snapshot, starts))

    def _entries_of(self, starts: str, snapshot: Snapshot) -> list[str]:
        """Return the names of the arrays with the entries of lists that a build has."""
        dimension = self.arrays[starts].lists
        return [name for name in self.names_in(snapshot) if self.arrays[name].shape[0] == dimension]

    def is_of_lists(self, name: str) -> bool:
        """Return whether an array has the starts or the entries of lists."""
        dimensions = {spec.lists for spec in self.arrays.values() if spec.lists}
        return bool(self.arrays[name].lists) or self.arrays[name].shape[0] in dimensions

    def _keeps_numbers(self, snapshot: Snapshot, is_of_items: bool) -> bool:
        """Return whether lists of the base are those of the build as they are.

        is_of_items: each list is an item's, so that new items would need one.
        """
        return snapshot.rows.is_plain if is_of_items else snapshot.rows.keeps_base

    # --- files ---

    def _newest(self, snapshot: Snapshot, name: str, sizes: dict[str, int]) -> np.ndarray:
        """Read an array from the newest segment that has it."""
        full_name = self.name_of(name)
        array = snapshot.array(full_name)
        sizes["items"] = snapshot.base.n_rows
        check_shape(snapshot.file(full_name).path, array, self.arrays[name], sizes)
        return array

    def _of_segments(
        self, snapshot: Snapshot, name: str, sizes: dict[str, int]
    ) -> list[np.ndarray]:
        return [self._of_segment(segment, [name], sizes)[name] for segment in snapshot.with_items]

    def _of_segment(
        self, segment: Segment, names: Iterable[str], sizes: dict[str, int]
    ) -> dict[str, np.ndarray]:
        sizes["items"] = segment.n_rows
        paths = {name: segment.folder / f"{self.name_of(name)}.npy" for name in names}
        for name, path in paths.items():
            if not segment.has(self.name_of(name)):
                raise DamagedError(path, "it is not there, and its segment has items")
        arrays = {name: segment.array(self.name_of(name)) for name in paths}
        # All shapes first: they say how long the dimensions are that numbers have to be below.
        for check in (check_shape, check_numbers):
            for name, array in arrays.items():
                check(paths[name], array, self.arrays[name], sizes)
        return arrays
