"""Text: any cell that no other type reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkvsearch.tables.column_facts import ParsedCells
from qkvsearch.tables.column_types.column_type import ColumnType

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


class TextType(ColumnType):
    """Stored as it is, without HTML."""

    name = "text"
    noun = "text"
    facet_rank = 1
    is_text = True

    def read(self, texts: pd.Series, counts: np.ndarray, convention: str = "") -> ParsedCells:
        return ParsedCells(self.name, texts.where(texts != ""))
