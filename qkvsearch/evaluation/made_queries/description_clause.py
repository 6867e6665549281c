"""A part of a sentence of a description in Chinese or Japanese, word for word.

These are not cut into words here, so that none of them can be replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from qkvsearch.evaluation.made_queries.query_kind import MadeQuery, QueryKind
from qkvsearch.evaluation.made_queries.source import MAX_ANSWERS, QueriedCatalog, sentences
from qkvsearch.evaluation.made_queries.title_words import as_typed
from qkvsearch.text.analysis import HAS_CJK

# The passages between two signs, and how many characters they have.
CLAUSE_END = re.compile("[,;:，、；：。！？…“”《》「」『』（）()\\s]+")
MIN_CHARACTERS, MAX_CHARACTERS = 6, 20


class DescriptionClause(QueryKind):
    name = "description_clause"
    description = "a part of a sentence of a description, word for word"
    claim = "passages of descriptions find their item"

    def make(self, source: QueriedCatalog, rng: np.random.Generator) -> Iterator[MadeQuery]:
        column = source.description
        if column is None:
            return
        for item, (text,) in source.shuffled_texts(rng, [column]):
            clauses = [clause for piece in sentences(text) for clause in _clauses(piece)]
            if not clauses:
                continue
            clause = as_typed(clauses[rng.integers(len(clauses))])
            # A passage that many items have asks for none of them.
            answers = source.with_words(clause)
            if item in answers and len(answers) <= MAX_ANSWERS:
                yield MadeQuery(self.name, clause, item, answers)

    def carries(self, source: QueriedCatalog) -> frozenset[str]:
        # Whatever matches characters finds them.
        return frozenset()


def _clauses(sentence: str) -> list[str]:
    return [
        clause
        for clause in CLAUSE_END.split(sentence)
        if HAS_CJK(clause) and MIN_CHARACTERS <= len(clause) <= MAX_CHARACTERS
    ]
