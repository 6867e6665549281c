"""A bonus while the user types: an item whose title begins so is most likely meant."""

from __future__ import annotations

import numpy as np

from qkvsearch.heads.first_head import FirstHead
from qkvsearch.heads.search_head import by_language
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.scores.fusion import Scores, plus

# In standard deviations of a head's scores: more than other heads give, whatever the meaning.
BONUS = 5.0


class BeginningHead(FirstHead):
    """The items that begin as typed. It is added to other heads while the user types."""

    name = "beginning"
    titles = by_language(en="Prefix match", zh="以所输入的开头")
    reason = "it begins as typed"

    def items(self, models: StoredModels, typed: str) -> np.ndarray | None:
        """Return the items that begin as typed, bool (n_items,); None where no word is typed."""
        words = [token.text for token in models.analyzer.tokens(typed)]
        return models.words.items_with_prefix(words) if words else None

    def add(self, fused: Scores, items: np.ndarray) -> Scores:
        """Add the bonus to the scores of these items, bool (n_items,), which rank among others."""
        return plus(fused, self.name, BONUS * items.astype(np.float32))


BEGINNING = BeginningHead()
