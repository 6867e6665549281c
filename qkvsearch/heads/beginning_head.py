"""A bonus while the user types: an item whose title begins so is most likely meant."""

from __future__ import annotations

import numpy as np

from qkvsearch.heads.first_head import FirstHead, QueryWording
from qkvsearch.heads.search_head import Asked, by_language
from qkvsearch.scores.fusion import Scores, plus

# In standard deviations of a head's scores: more than other heads give, whatever the meaning.
BONUS = 5.0


class BeginningHead(FirstHead):
    """The items that begin as typed. It is added to other heads while the user types, and where a
    query breaks off.
    """

    name = "beginning"
    titles = by_language(en="Prefix match", zh="以所输入的开头")
    reason = "it begins as typed"
    needs_words = False

    def items(self, asked: Asked, wording: QueryWording) -> np.ndarray | None:
        """Return the items that begin as typed, bool (n_items,); None where no word is typed.

        Where no more is to come, return those of which the query has half the title.
        """
        if not wording.is_typing:
            return wording.half_titled
        words = [token.text for token in asked.models.analyzer.tokens(wording.typed)]
        return asked.models.words.items_with_prefix(words) if words else None

    def add(self, fused: Scores, items: np.ndarray) -> Scores:
        """Add the bonus to the scores of these items, bool (n_items,), which rank among others."""
        return plus(fused, self.name, BONUS * items.astype(np.float32))


BEGINNING = BeginningHead()
