"""Arrays of a build that belong together: how they are read, changed and merged.

A build may consist of a base and of segments that were added to it. This module alone puts their
arrays together, as the `Layout` of each array says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from qkvsearch._utils.scratch import GrowingArray
from qkvsearch.errors import DamagedError
from qkvsearch.store.array_spec import ArrayChecks, ArraySpec, Layout, layouts
from qkvsearch.store.build_contents import BuildContents
from qkvsearch.store.segments import Segment
from qkvsearch.store.snapshot import Snapshot


class ItemLists(NamedTuple):
    """A list of entries for each item, without a copy of what is on disk."""

    # Where the entries of each list begin, int64 (n_lists + 1,).
    starts: np.ndarray
    # The entries of the first lists.
    entries: np.ndarray
    # Arrays with the entries of the other lists, numbered after `entries`.
    added: list[np.ndarray]
    # The list of each item, int64 (n_items,); None where they are in the same order.
    rows: np.ndarray | None


@dataclass(frozen=True)
class StoredArrays:
    """Arrays whose names begin with the same word.

    group: that word. arrays: the specification of each array, by the rest of its name.
    """

    group: str
    arrays: ClassVar[Mapping[str, ArraySpec]]

    # --- names ---

    def name_of(self, name: str) -> str:
        """Return the full name of one of the arrays, which begins with the group."""
        return f"{self.group}.{name}"

    def owns(self, full_name: str) -> bool:
        """Return whether an array with this full name is one of these."""
        return full_name in map(self.name_of, self.arrays)

    def names_in(self, snapshot: Snapshot) -> list[str]:
        """Return the names of the arrays that a build has."""
        return [name for name in self.arrays if self.name_of(name) in snapshot]

    def is_in(self, snapshot: Snapshot) -> bool:
        """Return whether a build has any of the arrays."""
        return bool(self.names_in(snapshot))

    # --- reading a build ---

    def read(self, snapshot: Snapshot, *names: str, **lengths: int) -> dict[str, np.ndarray]:
        """Read and check arrays, by default all that the build has.

        Rows are in the order of the build's items. Lists, and arrays that only `joined` can put
        together, are read where the build is one base. lengths: known lengths of dimensions, by
        their names in `ArraySpec.shape`. Raises `DamagedError`.
        """
        checks = ArrayChecks(**lengths)
        layout_of = layouts(self.arrays)
        arrays = {}
        for name in names or self.names_in(snapshot):
            if layout_of[name] is Layout.ROWS_OF_SEGMENTS:
                arrays[name] = snapshot.rows.take(self._of_segments(snapshot, name, checks))
            elif layout_of[name] is Layout.ROWS_OF_BASE:
                rows_of_base = self._newest(snapshot, name, checks)
                arrays[name] = snapshot.rows.by_origin(rows_of_base)
            else:
                arrays[name] = self._newest(snapshot, name, checks)
        return arrays

    def base_arrays(self, snapshot: Snapshot, *names: str, **lengths: int) -> dict[str, np.ndarray]:
        """Read and check arrays as the base has them, with the base's numbers of items."""
        return self._of_segment(snapshot.base, names, ArrayChecks(**lengths))

    def pieces(
        self, snapshot: Snapshot, *names: str
    ) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        """Yield the arrays of each segment, and the item of each of its rows, −1 for none."""
        for segment, item_rows in snapshot.item_rows_by_segment():
            yield self._of_segment(segment, names, ArrayChecks()), item_rows

    def rows_at(self, snapshot: Snapshot, name: str, positions: np.ndarray) -> np.ndarray:
        """Read the rows (n, …) of an array for the items in the rows `positions` (n,).

        There are zeros for −1, and for an item without a row.
        """
        if layouts(self.arrays)[name] is Layout.ROWS_OF_SEGMENTS:
            pieces = self._of_segments(snapshot, name, ArrayChecks())
            row_of_item = snapshot.rows.stored
        else:
            pieces = [self._newest(snapshot, name, ArrayChecks())]
            row_of_item = snapshot.rows.origin
        # The row of each item, counted through all pieces; −1 for none.
        wanted = np.where(positions >= 0, row_of_item[positions], -1)
        rows = np.zeros((len(wanted), *pieces[0].shape[1:]), pieces[0].dtype)
        start = 0
        for piece in pieces:
            here = np.flatnonzero((wanted >= start) & (wanted < start + len(piece)))
            rows[here] = piece[wanted[here] - start]
            start += len(piece)
        return rows

    def item_lists(
        self, snapshot: Snapshot, starts_name: str, entries_name: str, **lengths: int
    ) -> ItemLists:
        """Open lists of the layout `LISTS_OF_SEGMENTS`, with one array of entries."""
        first, *others = [
            # Each segment has another number of entries, and so checks of its own.
            self._of_segment(segment, [starts_name, entries_name], ArrayChecks(**lengths))
            for segment in snapshot.with_items
        ]
        if snapshot.rows.is_plain:
            return ItemLists(first[starts_name], first[entries_name], [], None)
        starts = [first[starts_name]]
        for segment_arrays in others:
            n_entries_before = starts[-1][-1]
            starts.append(segment_arrays[starts_name][1:] + n_entries_before)
        added = [segment_arrays[entries_name] for segment_arrays in others]
        item_to_list = snapshot.rows.stored
        return ItemLists(np.concatenate(starts), first[entries_name], added, item_to_list)

    def renumbered_lists(self, snapshot: Snapshot, starts_name: str) -> dict[str, np.ndarray]:
        """Read lists of the layout `LISTS_OF_BASE`, with the item rows of the build in them.

        Returns the array of starts and those of entries, by their names. Entries of deleted items
        are left out, and the others are sorted by item. There is no copy where every item has the
        row that it has in the base.
        """
        entry_names = self._entries_of(starts_name, snapshot)
        arrays = self.base_arrays(snapshot, starts_name, *entry_names)
        if self._base_has_lists_of_build(snapshot, starts_name):
            return arrays
        # Rows of the base to rows of the build; −1 for a deleted item.
        new_row = snapshot.rows.item_rows_of_base
        n_lists = len(arrays[starts_name]) - 1
        entry_list = np.repeat(np.arange(n_lists), np.diff(arrays[starts_name]))
        if self._has_a_list_for_each_item(starts_name):
            entry_list = new_row[entry_list]
            n_lists = len(snapshot.rows)
        (item_name,) = (name for name in entry_names if self.arrays[name].below == "items")
        entry_item = new_row[arrays[item_name]]
        kept = np.flatnonzero((entry_list >= 0) & (entry_item >= 0))
        kept = kept[np.lexsort((entry_item[kept], entry_list[kept]))]
        list_lengths = np.bincount(entry_list[kept], minlength=n_lists)
        renumbered = {starts_name: _starts(list_lengths)}
        for name in entry_names:
            if name == item_name:
                renumbered[name] = entry_item[kept].astype(arrays[name].dtype)
            else:
                renumbered[name] = arrays[name][kept]
        return renumbered

    # --- changing and merging ---

    def put(self, contents: BuildContents, **arrays: Any) -> None:
        """Add arrays to the build; None removes one.

        They are not shared any more: writing under a shared name would change the other build.
        """
        for name, values in arrays.items():
            full_name = self.name_of(name)
            contents.shared.pop(f"{full_name}.npy", None)
            contents.arrays.pop(full_name, None)
            if values is not None:
                contents.add(full_name, values)

    def share(self, contents: BuildContents, snapshot: Snapshot, *names: str) -> None:
        """Share arrays of another build."""
        for full_name in map(self.name_of, names):
            contents.shared[f"{full_name}.npy"] = snapshot.file(full_name)

    def pending(self, contents: BuildContents, name: str) -> np.ndarray:
        """Return one of the arrays that will be published: a new one or a shared one."""
        return contents.array(self.name_of(name))

    def is_pending(self, contents: BuildContents, name: str) -> bool:
        """Return whether `contents` has one of the arrays."""
        return contents.has(self.name_of(name))

    def merge(self, contents: BuildContents, snapshot: Snapshot) -> None:
        """Add the arrays of one base that answers as all segments of a build do together."""
        names = self.names_in(snapshot)
        if snapshot.rows.is_plain:
            self.share(contents, snapshot, *names)
            return
        layout_of = layouts(self.arrays)
        for name in names:
            match layout_of[name]:
                case Layout.WHOLE:
                    self.share(contents, snapshot, name)
                case Layout.ROWS_OF_SEGMENTS | Layout.ROWS_OF_BASE:
                    self.put(contents, **self.read(snapshot, name))
                case Layout.LISTS_OF_SEGMENTS:
                    self._merge_lists_of_segments(contents, snapshot, name)
                case Layout.LISTS_OF_BASE:
                    self._merge_lists_of_base(contents, snapshot, name)
                case Layout.ENTRIES:
                    pass  # Added with their starts.
                case Layout.OWN:
                    pass  # Added all at once, below.
        if Layout.OWN in [layout_of[name] for name in names]:
            self.put(contents, **self.joined(snapshot))

    def joined(self, snapshot: Snapshot) -> dict[str, np.ndarray]:
        """Return the arrays of the layout `OWN` of all segments, as one base has them.

        A component that declares such arrays must override this; all others never come here.
        """
        raise NotImplementedError(self.group)

    def _merge_lists_of_segments(
        self, contents: BuildContents, snapshot: Snapshot, starts_name: str
    ) -> None:
        """Copy the lists of all items in their order; they may take more than memory."""
        (entries_name,) = self._entries_of(starts_name, snapshot)
        segments = [
            self._of_segment(segment, [starts_name, entries_name], ArrayChecks())
            for segment in snapshot.with_items
        ]
        segment_lengths = [np.diff(arrays[starts_name]) for arrays in segments]
        list_lengths = snapshot.rows.take(segment_lengths)
        first_entries = segments[0][entries_name]
        merged = GrowingArray(first_entries.dtype)
        for run in snapshot.rows.runs([len(lengths) for lengths in segment_lengths]):
            arrays = segments[run.segment]
            begin = arrays[starts_name][run.rows.start]
            end = arrays[starts_name][run.rows.stop]
            merged.append(arrays[entries_name][begin:end].ravel())
        entries = merged.whole().reshape(-1, *first_entries.shape[1:])
        self.put(contents, **{starts_name: _starts(list_lengths), entries_name: entries})

    def _merge_lists_of_base(
        self, contents: BuildContents, snapshot: Snapshot, starts_name: str
    ) -> None:
        if self._base_has_lists_of_build(snapshot, starts_name):
            self.share(contents, snapshot, starts_name, *self._entries_of(starts_name, snapshot))
        else:
            self.put(contents, **self.renumbered_lists(snapshot, starts_name))

    def _entries_of(self, starts_name: str, snapshot: Snapshot) -> list[str]:
        """Return the names of the arrays with the entries of lists that a build has."""
        dimension = self.arrays[starts_name].lists
        return [name for name in self.names_in(snapshot) if self.arrays[name].shape[0] == dimension]

    def _has_a_list_for_each_item(self, starts_name: str) -> bool:
        return self.arrays[starts_name].shape == ("items",)

    def _base_has_lists_of_build(self, snapshot: Snapshot, starts_name: str) -> bool:
        """Return whether lists of the base are those of the build as they are."""
        if self._has_a_list_for_each_item(starts_name):
            # A new item would need a list.
            return snapshot.rows.is_plain
        return snapshot.rows.keeps_base

    # --- files ---

    def _newest(self, snapshot: Snapshot, name: str, checks: ArrayChecks) -> np.ndarray:
        """Read an array from the newest segment that has it."""
        full_name = self.name_of(name)
        array = snapshot.array(full_name)
        checks.lengths["items"] = snapshot.base.n_rows
        checks.check_shape(snapshot.file(full_name).path, array, self.arrays[name])
        return array

    def _of_segments(self, snapshot: Snapshot, name: str, checks: ArrayChecks) -> list[np.ndarray]:
        return [self._of_segment(segment, [name], checks)[name] for segment in snapshot.with_items]

    def _of_segment(
        self, segment: Segment, names: Iterable[str], checks: ArrayChecks
    ) -> dict[str, np.ndarray]:
        checks.lengths["items"] = segment.n_rows
        paths = {name: segment.folder / f"{self.name_of(name)}.npy" for name in names}
        for name, path in paths.items():
            if not segment.has(self.name_of(name)):
                raise DamagedError(path, "it is not there, and its segment has items")
        arrays = {name: segment.array(self.name_of(name)) for name in paths}
        # All shapes come first: they tell how long the dimensions are that row numbers refer to.
        for name, array in arrays.items():
            checks.check_shape(paths[name], array, self.arrays[name])
        for name, array in arrays.items():
            checks.check_numbers(paths[name], array, self.arrays[name])
        return arrays


def _starts(lengths: np.ndarray) -> np.ndarray:
    """Return where lists of these lengths (n,) start and the last one ends, int64 (n + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths)])
