"""A head that brings items to the top, whatever the others say."""

from __future__ import annotations

import numpy as np

from qkvsearch.heads.search_head import SearchHead
from qkvsearch.scores.fusion import Scores, plus


class FirstHead(SearchHead):
    """Items that a query surely means. It is added to other heads, where it knows such items."""

    colours = ("#6d6d6d", "#b5b5b5")
    is_of_item = True
    # How far its items are ahead of all others, in standard deviations of a head's scores.
    lead: float

    def add(self, fused: Scores, items: np.ndarray) -> Scores:
        """Add what brings these items, bool (n_items,), ahead of all others."""
        behind = float(fused.scores.max() - fused.scores[items].min())
        return plus(fused, self.name, np.float32(behind + self.lead) * items.astype(np.float32))
