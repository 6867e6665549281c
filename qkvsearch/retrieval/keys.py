"""What queries are compared with: sparse keys for words (BM25), dense keys for embeddings."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import inf, log1p
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_by_word
from qkvsearch.retrieval.fusion import Scores
from qkvsearch.retrieval.score_components import Components, PartsOf, ScoreComponent, Source
from qkvsearch.retrieval.term_counts import TermCounts
from qkvsearch.text.analysis import Analyzer, Token, resolve_code
from qkvsearch.text.labelled import LabelledVectors
from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from qkvsearch.retrieval.quantized import QuantizedKeys

K1 = 1.2
B = 0.75
# Terms of which it is kept how many items have them, and entries that are kept of words: 256 MB if
# each word were in every item.
KEPT_TERMS, MOST_KEPT = 1 << 14, 1 << 25
# The words of a query whose items are in memory together.
WORDS_AT_ONCE = 16
# The pairs of words of a query and of a text that one head is explained by. The label of a text
# that is not taken apart has no word in it.
MAX_PAIRS, WHOLE_TEXT = 100_000, "…"


class Expansion(NamedTuple):
    """One term that a word is looked up by. shown: the item's word, as reasons name it. weight: how
    much it counts beside the word as it was typed.
    """

    term: str
    shown: str
    weight: float = 1.0


class QueryTerm(NamedTuple):
    """A word of a query and all the ways to find it. boost: how many times it counts."""

    text: str
    ways: tuple[Expansion, ...]
    boost: float = 1.0

    @classmethod
    def of(cls, token: Token) -> QueryTerm:
        """A word as it was typed."""
        return cls(token.text, (Expansion(token.term, token.text),))

    def also(self, ways: Iterable[Expansion]) -> QueryTerm:
        """With more ways behind the first one, those of other terms."""
        first, *others = self.ways
        more = (*ways, *others)
        if not more:
            return self
        every = {first.term: first}
        for way in more:
            every.setdefault(way.term, way)
        return self._replace(ways=tuple(every.values()))


class PostingList(NamedTuple):
    """The items that a way finds, ascending row numbers (n,), and what it adds to each: `factor`
    times these weights, (n,).
    """

    shown: str
    items: np.ndarray
    weights: np.ndarray
    factor: float

    @property
    def scaled(self) -> np.ndarray:
        """What it adds, float32 (n,)."""
        return self.weights if self.factor == 1 else np.float32(self.factor) * self.weights

    def at(self, position: int) -> float:
        """What it adds to an item; 0 where it does not find it."""
        place = _place(self.items, position)
        return 0.0 if place is None else self.factor * float(self.weights[place])


class TermMatches(NamedTuple):
    """What a word finds by all its ways: the items that have any of them, ascending row numbers
    (n,), and what the best of them adds to each, float32 (n,).
    """

    ways: Sequence[PostingList]
    items: np.ndarray
    weights: np.ndarray

    def best_at(self, position: int) -> tuple[str, float]:
        """The item's word, and what it adds; 0 where there is none."""
        if _place(self.items, position) is None:
            return "", 0.0
        values = [way.at(position) for way in self.ways]
        best = max(range(len(values)), key=values.__getitem__)
        return self.ways[best].shown, values[best]


def _place(items: np.ndarray, position: int) -> int | None:
    """Where an item is among ascending row numbers; None where it is not."""
    place = int(items.searchsorted(position))
    return place if place < len(items) and items[place] == position else None


NOTHING_FOUND = TermMatches((), np.zeros(0, np.int32), np.zeros(0, np.float32))


class TermKeys(ABC):
    """BM25 weights of (term, item) pairs, asked by term: a score is sparse query · sparse key, and
    the query counts each of its words. What was found of a word is kept: queries share their words.
    """

    n_items: int

    @abstractmethod
    def postings(self, term: str) -> tuple[np.ndarray, np.ndarray]:
        """The items that have a term, ascending row numbers (n,), and its weights, float32 (n,)."""

    def n_with(self, term: str) -> int:
        """How many items have a term."""
        return self._known_terms(term)[0]

    def has(self, term: str) -> bool:
        """Whether any item has a term."""
        return self.n_with(term) > 0

    def largest(self, term: str) -> float:
        """The largest weight of a term, 0 where no item has it."""
        return self._known_terms(term)[1]

    def rarity(self, word: str, analyzer: Analyzer) -> float:
        """BM25's idf of a word, by the rarest of its terms; 0 for what is no word, as a comma."""
        return self._known_rarities(word, analyzer)

    # What is kept knows the keys by a weak reference: in a circle, files would wait for the garbage
    # collector.

    @cached_property
    def _known_rarities(self) -> Callable[[str, Analyzer], float]:
        keys = weakref.proxy(self)

        def rarity(word: str, analyzer: Analyzer) -> float:
            tokens = resolve_code(analyzer.tokens(word), keys.has)
            rarest = min((keys.n_with(token.term) for token in tokens), default=None)
            return 0.0 if rarest is None else _rarity(rarest, keys.n_items)

        return cached_by_word(rarity, KEPT_TERMS)

    @cached_property
    def _known_terms(self) -> Callable[[str], tuple[int, float]]:
        keys = weakref.proxy(self)

        def known(term: str) -> tuple[int, float]:
            items, weights = keys.postings(term)
            return (len(items), float(weights.max())) if len(items) else (0, 0.0)

        return cached_by_word(known, KEPT_TERMS)

    @cached_property
    def _known_words(self) -> Callable[[QueryTerm], TermMatches]:
        keys, most = weakref.proxy(self), min(KEPT_TERMS, MOST_KEPT // max(self.n_items, 1))

        def found(word: QueryTerm) -> TermMatches:
            known: TermMatches = keys.found(word)
            return known

        return cached_by_word(found, most)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if "_known" not in name}

    def head(self, words: Sequence[Token | QueryTerm], name: str = "lexical") -> Scores | None:
        """Scores of all items, or None where no item has any of the words. An item that has a word
        in several ways counts the best of them; a word that is asked n times counts n times.
        """
        terms = (word if isinstance(word, QueryTerm) else QueryTerm.of(word) for word in words)
        counted = [(term.text, n, self._known_words(term)) for term, n in Counter(terms).items()]
        found = [(text, n, matches) for text, n, matches in counted if matches.ways]
        if not found:
            return None
        total = np.zeros(self.n_items)
        for start in range(0, len(found), WORDS_AT_ONCE):
            some = found[start : start + WORDS_AT_ONCE]
            items = np.concatenate([matches.items for _, _, matches in some])
            weights = np.concatenate([np.float32(n) * matches.weights for _, n, matches in some])
            total += np.bincount(items, weights, self.n_items)
        scores = total.astype(np.float32)

        def parts(position: int) -> Components:
            best = ((text, n, *matches.best_at(position)) for text, n, matches in found)
            return Components.of(
                ScoreComponent(name, text, shown, n * value)
                for text, n, shown, value in best
                if value
            )

        return Scores(name, scores, parts, answers=scores > 0)

    def query_weights(self, words: Sequence[QueryTerm]) -> dict[str, float]:
        """A query as a sparse vector, by terms, for keys without idf: about what `head` scores by,
        for each way of a word adds to what the others do there.
        """
        found: dict[str, float] = {}
        for word in words:
            n_with = min(sum(self.n_with(way.term) for way in word.ways), self.n_items)
            rarity = word.boost * _rarity(n_with, self.n_items)
            for way in word.ways:
                if self.has(way.term):
                    found[way.term] = found.get(way.term, 0.0) + way.weight * rarity
        return found

    def found(self, word: QueryTerm) -> TermMatches:
        """What a word finds. All its ways are as rare as the items that have any of them: a rare
        one says no more.
        """
        postings = [(way, *self.postings(way.term)) for way in word.ways]
        there = [each for each in postings if len(each[1])]
        if not there:
            return NOTHING_FOUND
        if len(there) == 1:
            way, items, weights = there[0]
            only = PostingList(way.shown, items, weights, way.weight * word.boost)
            return TermMatches([only], items, only.scaled)
        best = np.zeros(self.n_items, dtype=np.float32)
        shares = [way.weight / _rarity(len(rows), self.n_items) for way, rows, _ in there]
        for share, (_, rows, weights) in zip(shares, there, strict=True):
            best[rows] = np.maximum(best[rows], np.float32(share) * weights)
        # Of bool what is not 0 is found several times as fast.
        items = (best > 0).nonzero()[0].astype(np.int32)
        rarity = word.boost * _rarity(len(items), self.n_items)
        ways = [
            PostingList(way.shown, rows, weights, share * rarity)
            for share, (way, rows, weights) in zip(shares, there, strict=True)
        ]
        return TermMatches(ways, items, np.float32(rarity) * best[items])


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
        row = self.vocabulary.cached_row(term)
        span = slice(0) if row < 0 else slice(self.indptr[row], self.indptr[row + 1])
        return self.indices[span], self.weights[span]

    def n_with(self, term: str) -> int:
        row = self.vocabulary.cached_row(term)
        return 0 if row < 0 else int(self.indptr[row + 1] - self.indptr[row])


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


def _rarity(with_term: int, n_items: int) -> float:
    """`inverse_frequency` of one number."""
    return log1p((n_items - with_term + 0.5) / (with_term + 0.5))


@dataclass(frozen=True)
class DenseKeys:
    """One vector an item, float32 (n_items, d): a score is query · key. codes: of many items the
    same ones in a quarter of the memory, by which scores are approximate.
    """

    vectors: np.ndarray
    codes: QuantizedKeys | None = None

    def head(
        self,
        name: str,
        query: LabelledVectors,
        pieces_of: Callable[[int], LabelledVectors] | None = None,
    ) -> Scores | None:
        """Scores of all items, or None for an empty query.

        Query and key are sums of labelled vectors, so their product is a sum over pairs of labels,
        a repeated one as one.
        `pieces_of(position)` gives those of a key; without it a key is one piece without a label.
        """
        if not len(query):
            return None
        vector = query.total.astype(self.vectors.dtype)
        parts = product_parts(name, query, pieces_of or self._whole)
        if self.codes is None:
            return Scores(name, self.vectors @ vector, parts)

        def exact(positions: np.ndarray) -> np.ndarray:
            is_all = len(positions) == len(self.vectors)
            rows = self.vectors if is_all else self.vectors[positions]
            # Not by BLAS, where the last bits of a product depend on which others there are.
            return np.einsum("ij,j->i", rows, vector)

        return Scores(
            name,
            self.codes.products(vector),
            parts,
            exact=exact,
            error=self.codes.most_error(vector),
            exact_from=inf,
        )

    def _whole(self, position: int) -> LabelledVectors:
        return LabelledVectors([None], self.vectors[position : position + 1])


def product_parts(
    name: str, query: LabelledVectors, pieces_of: Callable[[int], LabelledVectors]
) -> PartsOf:
    """What makes the parts of query · key: a product for each pair of their labels, a repeated one
    as one. Of more than `MAX_PAIRS` pairs the key is one piece, `WHOLE_TEXT`.

    pieces_of(position): a key as a sum of labelled vectors.
    """

    @cache  # only an explanation needs the query's pieces, and each hit needs the same
    def pieces() -> tuple[list[Source], np.ndarray]:
        merged = query.merged()
        return [Source(name, label) for label in merged.labels], merged.vectors

    def parts(position: int) -> Components:
        key, (sources, vectors) = pieces_of(position).merged(), pieces()
        if len(sources) * len(key) > MAX_PAIRS:
            key = LabelledVectors([WHOLE_TEXT], key.total[None])
        return Components.pairs(sources, key.labels, vectors @ key.vectors.T)

    return parts
