"""The title of an item, to find items that are like it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qkvsearch.evaluation.made_queries.alike import MIN_ITEMS, Alike
from qkvsearch.evaluation.made_queries.query_kind import HEADS, MadeQuery, QueryKind
from qkvsearch.evaluation.made_queries.source import TITLE, QueriedCatalog
from qkvsearch.evaluation.made_queries.title_words import as_typed

# A shorter title has no topic.
MIN_WORDS = 3


class AlikeByTitle(QueryKind):
    name = "alike_by_title"
    description = "the title of an item, to find those that are alike"
    claim = "titles find an item like their own"
    looks_for_one_item = False

    def make(self, source: QueriedCatalog, rng: np.random.Generator) -> Iterator[MadeQuery]:
        if not source.titles or source.description is None or source.n_items < MIN_ITEMS:
            return
        alike = Alike(source)
        for item, texts in source.shuffled_texts(rng, source.text_columns):
            title = texts[source.text_columns.index(TITLE)]
            if len(source.analyzer.terms(title)) < MIN_WORDS:
                continue
            answers = alike.to(item, "\n".join(texts))
            if answers:
                typed = as_typed(title)
                yield MadeQuery(self.name, typed, answers[0], answers, made_of=item)

    def carries(self, source: QueriedCatalog) -> frozenset[str]:
        compares_heads = source.is_long and source.table is not None
        return frozenset([HEADS]) if compares_heads else frozenset()
