"""Items that are alike, by two witnesses: the words of their whole texts, and a table of meanings.

A query made of one item is then answered by those that are alike, as people who judge by topic do.
Each witness flatters the head that looks at the same, words or the static table; that both agree
favours neither. Without the table (`QueriedCatalog.table`), words alone tell what is alike. Such
queries do not compare heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.scores.topk import top_k

# An item is alike if it is among so many by each witness; by the only one, where there is no table,
# among fewer.
N_ALIKE, N_BY_WORDS_ALONE = 5, 3
# So many of the nearest by words are compared by meaning.
N_COMPARED = 30
# In a smaller catalog the nearest item need not be alike.
MIN_ITEMS = 100


@dataclass(frozen=True)
class Alike:
    """Which items are like another one."""

    source: QueriedCatalog

    def to(self, item: int, text: str, n: int = N_ALIKE) -> tuple[int, ...]:
        """Return the items that are like an item with this text, in order; the item is not one.

        n: among how many an item is by each witness.
        """
        near = self._near_by_words(item, text)
        if self.source.table is None:
            return tuple(sorted(near[:N_BY_WORDS_ALONE].tolist()))
        if not len(near):
            return ()
        vectors = self._vectors([item, *near.tolist()])
        cosines = vectors[1:] @ vectors[0]
        by_meaning = near[np.argsort(-cosines, kind="stable")[:n]]
        return tuple(sorted(np.intersect1d(near[:n], by_meaning).tolist()))

    def _near_by_words(self, item: int, text: str) -> np.ndarray:
        """Return the items with the most of a text's words by BM25, the nearest first."""
        tokens = {token.term: token for token in self.source.analyzer.query_tokens(text)}
        scores = self.source.build.models.lexical_keys.head(list(tokens.values()))
        if scores is None:
            return np.zeros(0, np.int64)
        by_words = scores.scores.astype(np.float64)
        by_words[item] = -np.inf
        return np.array([row for row in top_k(by_words, N_COMPARED) if by_words[row] > 0], np.int64)

    def _vectors(self, items: list[int]) -> np.ndarray:
        """Return the vectors of items by the table, (n, d). Each item is encoded once."""
        known = self.source.vectors_by_table
        new = [item for item in items if item not in known]
        if new:
            table = self.source.table
            assert table is not None
            texts = ["\n".join(row) for row in self.source.texts(new, self.source.text_columns)]
            known.update(zip(new, np.asarray(table.encode_many(texts)), strict=True))
        return np.stack([known[item] for item in items])
