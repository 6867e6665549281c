"""A title as it is, where a catalog allows no other kind of query."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qkvsearch.evaluation.made_queries.query_kind import MadeQuery, QueryKind
from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.made_queries.title_words import as_typed


class TitleAsItIs(QueryKind):
    """Titles that are too short for a typo or for a word less, or that all items share.

    Nearly every search finds them, so that they are asked only where nothing else can be.
    """

    name = "title_as_it_is"
    description = "a title as it is"
    claim = "titles find their item"

    def make(self, source: QueriedCatalog, rng: np.random.Generator) -> Iterator[MadeQuery]:
        for item, title in source.shuffled_titles(rng):
            typed = as_typed(title)
            answers = source.titled(typed)
            # A title of signs alone has no words.
            if item in answers:
                yield MadeQuery(self.name, typed, item, answers)

    def carries(self, source: QueriedCatalog) -> frozenset[str]:
        return frozenset()
