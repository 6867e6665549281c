"""A title without one of its words."""

from __future__ import annotations

import numpy as np

from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.made_queries.title_words import Changed, TitleKind
from qkvsearch.text.analysis import HAS_CJK

# One word of two could be any item's.
MIN_WORDS, MIN_TELLING = 3, 2


class TitleWordLeftOut(TitleKind):
    name = "title_word_left_out"
    description = "a title without one of its words"
    claim = "titles without a word find their item"

    def changed(
        self, title: str, source: QueriedCatalog, rng: np.random.Generator
    ) -> Changed | None:
        words = title.split()
        if len(words) < MIN_WORDS:
            return None
        del words[rng.integers(len(words))]
        rest = " ".join(words)
        if len(source.telling_words(rest)) < MIN_TELLING and not HAS_CJK(rest):
            return None
        return Changed(rest, rest)

    def carries(self, source: QueriedCatalog) -> frozenset[str]:
        return frozenset()
