"""A title with two neighbouring words swapped."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.made_queries.title_words import Changed, TitleKind


class TitleWordsSwapped(TitleKind):
    name = "title_words_swapped"
    description = "a title with two of its words swapped"
    claim = "titles with swapped words find their item"

    def changed(
        self, title: str, source: QueriedCatalog, rng: np.random.Generator
    ) -> Changed | None:
        words = title.split()
        is_telling = [bool(source.telling_words(word)) for word in words]
        # People swap neighbours. "The of Hand God" is nothing that somebody types.
        places = [place for place, both in enumerate(pairwise(is_telling)) if all(both)]
        if not places:
            return None
        place = places[rng.integers(len(places))]
        words[place : place + 2] = words[place + 1], words[place]
        return Changed(" ".join(words), title)

    def carries(self, source: QueriedCatalog) -> frozenset[str]:
        return frozenset()
