"""Late interaction, a second pass: each word of a query attends to the words of the best items.

Khattab and Zaharia 2020 (ColBERT), section 3.3, take for each word of the query the most similar
word of the item. Here it attends to all words of the item; a temperature near 0 gives the maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from mmap import mmap
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.query_lock import released
from qkvsearch.attention.weights import softmax
from qkvsearch.heads.bm25 import TermKeys
from qkvsearch.scores.components import Components, PartSource, ScoreComponent
from qkvsearch.scores.fusion import Scores, moments, plus
from qkvsearch.scores.topk import top_k
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.labelled import NEGLIGIBLE, LabelledVectors, unit_rows
from qkvsearch.text.text_encoder import TextEncoder

NAME = "token"
# The key of the part of an item that is not compared in the second pass.
NOT_COMPARED = "as the lowest of those compared"
# The candidates of the second pass. More do not improve it, by `token_head.py` among the
# benchmarks.
DEPTH = 30
# The tokens that are stored of an item's text.
LONGEST_ITEM = 128
# The tokens that are stored of a passage of a long text: of nearly all of them.
LONGEST_PASSAGE = 256
# Scores of equal keys may differ in the last bit; they are rounded, so that ids decide.
DECIMALS = 6
# A smaller deviation counts as this: otherwise tiny differences, standardized, would outweigh the
# first pass.
MIN_DEVIATION = 0.02
# The difference in similarity at which a token has e times the attention weight of another, by
# `token_head.py` among the benchmarks.
TEMPERATURE = 0.05
# float32 represents e to minus this, and sums of it, in full precision.
MAX_EXPONENT = 80


@dataclass(frozen=True)
class TokenKeys:
    """Unit vectors of the tokens of all items, end to end.

    The arrays may be on disk. Only the tokens of the requested items are read.

    >>> keys = TokenKeys(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([[2., 0.], [0., 3.]]))
    >>> keys.similarities(np.array([[1., 0.]]), np.array([0]))[0]
    array([[1., 0.]])
    """

    # Where the tokens of each item begin, int64 (n_items + 1,).
    indptr: np.ndarray
    # The tokens: rows of `table`, int32 (n_tokens,), or where there is none the directions of their
    # vectors, int8 (n_tokens, d).
    stored: np.ndarray
    # The vectors of all terms (n_terms, d), where a token has the same vector in any context.
    table: np.ndarray | None = None
    # Further arrays of tokens, numbered after `stored`.
    added: Sequence[np.ndarray] = ()
    # The entry of `indptr` of each item, int64 (n_items,); None where they are in the same order.
    rows: np.ndarray | None = None

    def lengths(self, positions: np.ndarray) -> np.ndarray:
        """Return how many tokens these items have, int64 (n,)."""
        rows = self._rows(positions)
        return np.asarray(self.indptr[rows + 1] - self.indptr[rows])

    def tokens(self, positions: np.ndarray) -> np.ndarray:
        """Return the stored tokens of these items, end to end."""
        lengths = self.lengths(positions)
        starts = self.indptr[self._rows(positions)] - np.cumsum(lengths) + lengths
        slots = np.repeat(starts, lengths) + np.arange(lengths.sum())
        if not self.added:
            return np.asarray(self.stored[slots])
        tokens = np.empty((len(slots), *self.stored.shape[1:]), self.stored.dtype)
        start = 0
        for piece in (self.stored, *self.added):
            in_piece = (slots >= start) & (slots < start + len(piece))
            tokens[in_piece] = piece[slots[in_piece] - start]
            start += len(piece)
        return tokens

    def renumbered(self, rows: np.ndarray) -> TokenKeys:
        """Return keys whose item i is item `rows[i]` of these, int64 (n,)."""
        if self.table is not None:
            # Both share the vectors that are computed.
            _ = self._units
        keys = copy(self)
        object.__setattr__(keys, "rows", self._rows(rows))
        return keys

    def similarities(self, query: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return the cosines (L, m) of unit vectors `query` (L, d) with the m tokens of these
        items, item after item, and how many tokens each item has, (n,).
        """
        cosines, row_of = self.cosines(query, positions)
        return cosines.T[:, row_of], self.lengths(positions)

    def cosines(self, query: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return the cosines (u, L) of the distinct tokens of these items with unit vectors `query`
        (L, d), and the row of each token in them, (m,).
        """
        stored = self.tokens(positions)
        row_of: Any = slice(None)
        if self.table is not None:
            is_used = np.zeros(len(self.table), dtype=bool)
            is_used[stored] = True
            rows = np.flatnonzero(is_used)
            numbers = np.empty(len(self.table), dtype=np.int32)
            numbers[rows] = np.arange(len(rows))
            return self._units.of(rows) @ query.T, numbers[stored]
        vectors = stored.astype(np.float32, copy=False)
        norms = np.sqrt(np.einsum("jd,jd->j", vectors, vectors))
        return vectors @ query.T / np.where(norms > 0, norms, 1)[:, None], row_of

    @cached_property
    def _units(self) -> UnitRows:
        assert self.table is not None
        return UnitRows(self.table)

    def _rows(self, positions: np.ndarray) -> np.ndarray:
        return positions if self.rows is None else self.rows[positions]


class UnitRows:
    """The rows of a table (n, d) at length 1, float32, each computed when it is first needed.

    >>> UnitRows(np.array([[3.0, 4.0], [0.0, 0.0]], np.float16)).of(np.array([1, 0])).round(1)
    array([[0. , 0. ],
           [0.6, 0.8]], dtype=float32)
    """

    def __init__(self, table: np.ndarray) -> None:
        self._table = table
        self._is_computed = np.zeros(len(table), dtype=bool)
        # The system allocates only the pages that are written. NumPy would use large pages, whose
        # zeros take 5 ms of a process's first search.
        memory = mmap(-1, max(1, 4 * table.size))
        self._rows = np.frombuffer(memory, np.float32, table.size).reshape(table.shape)

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Return these rows (m, d). Simultaneous threads compute the same values."""
        new = rows[~self._is_computed[rows]]
        if len(new):
            self._rows[new] = unit_rows(self._table[new].astype(np.float32))
            self._is_computed[new] = True
        return np.asarray(self._rows[rows])


@dataclass(frozen=True)
class LateInteraction:
    """A query's words that attend to the tokens of items."""

    # The words' unit vectors (L, d).
    query: LabelledVectors
    # The words' weights (L,), which add up to 1.
    weights: np.ndarray
    keys: TokenKeys
    # labels_of(position): the words of an item's tokens, in the order of its keys.
    labels_of: Callable[[int], Sequence[str]]
    temperature: float = TEMPERATURE
    # Whether parts tell how much better a word is matched than in the mean candidate: where all
    # words are similar to each other, every pair of words adds much to every score.
    is_relative: bool = False

    def scores(self, positions: np.ndarray) -> np.ndarray:
        """Return Σᵢ wᵢ Σⱼ aᵢⱼ qᵢ·kⱼ with aᵢⱼ = softmaxⱼ(qᵢ·kⱼ / temperature) for each of these
        items, float64 (n,); 0 for an item without tokens.
        """
        lengths = self.keys.lengths(positions)
        if not lengths.any():
            return np.zeros(len(positions))
        query, weights = _merged(self.query.vectors, self.weights)
        with released():
            pooled = self._pooled(query, positions, lengths)
        return np.round(pooled @ weights, DECIMALS)

    def word_means(self, positions: np.ndarray) -> np.ndarray:
        """Return the mean of Σⱼ aᵢⱼ qᵢ·kⱼ over these items for each word, float64 (L,)."""
        lengths = self.keys.lengths(positions)
        return self._pooled(self.query.vectors, positions, lengths).mean(axis=0)

    def _pooled(self, query: np.ndarray, positions: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return Σⱼ aᵢⱼ qᵢ·kⱼ of each item and query vector, float64 (n, L)."""
        cosines, row_of = self.keys.cosines(query, positions)
        starts = (np.cumsum(lengths) - lengths)[lengths > 0]
        # No cosine is above 1, so no exponent is above 0. The maximum is needed only if all other
        # terms might become 0.
        peaks: Any = np.float32(1)
        if 2 / self.temperature > MAX_EXPONENT:
            cosines, row_of = cosines[row_of], slice(None)
            peaks = np.maximum.reduceat(cosines, starts, axis=0)
            peaks = np.repeat(peaks, lengths[lengths > 0], axis=0)
        shares = np.exp((cosines - peaks) / np.float32(self.temperature))
        both = np.concatenate([shares, shares * cosines], axis=1)[row_of]
        sums = np.add.reduceat(both, starts, axis=0)
        total = sums[:, : len(query)]
        mixed = sums[:, len(query) :]
        pooled = np.zeros((len(positions), len(query)))
        pooled[lengths > 0] = mixed / total
        return pooled

    def parts(self, position: int, means: np.ndarray | float = 0.0) -> Components:
        """Return wᵢ aᵢⱼ (qᵢ·kⱼ − meanᵢ) for each word of the query and of the item, with constant
        weights aᵢⱼ. A word that occurs several times is one part.
        """
        similar, _ = self.keys.similarities(self.query.vectors, np.array([position]))
        differences = similar - np.reshape(means, (-1, 1))
        values = self.weights[:, None] * softmax(similar, self.temperature) * differences
        words, row_of = _numbered(self.query.labels)
        keys, column_of = _numbered(self.labels_of(position)[: similar.shape[1]])
        pairs = (row_of[:, None] * len(keys) + column_of).ravel()
        sums = np.bincount(pairs, values.ravel(), len(words) * len(keys))
        sources = [PartSource(NAME, word) for word in words]
        return Components.pairs(sources, keys, sums.reshape(len(words), len(keys)))


def _numbered(labels: Sequence[Any]) -> tuple[list[Any], np.ndarray]:
    """Return the distinct labels, and the number of each label among them, int (n,)."""
    numbers: dict[Any, int] = {}
    number_of = [numbers.setdefault(label, len(numbers)) for label in labels]
    return list(numbers), np.array(number_of, dtype=np.int64)


def _merged(vectors: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merge equal vectors (L, d) and add up their weights (L,), without vectors of weight 0."""
    row_of: dict[bytes, int] = {}
    sums: list[float] = []
    distinct: list[int] = []
    for i, weight in enumerate(weights.tolist()):
        if not weight:
            continue
        row = row_of.setdefault(vectors[i].tobytes(), len(distinct))
        if row == len(distinct):  # no earlier vector is equal
            distinct.append(i)
            sums.append(0.0)
        sums[row] += weight
    return vectors[distinct], np.array(sums)


def late_interaction(
    query: LabelledVectors,
    keys: TokenKeys,
    lexical: TermKeys,
    labels_of: Callable[[int], Sequence[str]],
    temperature: float = TEMPERATURE,
    boosts: np.ndarray | float = 1.0,
    analyzer: Analyzer | None = None,
) -> LateInteraction | None:
    """Build from a query's tokens, vectors (L, d) of any length, weighted by the idf of their words
    times `boosts`, (L,); a vector of zeros counts nothing. Return None for a query without words.
    """
    weights = idf(query.labels, lexical, analyzer) * boosts * query.vectors.any(axis=1)
    if not weights.sum() > 0:
        return None
    units = LabelledVectors(query.labels, unit_rows(query.vectors).astype(np.float32))
    return LateInteraction(units, weights / weights.sum(), keys, labels_of, temperature)


def idf(words: Sequence[str], lexical: TermKeys, analyzer: Analyzer | None = None) -> np.ndarray:
    """Return BM25's idf, float64 (n_words,), by the rarest term of each word; 0 for a comma."""
    language = (analyzer or Analyzer()).language
    idf_of = {word: lexical.idf(word, language) for word in dict.fromkeys(words)}
    return np.array([idf_of[word] for word in words], dtype=np.float64)


def rerank(
    first: Scores,
    second: LateInteraction | None,
    weight: float,
    mask: np.ndarray | None = None,
    depth: int = DEPTH,
) -> Scores:
    """Add `weight` standard deviations of late interaction to the best items of the first pass.

    mask: bool (n_items,), True = may be ranked. The candidates are the `depth` best allowed items.
    Their scores in the second pass are standardized. All other items, and candidates without
    tokens, get the lowest of these scores: the best `depth` items stay the same ones, and the items
    after them stay in their order. The first pass is returned if fewer than two candidates have
    tokens, or if none differs from the others.

    In the parts, attention weights, mean and deviation are constant. The mean is one part, the same
    for all items, or, where the second pass `is_relative`, the mean of each word is subtracted from
    its parts. Items that are no candidates have one other part.
    """
    if second is None or weight == 0:
        return first
    candidates = top_k(first.scores, depth, first.allowed(mask))
    candidates = candidates[second.keys.lengths(candidates) > 0]
    if len(candidates) < 2:
        return first
    scores = second.scores(candidates)
    mean, deviation = moments(scores)
    if deviation < NEGLIGIBLE:
        return first
    factor = weight / max(deviation, MIN_DEVIATION)
    common = -mean * factor
    lowest = float((scores.min() - mean) * factor)
    added = np.full(len(first.scores), lowest, dtype=np.float32)
    added[candidates] = (scores - mean) * factor
    compared = set(candidates.tolist())
    mean_part = ScoreComponent(NAME, None, None, common)
    not_compared = Components.of(
        [ScoreComponent(NAME, None, NOT_COMPARED, lowest - common), mean_part]
    )

    @cache  # computed for the first hit that is explained
    def means() -> np.ndarray:
        return second.word_means(candidates)

    def parts(position: int) -> Components:
        if position not in compared:
            return not_compared
        if second.is_relative:
            return second.parts(position, means()).scaled(factor)
        return Components.joined(
            [second.parts(position).scaled(factor), Components.of([mean_part])]
        )

    return plus(first, NAME, added, parts, is_relative=True)


# --- texts to tokens ---


def item_tokens(
    encoder: TextEncoder,
    fields: Sequence[Sequence[str]],
    progress: Progress | None = None,
) -> Iterator[np.ndarray]:
    """Yield the tokens of each item, given as columns of texts, for `TokenKeys.stored`: at most
    `LONGEST_ITEM` of those that `TextEncoder.tokens_many` returns for each column.
    """
    texts = [text for columns in zip(*fields, strict=True) for text in columns]
    tokens = iter(encoder.tokens_many(texts, LONGEST_ITEM, progress))
    items = zip(*[tokens] * len(fields), strict=True)
    return (np.concatenate(columns)[:LONGEST_ITEM] for columns in items)


def token_labels(encoder: TextEncoder, fields: Sequence[str]) -> list[str]:
    """Return the words of an item's tokens, in the order of `item_tokens`."""
    texts = [text for text in fields if text.strip()]
    return [label for text in texts for label in encoder.read(text).tokens.labels]
