"""What is known of a column, and its cells as one type reads them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

ColumnType = Literal["number", "date", "yes/no", "list", "text"]
TYPES: tuple[ColumnType, ...] = get_args(ColumnType)

LONGEST_EXAMPLE = 80


# Between the entries of a list, as it is kept.
LIST_SEPARATOR = "|"


def text_read(cell: Any, column_type: str) -> str:
    """What search reads of a cell: all of it, with blanks between the entries of a list. Pretrained
    encoders have a vector for the separator as well, and it means nothing here.

    >>> text_read("Rain|Snow", "list"), text_read("a|b", "text"), text_read(None, "text")
    ('Rain Snow', 'a|b', '')
    """
    text = "" if cell is None else str(cell)
    return text.replace(LIST_SEPARATOR, " ") if column_type == "list" else text


@dataclass(frozen=True)
class ColumnFacts:
    """name: as the file spells it. role: "id", "title", "text", "user", "item", "rating", "weight",
    "time", or "" for a column that only filters. empty: the share of its cells, 0 to 1, that are
    empty, those emptied included. example: a cell as it is kept. changed: what was done to cells,
    and to how many: {"currency removed": 1503, "emptied: no number": 2}. stored: what the
    workspace calls the column, where that is another name. convention: how cells were read that
    can be read in two ways: the decimal separator, or "day first".

    >>> ColumnFacts("Price", "", "number", empty=0.01, example="12.5").to_record()["type"]
    'number'
    """

    name: str
    role: str
    type: ColumnType
    empty: float = 0.0
    example: str = ""
    changed: dict[str, int] = field(default_factory=dict)
    stored: str = ""
    convention: str = ""

    def of_cells(self, cells: Any) -> ColumnFacts:
        """With the share of gaps among `cells`, a pandas Series, and an example of them."""
        there = cells.dropna()
        return self.of(len(there), len(cells), "" if there.empty else str(there.iloc[0]))

    def of(self, n_filled: int, n_cells: int, example: str) -> ColumnFacts:
        """The same where these numbers are known."""
        empty = round(1 - n_filled / max(n_cells, 1), 4)
        return replace(self, empty=empty, example=example[:LONGEST_EXAMPLE])

    def to_record(self) -> dict[str, Any]:
        """As `info` shows it, and as a build keeps it."""
        return asdict(self)


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

    >>> import pandas as pd
    >>> say_nothing(pd.Series(["N/A", "(null)", "Nile", "unknown"])).tolist()
    [True, True, False, True]
    """
    bare = texts.str.strip().str.casefold().str.replace(r"^[(<\[](.*)[)>\]]$", r"\1", regex=True)
    return bare.isin(SIGNS | WORDS if words else SIGNS).to_numpy(bool)
