"""A bonus for items with a code of the query: whoever types a code means that item."""

from __future__ import annotations

import numpy as np

from qkvsearch.heads.search_head import Asked, SearchHead, by_language
from qkvsearch.scores.fusion import Scores, plus

# How far such an item is ahead of all others, in standard deviations of a head's scores: more than
# the second pass gives.
LEAD = 5.0


class CodeHead(SearchHead):
    """The items with a code of the query. It is added to other heads where the query has words
    beside the code.
    """

    name = "code"
    titles = by_language(en="same code", zh="相同的编号")
    colours = ("#6d6d6d", "#b5b5b5")
    reason = "it has this code"
    is_of_item = True

    def items(self, asked: Asked) -> np.ndarray | None:
        """Return the items with a code of the query, bool (n_items,).

        Return None where it has none, or nothing else. A small number, or an id that may be a word,
        is no code here.
        """
        codes = asked.query.codes
        scores = codes.head(asked.catalog) if codes.are_certain and codes.rest else None
        return None if scores is None else scores.scores > 0

    def add(self, fused: Scores, items: np.ndarray) -> Scores:
        """Add what brings these items, bool (n_items,), ahead of all others."""
        behind = float(fused.scores.max() - fused.scores[items].min())
        return plus(fused, self.name, np.float32(behind + LEAD) * items.astype(np.float32))


CODE = CodeHead()
