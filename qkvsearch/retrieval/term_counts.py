"""How often items have terms, by term: of all items, or in pieces that are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix


@dataclass(frozen=True)
class TermCounts:
    """indptr: int64 (n_terms + 1,), where each term's entries begin. items: int32 (n,), row numbers
    in ascending order within a term. counts (n,), whole numbers.

    >>> counts = TermCounts.of_texts([["sea", "deep", "sea"], ["sea"]])
    >>> [values.tolist() for values in counts.of("sea")], counts.lengths(2).tolist()
    ([[0, 1], [2, 1]], [3, 1])
    """

    vocabulary: Vocabulary
    indptr: np.ndarray
    items: np.ndarray
    counts: np.ndarray

    @classmethod
    def from_matrix(cls, vocabulary: Vocabulary, counts: csr_matrix | csc_matrix) -> TermCounts:
        """counts: (n_items, n_terms)."""
        by_term = counts.tocsc()
        by_term.sort_indices()
        indptr, items = by_term.indptr.astype(np.int64), by_term.indices.astype(np.int32)
        return cls(vocabulary, indptr, items, by_term.data)

    @classmethod
    def of_texts(cls, texts: Sequence[Sequence[str]]) -> TermCounts:
        """Of items that are given as their terms."""
        vocabulary = Vocabulary.of(set().union(*texts))
        rows = vocabulary.rows(term for terms in texts for term in terms)
        items = np.repeat(np.arange(len(texts)), [len(terms) for terms in texts])
        pairs, counts = np.unique(rows * max(len(texts), 1) + items, return_counts=True)
        return cls._sorted(vocabulary.terms, *np.divmod(pairs, max(len(texts), 1)), counts)

    @classmethod
    def joined(cls, pieces: Sequence[TermCounts]) -> TermCounts:
        """Of pieces that count in other items each. Items below 0 are left out, and then terms that
        none has.
        """
        if not pieces:
            return cls.of_texts([])
        spellings = np.concatenate([piece.vocabulary.terms for piece in pieces])
        terms, numbers = np.unique(spellings, return_inverse=True)
        own = np.split(numbers, np.cumsum([len(piece.vocabulary) for piece in pieces])[:-1])
        rows = np.concatenate(
            [np.repeat(of, np.diff(p.indptr)) for of, p in zip(own, pieces, strict=True)]
        )
        items = np.concatenate([piece.items for piece in pieces]).astype(np.int64)
        counts = np.concatenate([piece.counts for piece in pieces])
        kept = np.flatnonzero(items >= 0)
        # One number a pair, nearly sorted already.
        pairs = rows[kept] * (items.max(initial=0) + 1) + items[kept]
        order = kept[np.argsort(pairs, kind="stable")]
        return cls._sorted(terms, rows[order], items[order], counts[order])

    @classmethod
    def _sorted(
        cls, terms: np.ndarray, rows: np.ndarray, items: np.ndarray, counts: np.ndarray
    ) -> TermCounts:
        """Of entries in order; terms that there are, in a width that the longest needs."""
        having = np.bincount(rows, minlength=len(terms))
        terms, having = terms[having > 0], having[having > 0]
        if not len(terms):
            vocabulary, having = Vocabulary.of([]), np.zeros(1, np.int64)
        else:
            vocabulary = Vocabulary(terms.astype(f"S{np.char.str_len(terms).max()}"))
        indptr = np.concatenate([[0], np.cumsum(having)])
        return cls(vocabulary, indptr, items.astype(np.int32), counts)

    def of(self, term: str) -> tuple[np.ndarray, np.ndarray]:
        """The items that have a term, and how often: (n,) and (n,)."""
        row = self.vocabulary.cached_row(term)
        span = slice(0) if row < 0 else slice(self.indptr[row], self.indptr[row + 1])
        return self.items[span], self.counts[span]

    def placed(self, place: np.ndarray) -> TermCounts:
        """With the row number `place[i]` for item i; −1 for one that left."""
        return replace(self, items=place[self.items])

    def lengths(self, n_items: int) -> np.ndarray:
        """How many words each item has, int32 (n_items,)."""
        return np.bincount(self.items, self.counts, n_items).astype(np.int32)
