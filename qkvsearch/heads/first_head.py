"""A head that brings items to the top, whatever the others say."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from qkvsearch.heads.search_head import Asked, SearchHead
from qkvsearch.scores.fusion import Scores, plus


class QueryWording(NamedTuple):
    """How a query is worded."""

    typed: str
    # What may be a whole title.
    title: str
    # The items of which it has half the title, bool (n_items,); None without any.
    half_titled: np.ndarray | None
    # Whether more is to come.
    is_typing: bool


class FirstHead(SearchHead):
    """Items that a query surely means. It is added to other heads, where it knows such items."""

    colours = ("#6d6d6d", "#b5b5b5")
    is_of_item = True
    # How far its items are ahead of all others, in standard deviations of a head's scores.
    lead: float
    # Whether it takes part only where words are compared.
    needs_words = True

    @abstractmethod
    def items(self, asked: Asked, wording: QueryWording) -> np.ndarray | None:
        """Return the items that the query means, bool (n_items,); None where there are none."""

    def add(self, fused: Scores, items: np.ndarray) -> Scores:
        """Add what brings these items, bool (n_items,), ahead of all others."""
        behind = float(fused.scores.max() - fused.scores[items].min())
        return plus(fused, self.name, np.float32(behind + self.lead) * items.astype(np.float32))
