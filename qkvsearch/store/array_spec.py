"""What an array of a build is declared to be, and the checks that a stored one meets it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from qkvsearch.errors import DamagedError


class ArraySpec(NamedTuple):
    """The expected dtype, shape and content of a stored array.

    The field `rows` says what a row is made of:

    - "": the array is about the whole build. The newest one counts.
    - "texts": a row is made of an item's texts. Every segment has the rows of its own items.
    - "interactions": a row is made of interactions, which only the base has. A new item has zeros.
    - "own": every segment has such an array, with numbers or sums of its own. The store cannot put
      them together; the component's `joined` does.

    Lists of different lengths are stored as in a sparse matrix: one array has where each list
    starts (`lists` names the dimension of the entries), and other arrays have the entries. Here
    each user has a list of items, and a rating for each:

    >>> log = {
    ...     "indptr": ArraySpec("i", ("users",), rows="interactions", lists="pairs"),
    ...     "items": ArraySpec("i", ("pairs",), rows="interactions", below="items"),
    ...     "ratings": ArraySpec("f", ("pairs",), rows="interactions"),
    ... }
    >>> [layout.name for layout in layouts(log).values()]
    ['LISTS_OF_BASE', 'ENTRIES', 'ENTRIES']
    """

    # NumPy's letters of the dtype kinds, such as "iu" for whole numbers.
    kinds: str
    # A name for each length. "items" is the number of rows of a segment. Lengths with the same name
    # are equal in all arrays that are read together.
    shape: tuple[str, ...]
    rows: Literal["", "texts", "interactions", "own"] = ""
    # Only for an array of starts: the name of its entries' dimension. List i has the entries from
    # array[i] to array[i + 1], so the array is one longer than `shape` says.
    lists: str = ""
    # Only for an array of row numbers: the name of the dimension that they are rows of.
    below: str = ""


class Layout(Enum):
    """How the arrays of a build's segments are put together. Each array has one layout."""

    # One array about the whole build: the newest counts.
    WHOLE = auto()
    # A row for each item, in the segment that the item is in.
    ROWS_OF_SEGMENTS = auto()
    # A row for each item of the base; items that were added have zeros.
    ROWS_OF_BASE = auto()
    # The starts of a list for each item, in the segment that the item is in.
    LISTS_OF_SEGMENTS = auto()
    # The starts of lists that only the base has. The entries include rows of items.
    LISTS_OF_BASE = auto()
    # The entries of lists. They are put together with their starts.
    ENTRIES = auto()
    # The component puts these arrays together.
    OWN = auto()


def layouts(arrays: Mapping[str, ArraySpec]) -> dict[str, Layout]:
    """Return the layout of each array. arrays: all specifications of a component, by name."""
    entry_dimensions = {spec.lists for spec in arrays.values() if spec.lists}
    return {name: _layout(spec, entry_dimensions) for name, spec in arrays.items()}


def _layout(spec: ArraySpec, entry_dimensions: set[str]) -> Layout:
    if spec.rows == "":
        return Layout.WHOLE
    if spec.rows == "own":
        return Layout.OWN
    if spec.shape[0] in entry_dimensions:
        return Layout.ENTRIES
    if spec.rows == "texts":
        return Layout.LISTS_OF_SEGMENTS if spec.lists else Layout.ROWS_OF_SEGMENTS
    return Layout.LISTS_OF_BASE if spec.lists else Layout.ROWS_OF_BASE


class ArrayChecks:
    """The checks of arrays that are read together.

    lengths: known lengths of dimensions, by name. The first array that has another dimension adds
    its length, and the following arrays must have the same.
    """

    def __init__(self, **lengths: int) -> None:
        self.lengths = lengths

    def check_shape(self, path: Path, array: np.ndarray, spec: ArraySpec) -> None:
        """Raise `DamagedError` for another dtype or shape."""
        found = list(array.shape)
        if spec.lists:
            found = [length - 1 for length in found]
        if array.dtype.kind in spec.kinds and len(found) == len(spec.shape):
            for name, length in zip(spec.shape, found, strict=True):
                self.lengths.setdefault(name, length)
            expected = [self.lengths[name] for name in spec.shape]
            if found == expected and min(found) >= 0:
                return
        known = [name for name in spec.shape if name in self.lengths]
        expected_lengths = ", ".join(f"{name} = {self.lengths[name]}" for name in known)
        raise DamagedError(
            path,
            f"{array.dtype.str} {array.shape} does not go with the other arrays "
            f"({expected_lengths})",
        )

    def check_numbers(self, path: Path, array: np.ndarray, spec: ArraySpec) -> None:
        """Raise `DamagedError` where row numbers, or the starts of lists, are out of range.

        The shapes must have been checked before: they tell the range.
        """
        if spec.lists:
            n_entries = self.lengths[spec.lists]
            if (array[0], array[-1]) != (0, n_entries) or (np.diff(array) < 0).any():
                raise DamagedError(path, f"spans that do not lead from 0 to {n_entries}")
        limit = self.lengths.get(spec.below)
        if limit is not None and len(array) and (array.min() < 0 or array.max() >= limit):
            raise DamagedError(path, f"row numbers outside of 0 to {limit - 1}")
