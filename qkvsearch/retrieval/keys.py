"""What queries are compared with: sparse keys for words (BM25), dense keys for embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.labelled import LabelledVectors
from qkvsearch.retrieval.fusion import Head, Part
from qkvsearch.texts.analysis import Token
from qkvsearch.texts.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

K1 = 1.2
B = 0.75


@dataclass(frozen=True)
class LexicalKeys:
    """BM25 weights of every (term, item) pair, by term, so that a query reads only its own terms.

    indptr: int64 (n_terms + 1,). indices: int32, items in ascending order within a term. weights:
    float32. A score is sparse query · sparse key, and the query counts each of its words.
    """

    vocabulary: Vocabulary
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    n_items: int

    @classmethod
    def from_counts(cls, vocabulary: Vocabulary, counts: csr_matrix) -> LexicalKeys:
        """Term counts (n_items, n_terms) to BM25 weights (Robertson and Zaragoza 2009, 3.3):

        idf · tf (k₁ + 1) / (tf + k₁ (1 − b + b · length / mean length)), with k₁ = 1.2, b = .75 and
        idf = ln(1 + (N − n + ½) / (n + ½)), which is positive even for a word that every item has.
        """
        by_term = counts.tocsc()
        by_term.sort_indices()
        n_items = counts.shape[0]
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        with_term = np.diff(by_term.indptr)
        idf = _idf(with_term, n_items)
        norms = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9))
        tf = by_term.data
        weights = np.repeat(idf, with_term) * tf * (K1 + 1) / (tf + norms[by_term.indices])
        return cls(
            vocabulary,
            by_term.indptr.astype(np.int64),
            by_term.indices.astype(np.int32),
            weights.astype(np.float32),
            n_items,
        )

    @classmethod
    def from_names(
        cls, vocabulary: Vocabulary, indptr: np.ndarray, indices: np.ndarray, n_items: int
    ) -> LexicalKeys:
        """What items are called by, such as codes, weighs as much as a word can: idf · (k₁ + 1),
        the limit for a word that a text repeats without end.
        """
        with_name = np.diff(indptr)
        weights = np.repeat(_idf(with_name, n_items), with_name) * (K1 + 1)
        return cls(vocabulary, indptr, indices, weights.astype(np.float32), n_items)

    def head(self, tokens: Sequence[Token], name: str = "lexical") -> Head | None:
        """Scores of all items, or None where no item has any of the words."""
        rows = self.vocabulary.rows(token.term for token in tokens).tolist()
        known = [(token.text, row) for token, row in zip(tokens, rows, strict=True) if row >= 0]
        if not known:
            return None
        scores = np.zeros(self.n_items, dtype=np.float32)
        for _, row in known:
            span = slice(self.indptr[row], self.indptr[row + 1])
            scores[self.indices[span]] += self.weights[span]

        def parts(position: int) -> list[Part]:
            found = ((word, self._weight(row, position)) for word, row in known)
            return [Part(name, word, word, value) for word, value in found if value]

        return Head(name, scores, parts, answers=scores > 0)

    def _weight(self, row: int, position: int) -> float:
        items = self.indices[self.indptr[row] : self.indptr[row + 1]]
        place = int(np.searchsorted(items, position))
        found = place < len(items) and items[place] == position
        return float(self.weights[self.indptr[row] + place]) if found else 0.0


def _idf(with_term: np.ndarray, n_items: int) -> np.ndarray:
    """Of terms that so many of the items have."""
    return np.asarray(np.log1p((n_items - with_term + 0.5) / (with_term + 0.5)))


@dataclass(frozen=True)
class DenseKeys:
    """One vector an item, float32 (n_items, d): a score is query · key."""

    vectors: np.ndarray

    def head(
        self,
        name: str,
        query: LabelledVectors,
        pieces_of: Callable[[int], LabelledVectors] | None = None,
    ) -> Head | None:
        """Scores of all items, or None for an empty query.

        Query and key are sums of labelled vectors, so their product is a sum over pairs of labels,
        a repeated one as one.
        `pieces_of(position)` gives those of a key; without it a key is one piece without a label.
        """
        if not len(query):
            return None
        scores = self.vectors @ query.total.astype(self.vectors.dtype)

        def parts(position: int) -> list[Part]:
            key = pieces_of(position).merged() if pieces_of else self._whole(position)
            asked = query.merged()
            products = asked.vectors @ key.vectors.T
            return [
                Part(name, query_label, key_label, float(products[i, j]))
                for i, query_label in enumerate(asked.labels)
                for j, key_label in enumerate(key.labels)
            ]

        return Head(name, scores, parts)

    def _whole(self, position: int) -> LabelledVectors:
        return LabelledVectors([None], self.vectors[position : position + 1])
