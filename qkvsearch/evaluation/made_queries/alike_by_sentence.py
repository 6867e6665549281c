"""A sentence of an item's description, to find items that are like it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qkvsearch.evaluation.made_queries.alike import MIN_ITEMS, Alike
from qkvsearch.evaluation.made_queries.query_kind import HEADS, MadeQuery, QueryKind
from qkvsearch.evaluation.made_queries.source import QueriedCatalog, sentences
from qkvsearch.evaluation.made_queries.title_words import as_typed

# A shorter sentence has no topic; nobody types a longer one.
MIN_WORDS, MAX_WORDS = 8, 40


class AlikeBySentence(QueryKind):
    name = "alike_by_sentence"
    description = "a sentence of a description, to find items that are alike"
    claim = "sentences find an item like their own"
    looks_for_one_item = False

    def make(self, source: QueriedCatalog, rng: np.random.Generator) -> Iterator[MadeQuery]:
        column = source.description
        if column is None or source.n_items < MIN_ITEMS:
            return
        alike = Alike(source)
        place = source.text_columns.index(column)
        for item, texts in source.shuffled_texts(rng, source.text_columns):
            pieces = [
                piece
                for piece in sentences(texts[place])
                if MIN_WORDS <= len(source.analyzer.tokens(piece)) <= MAX_WORDS
            ]
            if not pieces:
                continue
            sentence = pieces[rng.integers(len(pieces))]
            answers = alike.to(item, "\n".join(texts))
            if answers:
                typed = as_typed(sentence)
                yield MadeQuery(self.name, typed, answers[0], answers, made_of=item)

    def carries(self, source: QueriedCatalog) -> frozenset[str]:
        compares_heads = source.is_long and source.table is not None
        return frozenset([HEADS]) if compares_heads else frozenset()
