"""A title with two words swapped."""

from __future__ import annotations

import numpy as np

from qkvsearch.evaluation.made_queries.source import Source
from qkvsearch.evaluation.made_queries.title_words import Changed, TitleKind


class TitleWordsSwapped(TitleKind):
    name = "title_words_swapped"
    description = "a title with two of its words swapped"
    claim = "titles with swapped words find their item"

    def changed(self, title: str, source: Source, rng: np.random.Generator) -> Changed | None:
        words = title.split()
        if len(words) < 2:
            return None
        first, second = rng.permutation(len(words))[:2].tolist()
        words[first], words[second] = words[second], words[first]
        return Changed(" ".join(words), title)

    def carries(self, source: Source) -> frozenset[str]:
        return frozenset()
