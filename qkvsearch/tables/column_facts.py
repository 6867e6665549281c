"""What is known of a column: its name, role and type, and its cells as one type reads them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.folding import fold

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

# The roles of columns of a log.
ROLES = ("user", "item", "rating", "weight", "event", "time")
# Between the entries of a stored list.
LIST_SEPARATOR = "|"
MAX_EXAMPLE = 80
# Changed cells that a report names.
MAX_EXAMPLES = 3
# Cells that are looked at for different ones.
SAMPLE = 1000
# Words of cells: yes and no; those of them that are also codes of languages, countries or points of
# the compass, and the pairs of these that are yes and no in one language; what programs and people
# write for an empty cell, and where a date would be, without case and brackets around it; codes of
# currencies, and regular expressions of their names.
CELL_WORDS = json.loads(Path(__file__).with_name("cell_words.json").read_text(encoding="utf-8"))
# Words of the names of columns with prices.
PRICES = frozenset(CELL_WORDS["prices"])
CURRENCY_SYMBOLS = "$¢£¤¥₠-⃀﷼฿֏؋₿＄￠￡￥￦"


# To fold Chinese words takes a table that most searches do without.
@cache
def yes_words() -> frozenset[str]:
    """Return the words for yes as `fold` spells them: cells and queries have them in any case and
    Unicode form.
    """
    return frozenset(map(fold, CELL_WORDS["yes"]))


@cache
def no_words() -> frozenset[str]:
    """Return the words for no: see `yes_words`."""
    return frozenset(map(fold, CELL_WORDS["no"]))


@dataclass(frozen=True)
class ColumnFacts:
    """The facts about a column that a build shows and stores.

    >>> ColumnFacts("Price", "", "number", empty=0.01, example="12.5").to_record()["type"]
    'number'
    """

    # As the file spells it.
    name: str
    # "id", "title", "text", "user", "item", "rating", "weight", "event", "time", or "" for a column
    # that only filters.
    role: str
    # One of `column_types.NAMES`.
    type: str
    # The share of its cells, 0 to 1, that are empty, emptied ones included.
    empty: float = 0.0
    # A stored cell, none of users.
    example: str = ""
    # How many cells were changed, by the kind of change: {"$ removed": 1503}.
    changed: dict[str, int] = field(default_factory=dict)
    # The column's name in the workspace, if another one.
    stored: str = ""
    # How ambiguous cells were read: "day first", or the decimal separator of numbers and, behind a
    # space, their unit.
    convention: str = ""
    # The unit of numbers as the file writes it, such as "oz" or "分钟"; currencies are no units.
    unit: str = ""

    def of_cells(self, cells: pd.Series) -> ColumnFacts:
        """Return the facts with the share of empty cells, and an example."""
        filled = cells.dropna()
        return self.of(len(filled), len(cells), "" if filled.empty else str(filled.iloc[0]))

    def of(self, n_filled: int, n_cells: int, example: str) -> ColumnFacts:
        """Return the facts with these numbers, and an example unless the cells may be users."""
        empty = round(1 - n_filled / max(n_cells, 1), 4)
        is_user = self.role == "user" or "@" in example
        return replace(self, empty=empty, example="" if is_user else example[:MAX_EXAMPLE])

    def to_record(self) -> dict[str, Any]:
        """Return the facts as `info` shows them and a build stores them."""
        return asdict(self)


@dataclass
class ParsedCells:
    """The distinct cells of a column as one type reads them.

    values: one for each distinct cell, missing where it does not fit. changed: which cells were
    changed (bool), by the kind of change. doubts: what speaks against this type though the cells
    fit it; doubts_unless_amount: the same, unless the column is named as a price or a
    rating. convention: how ambiguous cells were read, so that later ones are read the same way.
    unit: of numbers.
    """

    type: str
    values: pd.Series
    changed: dict[str, np.ndarray] = field(default_factory=dict)
    doubts: str = ""
    convention: str = ""
    doubts_unless_amount: str = ""
    unit: str = ""

    @property
    def fits(self) -> np.ndarray:
        """Which of the distinct cells are of this type, bool."""
        return self.values.notna().to_numpy(bool)

    def change(self, what: str, cells: ArrayLike) -> None:
        """Note a change of those of `cells` (bool) that fit."""
        fitting = np.asarray(cells, dtype=bool) & self.fits
        if fitting.any():
            self.changed[what] = fitting


# Characters of a sign or of words for an empty cell, with brackets around them.
LONGEST_SIGN = 100


def examples_of(texts: pd.Series, are_lost: np.ndarray | None = None) -> list[str]:
    """Return at most three of the different texts of changed cells. Most are of lost ones, which
    were emptied (bool), if there are any; one is of the others.

    >>> import pandas as pd
    >>> texts = pd.Series(["$5", "$6", "ask", "n/a", "?", "ask", "old"])
    >>> examples_of(texts, np.array([False, False, True, True, True, True, True]))
    ['ask', 'n/a', '$5']
    """
    if are_lost is None:
        are_lost = np.zeros(len(texts), dtype=bool)
    lost = list(dict.fromkeys(map(str, texts[are_lost][:SAMPLE])))
    others = list(dict.fromkeys(map(str, texts[~are_lost][:SAMPLE])))
    n_others = max(MAX_EXAMPLES - len(lost), min(len(others), 1))
    shown = [*lost[: MAX_EXAMPLES - min(n_others, len(others))], *others[:n_others]]
    return shown[:MAX_EXAMPLES]


def are_missing(texts: pd.Series, words: bool = True) -> np.ndarray:
    """Return which cells stand for an empty one, by a sign, or by a word unless `words` is False:
    a word may as well be an entry of a list.

    >>> import pandas as pd
    >>> are_missing(pd.Series(["N/A", "(null)", "Nile", "unknown", "n.d."])).tolist()
    [True, True, False, True, True]
    """
    bare = texts.str.strip()
    # Folding the letters of long texts takes a while.
    bare = bare.where(bare.str.len() <= LONGEST_SIGN, "a text")
    bare = bare.str.casefold().str.replace(r"^[(<\[](.*)[)>\]]$", r"\1", regex=True)
    missing = list(CELL_WORDS["missing_signs"])
    if words:
        missing += CELL_WORDS["missing_words"] + CELL_WORDS["no_dates"]
    return bare.isin(missing).to_numpy(bool)
