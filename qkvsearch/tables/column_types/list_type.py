"""Lists of entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from qkvsearch.tables.column_facts import LIST_SEPARATOR
from qkvsearch.tables.column_types.column_type import ColumnType

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from qkvsearch.tables.column_facts import ParsedCells


class ListType(ColumnType):
    """Stored as text: Outdoor|Rain."""

    name = "list"
    noun = "a list"
    facet_rank = 0
    is_text = True
    word_is_missing = False  # it may as well be an entry
    shown_as = "entries"

    def read(self, texts: pd.Series, counts: np.ndarray, convention: str = "") -> ParsedCells:
        from qkvsearch.tables.columns.lists import read_lists

        return read_lists(texts, counts)

    def read_requested(
        self, texts: pd.Series, counts: np.ndarray, convention: str = ""
    ) -> ParsedCells:
        from qkvsearch.tables.columns.lists import read_requested_lists

        return read_requested_lists(texts, counts, convention)

    def searched(self, cell: Any) -> str:
        """Pretrained encoders have a vector for the separator, so there are spaces instead."""
        return str(cell).replace(LIST_SEPARATOR, " ")

    def entries(self, cell: Any) -> list[str]:
        return list(dict.fromkeys(str(cell).split(LIST_SEPARATOR)))

    def condition(self, name: str, value: str, distinct: Sequence[Any]) -> tuple[str, list[Any]]:
        return f"has({name}, ?)", [value]
