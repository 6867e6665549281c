"""What queries are compared with: sparse keys for words (BM25), dense keys for embeddings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qkvsearch.labelled import LabelledVectors
from qkvsearch.retrieval.fusion import Head, Part
from qkvsearch.retrieval.term_counts import TermCounts
from qkvsearch.texts.analysis import Token
from qkvsearch.texts.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

K1 = 1.2
B = 0.75


class Way(NamedTuple):
    """One term that a word is looked up by. shown: the item's word, as reasons name it. weight: how
    much it counts beside the word as it was typed.
    """

    term: str
    shown: str
    weight: float = 1.0


@dataclass(frozen=True)
class AskedWord:
    """A word of a query and all the ways to find it. boost: how many times it counts."""

    text: str
    ways: Sequence[Way]
    boost: float = 1.0

    @classmethod
    def of(cls, token: Token) -> AskedWord:
        """A word as it was typed."""
        return cls(token.text, [Way(token.term, token.text)])


class _Postings(NamedTuple):
    """What a word adds to the items that have it: ascending row numbers (n,), weights (n,), and
    which of `shown` each item has, (n,).
    """

    word: str
    items: np.ndarray
    weights: np.ndarray
    shown: Sequence[str]
    way: np.ndarray | None = None

    def at(self, position: int) -> tuple[str, float]:
        """The item's word and its weight; 0 where it has none."""
        place = int(np.searchsorted(self.items, position))
        if place == len(self.items) or self.items[place] != position:
            return self.word, 0.0
        way = 0 if self.way is None else int(self.way[place])
        return self.shown[way], float(self.weights[place])


class TermKeys(ABC):
    """BM25 weights of (term, item) pairs, asked by term: a score is sparse query · sparse key, and
    the query counts each of its words.
    """

    n_items: int

    @abstractmethod
    def postings(self, term: str) -> tuple[np.ndarray, np.ndarray]:
        """The items that have a term, ascending row numbers (n,), and its weights, float32 (n,)."""

    @abstractmethod
    def n_with(self, term: str) -> int:
        """How many items have a term."""

    def has(self, term: str) -> bool:
        """Whether any item has a term."""
        return self.n_with(term) > 0

    def head(self, words: Sequence[Token | AskedWord], name: str = "lexical") -> Head | None:
        """Scores of all items, or None where no item has any of the words. An item that has a word
        in several ways counts the best of them.
        """
        asked = (word if isinstance(word, AskedWord) else AskedWord.of(word) for word in words)
        known = [found for word in asked if len((found := self._found(word)).items)]
        if not known:
            return None
        scores = np.zeros(self.n_items, dtype=np.float32)
        for found in known:
            scores[found.items] += found.weights

        def parts(position: int) -> list[Part]:
            there = ((found.word, *found.at(position)) for found in known)
            return [Part(name, word, shown, value) for word, shown, value in there if value]

        return Head(name, scores, parts, answers=scores > 0)

    def _found(self, word: AskedWord) -> _Postings:
        shown = [way.shown for way in word.ways]
        if len(word.ways) == 1:
            (way,) = word.ways
            items, weights = self.postings(way.term)
            factor = np.float32(way.weight * word.boost)
            return _Postings(word.text, items, weights if factor == 1 else factor * weights, shown)
        return self._best_of(word, shown)

    def _best_of(self, word: AskedWord, shown: list[str]) -> _Postings:
        """All ways are as rare as the items that have any: a rare one of them says no more."""
        found = [self.postings(way.term) for way in word.ways]
        every = np.concatenate([items for items, _ in found])
        rarity = inverse_frequency(len(np.unique(every)), self.n_items)
        scaled = [
            weights * (rarity / inverse_frequency(len(items), self.n_items))
            * way.weight * word.boost
            for way, (items, weights) in zip(word.ways, found, strict=True)
        ]  # fmt: skip
        number = np.repeat(np.arange(len(found)), [len(items) for items, _ in found])
        values = np.concatenate(scaled).astype(np.float32)
        order = np.lexsort((number, -values, every))
        items, first = np.unique(every[order], return_index=True)
        kept = order[first]
        return _Postings(word.text, items, values[kept], shown, number[kept])


@dataclass(frozen=True)
class LexicalKeys(TermKeys):
    """The weights of all pairs, by term, so that a query reads only its own terms.

    indptr: int64 (n_terms + 1,). indices: int32, items in ascending order within a term. weights:
    float32.
    """

    vocabulary: Vocabulary
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    n_items: int

    @classmethod
    def from_counts(cls, vocabulary: Vocabulary, counts: csr_matrix) -> LexicalKeys:
        """Term counts (n_items, n_terms) to BM25 weights."""
        found = TermCounts.from_matrix(vocabulary, counts)
        return cls.weighed(found, length_norms(found.lengths(counts.shape[0])))

    @classmethod
    def weighed(cls, counts: TermCounts, norms: np.ndarray) -> LexicalKeys:
        """norms: float32 (n_items,), as in `bm25`."""
        with_term = np.diff(counts.indptr)
        idf = np.repeat(inverse_frequency(with_term, len(norms)), with_term)
        weights = bm25(idf, counts.counts, norms[counts.items])
        return cls(counts.vocabulary, counts.indptr, counts.items, weights, len(norms))

    def postings(self, term: str) -> tuple[np.ndarray, np.ndarray]:
        row = self.vocabulary.row(term)
        span = slice(0) if row < 0 else slice(self.indptr[row], self.indptr[row + 1])
        return self.indices[span], self.weights[span]

    def n_with(self, term: str) -> int:
        return len(self.postings(term)[0])


@dataclass(frozen=True)
class CountedKeys(TermKeys):
    """Weights that are made when a query asks for them: what `LexicalKeys` has of the same items,
    bit for bit, where items came to those of a base or left, and every weight changed.

    base: counts of its rows. place: int (n_base,), the row number that each has now, −1 for one
    that left. added: counts of the others, by the row numbers of now. norms: float32 (n_items,).
    """

    base: TermCounts
    place: np.ndarray
    added: TermCounts
    norms: np.ndarray
    n_items: int

    def postings(self, term: str) -> tuple[np.ndarray, np.ndarray]:
        rows, counts = self.base.of(term)
        items = self.place[rows]
        if len(items) and items.min() < 0:
            items, counts = items[items >= 0], counts[items >= 0]
        more, more_counts = self.added.of(term)
        items, counts = np.concatenate([items, more]), np.concatenate([counts, more_counts])
        if (items[1:] < items[:-1]).any():
            order = np.argsort(items, kind="stable")
            items, counts = items[order], counts[order]
        idf = inverse_frequency(np.array([len(items)]), self.n_items)
        return items, bm25(idf, counts, self.norms[items])

    def n_with(self, term: str) -> int:
        rows, _ = self.base.of(term)
        return int(np.count_nonzero(self.place[rows] >= 0)) + len(self.added.of(term)[0])


def bm25(idf: np.ndarray, counts: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Weights (n,), float32: idf · tf (k₁ + 1) / (tf + norm), with k₁ = 1.2 (Robertson and Zaragoza
    2009, 3.3).

    What items are called by, such as codes, has norms of 0, and weighs as much as a word can:
    idf · (k₁ + 1), the limit for one that a text repeats without end.
    """
    tf = counts.astype(np.float32)
    return np.asarray(idf * tf * (K1 + 1) / (tf + norms)).astype(np.float32)


def length_norms(lengths: np.ndarray) -> np.ndarray:
    """k₁ (1 − b + b · length / mean length), float32 (n_items,), with b = .75. Their sum is one of
    whole numbers, so that it is the same in whatever order the items are.
    """
    mean = np.float32(lengths.sum(dtype=np.int64)) / np.float32(max(len(lengths), 1))
    shares = B * lengths.astype(np.float32) / np.maximum(mean, np.float32(1e-9))
    return np.asarray(K1 * (1 - B + shares))


def inverse_frequency(with_term: np.ndarray | int, n_items: int) -> np.ndarray:
    """idf = ln(1 + (N − n + ½) / (n + ½)), float64, of terms that n of the N items have; it is
    positive even for a word that every item has.
    """
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
