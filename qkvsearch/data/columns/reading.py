"""What a type makes of the cells of a column: the values, and what was done to which cell."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from qkvsearch.data.columns.facts import ColumnType

# What programs write where there is nothing, and what people do; without case, and brackets around.
SIGNS = frozenset(
    "- -- --- – — − . .. ? ?? n/a n.a. n.a #n/a nan null none nil \\n #ref! #value! #name? "
    "#div/0! #null! #num!".split()
) | {""}
WORDS = frozenset("na #na nothing missing unknown undefined unset empty blank tbd tba".split()) | {
    "not available", "not applicable", "no data"
}  # fmt: skip


@dataclass
class Reading:
    """The distinct cells of a column as one type reads them.

    values: one for each distinct cell, missing where it does not fit. changed: what was done, and
    to which of them (bool). doubts: what speaks against this type though the cells fit it.
    convention: how cells that can be read in two ways were read, to be kept for cells to come.
    """

    type: ColumnType
    values: pd.Series
    changed: dict[str, np.ndarray] = field(default_factory=dict)
    doubts: str = ""
    convention: str = ""

    @property
    def fits(self) -> np.ndarray:
        """Which of the distinct cells are of this type."""
        return self.values.notna().to_numpy(bool)

    def change(self, what: str, cells: ArrayLike) -> None:
        """Note what was done to those of `cells` (bool) that fit."""
        fitting = np.asarray(cells, dtype=bool) & self.fits
        if fitting.any():
            self.changed[what] = fitting


def say_nothing(texts: pd.Series, words: bool = True) -> np.ndarray:
    """Which cells only say that there is nothing, by a sign, or also by a word that may as well be
    an entry of a list.

    >>> say_nothing(pd.Series(["N/A", "(null)", "Nile", "unknown"])).tolist()
    [True, True, False, True]
    """
    bare = texts.str.strip().str.casefold().str.replace(r"^[(<\[](.*)[)>\]]$", r"\1", regex=True)
    return bare.isin(SIGNS | WORDS if words else SIGNS).to_numpy(bool)
