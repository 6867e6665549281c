"""The specification of a stored array, and the checks that an array meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from qkvsearch.errors import DamagedError


class ArraySpec(NamedTuple):
    """The expected dtype, shape and content of a stored array.

    The field `rows` says what a row is made of, and so how the arrays of segments become one:

    - "": the array is about the whole build. The newest one counts.
    - "texts": a row is made of an item's texts. Every segment has the rows of its own items.
    - "interactions": a row is made of interactions, which only the base has. A new item has zeros.
    - "own": every segment has such an array, with numbers or sums of its own. The store cannot put
      them together; the component's `joined` does.

    An item may also have a list of entries instead of a row. One array then has where the lists
    begin (`lists` is the name of their dimension), and other arrays have that dimension first.
    """

    # NumPy's letters of the dtype kinds, such as "iu" for whole numbers.
    kinds: str
    # A name for each length. "items" is the number of rows of a segment. Lengths with the same name
    # are equal in all arrays that are read together.
    shape: tuple[str, ...]
    rows: Literal["", "texts", "interactions", "own"] = ""
    # The dimension whose lists begin at the numbers in this array, which is one longer than `shape`
    # says.
    lists: str = ""
    # The dimension that the numbers in this array are rows of.
    below: str = ""


def check_shape(path: Path, array: np.ndarray, spec: ArraySpec, sizes: dict[str, int]) -> None:
    """Raise `DamagedError` for another dtype or shape. sizes: lengths by name, extended here."""
    lengths = list(array.shape)
    if spec.lists:
        lengths = [length - 1 for length in lengths]
    if array.dtype.kind in spec.kinds and len(lengths) == len(spec.shape):
        expected = [sizes.setdefault(*pair) for pair in zip(spec.shape, lengths, strict=True)]
        if lengths == expected and min(lengths) >= 0:
            return
    expected_sizes = ", ".join(f"{name} = {sizes[name]}" for name in spec.shape if name in sizes)
    raise DamagedError(
        path,
        f"{array.dtype.str} {array.shape} does not go with the other arrays ({expected_sizes})",
    )


def check_numbers(path: Path, array: np.ndarray, spec: ArraySpec, sizes: dict[str, int]) -> None:
    """Raise `DamagedError` where row numbers, or the starts of lists, are out of range."""
    if spec.lists:
        n_entries = sizes[spec.lists]
        if (array[0], array[-1]) != (0, n_entries) or (np.diff(array) < 0).any():
            raise DamagedError(path, f"spans that do not lead from 0 to {n_entries}")
    limit = sizes.get(spec.below)
    if limit is not None and len(array) and (array.min() < 0 or array.max() >= limit):
        raise DamagedError(path, f"row numbers outside of 0 to {limit - 1}")
