"""What stored arrays look like: checked before anything computes with them.

A checksum says that a file is as it was written; this, that what was written can be read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from qkvsearch.errors import DamagedError


class ArraySpec(NamedTuple):
    """kinds: of its dtype, in NumPy's letters. shape: a name for each length; "items" are the rows
    of a segment, and other lengths of one name are equal in all arrays that are read together.

    rows: whether the rows are made of the items' texts, which every segment has of its own items,
    or of their interactions, which the base alone has. spans: it is one longer than `shape` says,
    and holds where the spans of that dimension begin. below: it holds row numbers of that one.
    """

    kinds: str
    shape: tuple[str, ...]
    rows: Literal["", "texts", "interactions"] = ""
    spans: str = ""
    below: str = ""


def check_form(path: Path, array: np.ndarray, form: ArraySpec, sizes: dict[str, int]) -> None:
    """Raise `DamagedError` where an array has another dtype or shape. sizes: lengths that are known
    by their names; those that are seen for the first time are added.
    """
    lengths = [length - bool(form.spans) for length in array.shape]
    if array.dtype.kind in form.kinds and len(lengths) == len(form.shape):
        expected = [sizes.setdefault(*pair) for pair in zip(form.shape, lengths, strict=True)]
        if lengths == expected and min(lengths) >= 0:
            return
    known = ", ".join(f"{name} = {sizes[name]}" for name in form.shape if name in sizes)
    raise DamagedError(
        path, f"{array.dtype.str} {array.shape} does not go with the other arrays ({known})"
    )


def check_numbers(path: Path, array: np.ndarray, form: ArraySpec, sizes: dict[str, int]) -> None:
    """Raise `DamagedError` where row numbers lead out of the array that they are of."""
    if form.spans:
        ends = array[0], array[-1]
        if ends != (0, sizes[form.spans]) or (np.diff(array) < 0).any():
            raise DamagedError(path, f"spans that do not lead from 0 to {sizes[form.spans]}")
    limit = sizes.get(form.below)
    if limit is not None and len(array) and (array.min() < 0 or array.max() >= limit):
        raise DamagedError(path, f"row numbers outside of 0 to {limit - 1}")
