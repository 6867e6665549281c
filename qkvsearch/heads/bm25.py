"""Sparse keys for words: BM25 weights of (term, item) pairs, and how they score a query."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log1p
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_by_word, cached_property
from qkvsearch._utils.scratch import pieces_of
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.scores.fusion import Scores
from qkvsearch.text.analysis import Analyzer, Token, resolve_code
from qkvsearch.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix

# The parameters of BM25: how soon further occurrences of a word stop counting, and how much longer
# texts count less.
K1 = 1.2
B = 0.75
# The idf of a word that is common in its language is limited to so much of the idf of a word that
# one item has, times the word's `rarity`; see `TermKeys.language_weight`. Chosen on TED's dev
# queries.
KNOWN_COMMON = 0.7
# The words whose matches are cached.
CACHED_TERMS = 1 << 14
# The limit of their cached entries, one for each item that matches: 256 MB.
MAX_CACHED_ENTRIES = 1 << 25
# The words of a query whose entries are in memory at a time.
WORDS_PER_BATCH = 16


class Expansion(NamedTuple):
    """A term that a word of a query is looked up by."""

    term: str
    # Its name in reasons.
    word: str
    # How much it counts beside the word as it was typed.
    weight: float = 1.0


class QueryTerm(NamedTuple):
    """A word of a query with all terms that it is looked up by."""

    # The word as typed, or another name of it in reasons.
    text: str
    # The first one is the word as typed.
    expansions: tuple[Expansion, ...]
    # How many times it counts.
    boost: float = 1.0

    @classmethod
    def of(cls, token: Token) -> QueryTerm:
        """Return a word as it was typed."""
        return cls(token.text, (Expansion(token.term, token.text),))

    def also(self, expansions: Iterable[Expansion]) -> QueryTerm:
        """Add expansions behind the first one, except those of terms that it has."""
        first, *others = self.expansions
        added = (*expansions, *others)
        if not added:
            return self
        by_term = {first.term: first}
        for expansion in added:
            by_term.setdefault(expansion.term, expansion)
        return self._replace(expansions=tuple(by_term.values()))


class PostingList(NamedTuple):
    """The items that match one expansion, and what it adds to their scores."""

    # The expansion's name in reasons.
    word: str
    # The items, ascending rows (n,).
    items: np.ndarray
    # What it adds to the score of each item, (n,), times `factor`.
    weights: np.ndarray
    factor: float

    @property
    def scaled(self) -> np.ndarray:
        """What it adds to the scores, float32 (n,)."""
        return self.weights if self.factor == 1 else np.float32(self.factor) * self.weights

    def at(self, position: int) -> float:
        """Return what it adds to the score of an item, 0 for one that does not match."""
        slot = _slot(self.items, position)
        return 0.0 if slot is None else self.factor * float(self.weights[slot])


class TermMatches(NamedTuple):
    """The items that match a word of a query by any of its expansions."""

    # The items that match each expansion.
    postings: Sequence[PostingList]
    # All these items, ascending rows (n,).
    items: np.ndarray
    # What the best of its expansions adds to the score of each item, float32 (n,).
    weights: np.ndarray

    def best_at(self, position: int) -> tuple[str, float]:
        """Return the word of an item that matches best, and what it adds; 0 where none matches."""
        if _slot(self.items, position) is None:
            return "", 0.0
        values = [posting.at(position) for posting in self.postings]
        best = max(range(len(values)), key=values.__getitem__)
        return self.postings[best].word, values[best]


def _slot(items: np.ndarray, position: int) -> int | None:
    """Return the index of an item in ascending rows; None where it is not among them."""
    slot = int(items.searchsorted(position))
    return slot if slot < len(items) and items[slot] == position else None


class _MatchedWord(NamedTuple):
    """A word of a query that items match."""

    text: str
    # How often the query has it.
    n_times: int
    matches: TermMatches

    @property
    def weights(self) -> np.ndarray:
        """What it adds to the score of each of its items, (n,)."""
        if self.n_times == 1:
            return self.matches.weights
        return np.float32(self.n_times) * self.matches.weights


NO_MATCHES = TermMatches((), np.zeros(0, np.int32), np.zeros(0, np.float32))


class TermKeys(ABC):
    """BM25 weights of (term, item) pairs, by term. A score is sparse query · sparse key, and the
    query counts each of its words. Queries share words, so what is looked up is cached.
    """

    n_items: int
    # The weights below 1 of the terms that are common in the language.
    rarity: Mapping[str, float]

    @abstractmethod
    def postings(self, term: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the items that have a term, ascending rows (n,), and its weights, float32 (n,)."""

    def n_with(self, term: str) -> int:
        """Return how many items have a term."""
        return self._cached_statistics(term)[0]

    def items_with(self, term: QueryTerm) -> np.ndarray:
        """Return the items that match a word by any of its expansions, ascending rows (n,)."""
        return self._cached_matches(term).items

    def idf_of(self, n_with: int) -> float:
        """Return the idf of a word that so many items have."""
        return _idf(n_with, self.n_items)

    def has(self, term: str) -> bool:
        """Return whether any item has a term."""
        return self.n_with(term) > 0

    def largest(self, term: str) -> float:
        """Return the most that a term adds to a score, 0 where no item has it."""
        return self._cached_statistics(term)[1]

    def language_weight(self, term: str) -> float:
        """Return the factor, from 0 to 1, by which a term counts less for being common in the
        language.

        It is the term's `rarity` where few items have the term. Where many have it, its idf is low
        already, and is only cut to `KNOWN_COMMON` · rarity · the idf of a term of one item.
        """
        return self._language_weight(term, self.n_with(term))

    def _language_weight(self, term: str, n_with: int) -> float:
        rarity = self.rarity.get(term, 1.0)
        if rarity >= 1 or not n_with:
            return rarity
        limit = KNOWN_COMMON * _idf(1, self.n_items) / _idf(n_with, self.n_items)
        return min(1.0, rarity * max(1.0, limit))

    def idf(self, word: str, language: str) -> float:
        """Return the idf of a word, by the rarest of its terms; 0 for a comma or the like."""
        tokens = resolve_code(Analyzer(language).tokens(word), self.has)
        rarest = min((self.n_with(token.term) for token in tokens), default=None)
        return 0.0 if rarest is None else _idf(rarest, self.n_items)

    # The caches refer to the keys weakly: in a reference cycle, files would wait for the garbage
    # collector.

    @cached_property
    def _cached_statistics(self) -> Callable[[str], tuple[int, float]]:
        keys = weakref.proxy(self)

        def statistics(term: str) -> tuple[int, float]:
            items, weights = keys.postings(term)
            if not len(items):
                return 0, 0.0
            return len(items), float(weights.max()) * keys._language_weight(term, len(items))

        return cached_by_word(statistics, CACHED_TERMS)

    @cached_property
    def _cached_matches(self) -> Callable[[QueryTerm], TermMatches]:
        keys = weakref.proxy(self)
        n_cached = min(CACHED_TERMS, MAX_CACHED_ENTRIES // max(self.n_items, 1))

        def matches(term: QueryTerm) -> TermMatches:
            result: TermMatches = keys.matches(term)
            return result

        return cached_by_word(matches, n_cached)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if "_cached" not in name}

    def head(self, words: Sequence[Token | QueryTerm], name: str = "lexical") -> Scores | None:
        """Return the scores of all items; None where no item has any of the words. An item that
        matches a word by several expansions counts the best one; a word that occurs n times counts
        n times.
        """
        terms = Counter(
            word if isinstance(word, QueryTerm) else QueryTerm.of(word) for word in words
        )
        found: list[_MatchedWord] = []
        for term, n_times in terms.items():
            matches = self._cached_matches(term)
            if matches.postings:
                found.append(_MatchedWord(term.text, n_times, matches))
        if not found:
            return None
        total = np.zeros(self.n_items)
        for start in range(0, len(found), WORDS_PER_BATCH):
            batch = found[start : start + WORDS_PER_BATCH]
            items = np.concatenate([word.matches.items for word in batch])
            weights = np.concatenate([word.weights for word in batch])
            total += np.bincount(items, weights, self.n_items)
        scores = total.astype(np.float32)

        def parts(position: int) -> Components:
            components = []
            for text, n_times, matches in found:
                word, value = matches.best_at(position)
                if value:
                    components.append(ScoreComponent(name, text, word, n_times * value))
            return Components.of(components)

        return Scores(name, scores, parts, covered=scores > 0)

    def matches(self, term: QueryTerm) -> TermMatches:
        """Return the matches of a word.

        All its expansions have one idf, that of the items with any of them: a rare expansion counts
        no more than a frequent one. They also have the rarity of the first one.
        """
        boost = term.boost * self.language_weight(term.expansions[0].term)
        found: list[PostingList] = []
        for expansion in term.expansions:
            items, weights = self.postings(expansion.term)
            if len(items):
                found.append(PostingList(expansion.word, items, weights, expansion.weight))
        if not found:
            return NO_MATCHES
        if len(found) == 1:
            word, items, weights, factor = found[0]
            only = PostingList(word, items, weights, factor * boost)
            return TermMatches([only], only.items, only.scaled)

        # The weights without the idf of each expansion, and then with the one of all.
        shared = [
            posting._replace(factor=posting.factor / _idf(len(posting.items), self.n_items))
            for posting in found
        ]
        best = np.zeros(self.n_items, dtype=np.float32)
        for posting in shared:
            share = np.float32(posting.factor) * posting.weights
            best[posting.items] = np.maximum(best[posting.items], share)
        # `nonzero` is several times faster on a boolean array.
        items = (best > 0).nonzero()[0].astype(np.int32)
        idf = boost * _idf(len(items), self.n_items)
        postings = [posting._replace(factor=posting.factor * idf) for posting in shared]
        return TermMatches(postings, items, np.float32(idf) * best[items])


class ListedKeys(TermKeys):
    """Keys with a list of all terms."""

    vocabulary: Vocabulary

    @property
    @abstractmethod
    def n_entries(self) -> int:
        """How many pairs of a term and an item there are."""


@dataclass(frozen=True)
class TermCounts:
    """How often items have terms, by term.

    indptr: int64 (n_terms + 1,), where each term's entries begin. items: int32 (n,), row numbers
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
        """Build from a matrix (n_items, n_terms)."""
        by_term = counts.tocsc()
        by_term.sort_indices()
        indptr, items = by_term.indptr.astype(np.int64), by_term.indices.astype(np.int32)
        return cls(vocabulary, indptr, items, by_term.data)

    @classmethod
    def of_texts(cls, texts: Sequence[Sequence[str]]) -> TermCounts:
        """Count the terms of items."""
        vocabulary = Vocabulary.of(set().union(*texts))
        rows = vocabulary.rows(term for terms in texts for term in terms)
        items = np.repeat(np.arange(len(texts)), [len(terms) for terms in texts])
        pairs, counts = np.unique(rows * max(len(texts), 1) + items, return_counts=True)
        return cls._sorted(vocabulary.terms, *np.divmod(pairs, max(len(texts), 1)), counts)

    @classmethod
    def joined(cls, pieces: Sequence[TermCounts]) -> TermCounts:
        """Join the counts of different items, without items below 0 and terms that no other has."""
        if not pieces:
            return cls.of_texts([])
        spellings = np.concatenate([piece.vocabulary.terms for piece in pieces])
        terms, numbers = np.unique(spellings, return_inverse=True)
        rows_of_pieces = np.split(
            numbers, np.cumsum([len(piece.vocabulary) for piece in pieces])[:-1]
        )
        # The row of each entry's term in the vocabulary of all pieces.
        rows = np.concatenate(
            [
                np.repeat(rows_of_terms, np.diff(piece.indptr))
                for rows_of_terms, piece in zip(rows_of_pieces, pieces, strict=True)
            ]
        )
        items = np.concatenate([piece.items for piece in pieces]).astype(np.int64)
        counts = np.concatenate([piece.counts for piece in pieces])
        valid = np.flatnonzero(items >= 0)
        # One number for each pair; they are nearly sorted already.
        pairs = rows[valid] * (items.max(initial=0) + 1) + items[valid]
        order = valid[np.argsort(pairs, kind="stable")]
        return cls._sorted(terms, rows[order], items[order], counts[order])

    @classmethod
    def _sorted(
        cls, terms: np.ndarray, rows: np.ndarray, items: np.ndarray, counts: np.ndarray
    ) -> TermCounts:
        """Build from entries in order, without terms that have none."""
        n_with = np.bincount(rows, minlength=len(terms))
        terms = terms[n_with > 0]
        n_with = n_with[n_with > 0]
        if not len(terms):
            # A vocabulary without terms has a row all the same.
            vocabulary = Vocabulary.of([])
            n_with = np.zeros(1, np.int64)
        else:
            vocabulary = Vocabulary(terms.astype(f"S{np.char.str_len(terms).max()}"))
        indptr = np.concatenate([[0], np.cumsum(n_with)])
        return cls(vocabulary, indptr, items.astype(np.int32), counts)

    def of(self, term: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the items that have a term, (n,), and how often, (n,)."""
        row = self.vocabulary.row(term)
        span = slice(0) if row < 0 else slice(self.indptr[row], self.indptr[row + 1])
        return self.items[span], self.counts[span]

    def renumbered(self, item_rows: np.ndarray) -> TermCounts:
        """Return the counts with row `item_rows[i]` for item i; −1 for a deleted one."""
        return replace(self, items=item_rows[self.items])

    def lengths(self, n_items: int) -> np.ndarray:
        """Return how many words each item has, int32 (n_items,)."""
        lengths = np.zeros(n_items)
        # `bincount` copies what it counts, to twice the size.
        for span in pieces_of(len(self.items)):
            lengths += np.bincount(self.items[span], self.counts[span], n_items)
        return lengths.astype(np.int32)


@dataclass(frozen=True)
class LexicalKeys(ListedKeys):
    """The weights of all pairs, by term, so that a query reads only its own terms.

    indptr: int64 (n_terms + 1,). indices: int32, items in ascending order within a term. weights:
    float32.
    """

    vocabulary: Vocabulary
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    n_items: int
    rarity: Mapping[str, float] = field(default_factory=dict)

    @property
    def n_entries(self) -> int:
        """How many pairs of a term and an item there are."""
        return len(self.indices)

    @classmethod
    def from_counts(
        cls, vocabulary: Vocabulary, counts: csr_matrix, rarity: Mapping[str, float] | None = None
    ) -> LexicalKeys:
        """Weigh term counts (n_items, n_terms)."""
        term_counts = TermCounts.from_matrix(vocabulary, counts)
        keys = cls.weighed(term_counts, length_norms(term_counts.lengths(counts.shape[0])))
        return replace(keys, rarity=rarity or {})

    @classmethod
    def weighed(cls, counts: TermCounts, norms: np.ndarray) -> LexicalKeys:
        """Weigh term counts. norms: float32 (n_items,), as in `bm25`."""
        with_term = np.diff(counts.indptr)
        idf = np.repeat(inverse_document_frequency(with_term, len(norms)), with_term)
        weights = bm25(idf, counts.counts, norms[counts.items])
        return cls(counts.vocabulary, counts.indptr, counts.items, weights, len(norms))

    def postings(self, term: str) -> tuple[np.ndarray, np.ndarray]:
        row = self.vocabulary.row(term)
        span = slice(0) if row < 0 else slice(self.indptr[row], self.indptr[row + 1])
        return self.indices[span], self.weights[span]

    def n_with(self, term: str) -> int:
        row = self.vocabulary.row(term)
        return 0 if row < 0 else int(self.indptr[row + 1] - self.indptr[row])


@dataclass(frozen=True)
class CountedKeys(TermKeys):
    """The weights of `LexicalKeys`, bit for bit, computed when a query needs them: where items were
    added to a base or deleted, every weight has changed.

    base: counts of the base's rows. item_rows: int (n_base,), the current row of each of its items,
    −1 for a deleted one. added: counts of the other items, by current rows. norms: float32
    (n_items,).
    """

    base: TermCounts
    item_rows: np.ndarray
    added: TermCounts
    norms: np.ndarray
    n_items: int
    rarity: Mapping[str, float] = field(default_factory=dict)

    def postings(self, term: str) -> tuple[np.ndarray, np.ndarray]:
        rows, counts = self.base.of(term)
        items = self.item_rows[rows]
        if len(items) and items.min() < 0:
            items, counts = items[items >= 0], counts[items >= 0]
        added, added_counts = self.added.of(term)
        items = np.concatenate([items, added])
        counts = np.concatenate([counts, added_counts])
        if (items[1:] < items[:-1]).any():
            order = np.argsort(items, kind="stable")
            items, counts = items[order], counts[order]
        idf = inverse_document_frequency(np.array([len(items)]), self.n_items)
        return items, bm25(idf, counts, self.norms[items])


def bm25(idf: np.ndarray, counts: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Return weights (n,), float32: idf · tf (k₁ + 1) / (tf + norm), with k₁ = 1.2 (Robertson and
    Zaragoza 2009, 3.3).

    Codes have norms of 0 and so the largest possible weight, idf · (k₁ + 1): the limit for a word
    that a text repeats without end.
    """
    tf = counts.astype(np.float32)
    return np.asarray(idf * tf * (K1 + 1) / (tf + norms)).astype(np.float32)


def length_norms(lengths: np.ndarray) -> np.ndarray:
    """Return k₁ (1 − b + b · length / mean length), float32 (n_items,), with b = .75. The lengths
    are added up as integers, so that the order of items makes no difference.
    """
    mean = np.float32(lengths.sum(dtype=np.int64)) / np.float32(max(len(lengths), 1))
    shares = B * lengths.astype(np.float32) / np.maximum(mean, np.float32(1e-9))
    return np.asarray(K1 * (1 - B + shares))


def inverse_document_frequency(n_with: np.ndarray | int, n_items: int) -> np.ndarray:
    """Return idf = ln(1 + (N − n + ½) / (n + ½)), float64, of terms that n of the N items have. It
    is positive even for a word that every item has.
    """
    return np.asarray(np.log1p((n_items - n_with + 0.5) / (n_with + 0.5)))


def _idf(n_with: int, n_items: int) -> float:
    """Return `inverse_document_frequency` of one number, which is faster without an array."""
    return log1p((n_items - n_with + 0.5) / (n_with + 0.5))
