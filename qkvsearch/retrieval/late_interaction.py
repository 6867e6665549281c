"""Late interaction: each word of a query attends over the words of the best items, a second pass.

Khattab and Zaharia 2020 (ColBERT), section 3.3, take for each word of the query its most similar
word of the item. Here the word attends over all of them: a temperature near 0 is their maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from mmap import mmap
from typing import Any

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.query_lock import released
from qkvsearch.attention.masks import hide
from qkvsearch.attention.weights import softmax
from qkvsearch.retrieval.fusion import Scores, plus
from qkvsearch.retrieval.keys import TermKeys
from qkvsearch.retrieval.score_components import Components, ScoreComponent, Source
from qkvsearch.retrieval.topk import top_k
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.labelled import NEGLIGIBLE, LabelledVectors, unit_rows
from qkvsearch.text.text_encoder import TextEncoder

NAME = "token"
# The key of what an item gets that is not among the candidates of the second pass.
NOT_COMPARED = "as the lowest of those compared"
# The candidates of the second pass: more find no more, by `token_head.py` among the benchmarks.
DEPTH = 30
# The most tokens that are kept of an item's text.
LONGEST_ITEM = 128
# Equal keys may get scores that differ in the last bit; rounded, they tie, and ids decide.
DECIMALS = 6
# Candidates whose scores differ by less are alike: standardized, a breath between them would
# outweigh all that the first pass says.
LEAST_DEVIATION = 0.02
# How much more similar a token is that gets e times the attention weight of another, by
# `token_head.py` among the benchmarks.
TEMPERATURE = 0.05
# float32 holds e to minus this, and sums of it, in full precision.
MOST_EXPONENT = 80


@dataclass(frozen=True)
class TokenKeys:
    """Unit vectors of the tokens of all items, end to end.

    indptr: int64 (n_items + 1,), where each item's begin. stored: int32 (n_tokens,), rows of
    `table` (n_terms, d), where a token has one vector wherever it stands; without a table int8
    (n_tokens, d), the direction of each token's own vector. added: further ones, array by array, of
    which indptr counts on. All may be on disk: of the items asked for alone they are read. rows:
    int64 (n_items,), the entry of indptr that each item has; by default its own.

    >>> keys = TokenKeys(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([[2., 0.], [0., 3.]]))
    >>> keys.similarities(np.array([[1., 0.]]), np.array([0]))[0]
    array([[1., 0.]])
    """

    indptr: np.ndarray
    stored: np.ndarray
    table: np.ndarray | None = None
    added: Sequence[np.ndarray] = ()
    rows: np.ndarray | None = None

    def lengths(self, positions: np.ndarray) -> np.ndarray:
        """How many tokens these items have, int64 (n,)."""
        rows = self._rows(positions)
        return np.asarray(self.indptr[rows + 1] - self.indptr[rows])

    def tokens(self, positions: np.ndarray) -> np.ndarray:
        """What is stored of the tokens of these items, end to end."""
        lengths = self.lengths(positions)
        starts = self.indptr[self._rows(positions)] - np.cumsum(lengths) + lengths
        places = np.repeat(starts, lengths) + np.arange(lengths.sum())
        if not self.added:
            return np.asarray(self.stored[places])
        found = np.empty((len(places), *self.stored.shape[1:]), self.stored.dtype)
        start = 0
        for piece in (self.stored, *self.added):
            ours = (places >= start) & (places < start + len(piece))
            found[ours] = piece[places[ours] - start]
            start += len(piece)
        return found

    def similarities(self, query: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, Any]:
        """Cosines (L, m) of unit vectors `query` (L, d) with the m tokens of the items at
        `positions` (n,), item after item, and the number of tokens of each (n,)."""
        cosines, places = self.cosines(query, positions)
        return cosines.T[:, places], self.lengths(positions)

    def cosines(self, query: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, Any]:
        """Cosines (u, L) of the tokens of these items, those of a table each once, with unit
        vectors `query` (L, d); and which row of them each token has, (m,), token after token.
        """
        stored = self.tokens(positions)
        places: Any = slice(None)
        if self.table is not None:
            is_there = np.zeros(len(self.table), dtype=bool)
            is_there[stored] = True
            rows = np.flatnonzero(is_there)
            numbers = np.empty(len(self.table), dtype=np.int32)
            numbers[rows] = np.arange(len(rows))
            return self._units.of(rows) @ query.T, numbers[stored]
        vectors = stored.astype(np.float32, copy=False)
        norms = np.sqrt(np.einsum("jd,jd->j", vectors, vectors))
        return vectors @ query.T / np.where(norms > 0, norms, 1)[:, None], places

    @cached_property
    def _units(self) -> UnitRows:
        assert self.table is not None
        return UnitRows(self.table)

    def _rows(self, positions: np.ndarray) -> np.ndarray:
        return positions if self.rows is None else self.rows[positions]


class UnitRows:
    """The rows of a table (n, d) at length 1, float32, each made when it is first asked for.

    >>> UnitRows(np.array([[3.0, 4.0], [0.0, 0.0]], np.float16)).of(np.array([1, 0])).round(1)
    array([[0. , 0. ],
           [0.6, 0.8]], dtype=float32)
    """

    def __init__(self, table: np.ndarray) -> None:
        self._table = table
        self._made = np.zeros(len(table), dtype=bool)
        # Of memory only the pages that are written are taken. NumPy would ask for large ones, whose
        # zeros take 5 ms of a process's first search.
        memory = mmap(-1, max(1, 4 * table.size))
        self._rows = np.frombuffer(memory, np.float32, table.size).reshape(table.shape)

    def of(self, rows: np.ndarray) -> np.ndarray:
        """These rows (m, d). Threads that ask for the same ones at once make the same."""
        new = rows[~self._made[rows]]
        if len(new):
            self._rows[new] = unit_rows(self._table[new].astype(np.float32))
            self._made[new] = True
        return np.asarray(self._rows[rows])


@dataclass(frozen=True)
class LateInteraction:
    """A query's words, ready to attend over the tokens of items.

    query: unit vectors (L, d). weights: (L,), how much each counts, adding up to 1.
    `labels_of(position)` are the words of an item's tokens, in the order of its keys.
    """

    query: LabelledVectors
    weights: np.ndarray
    keys: TokenKeys
    labels_of: Callable[[int], Sequence[str]]
    temperature: float = TEMPERATURE

    def scores(self, positions: np.ndarray) -> np.ndarray:
        """Σᵢ wᵢ Σⱼ aᵢⱼ qᵢ·kⱼ with aᵢⱼ = softmaxⱼ(qᵢ·kⱼ / temperature), float64 (n,), of the items
        at `positions` (n,); 0 for an item without tokens."""
        lengths = self.keys.lengths(positions)
        found = np.zeros(len(positions))
        if not lengths.any():
            return found
        query, weights = _merged(self.query.vectors, self.weights)
        with released():
            return self._pooled(query, weights, positions, lengths, found)

    def _pooled(
        self,
        query: np.ndarray,
        weights: np.ndarray,
        positions: np.ndarray,
        lengths: np.ndarray,
        found: np.ndarray,
    ) -> np.ndarray:
        cosines, places = self.keys.cosines(query, positions)
        starts = (np.cumsum(lengths) - lengths)[lengths > 0]
        # No cosine is above 1, so no exponent is above 0; the largest is looked for only where the
        # others might all become 0.
        peaks: Any = np.float32(1)
        if 2 / self.temperature > MOST_EXPONENT:
            cosines, places = cosines[places], slice(None)
            peaks = np.maximum.reduceat(cosines, starts, axis=0)
            peaks = np.repeat(peaks, lengths[lengths > 0], axis=0)
        shares = np.exp((cosines - peaks) / np.float32(self.temperature))
        both = np.concatenate([shares, shares * cosines], axis=1)[places]
        total, mixed = np.split(np.add.reduceat(both, starts, axis=0), 2, axis=1)
        found[lengths > 0] = (mixed / total).astype(np.float64) @ weights
        return np.round(found, DECIMALS)

    def parts(self, position: int) -> Components:
        """wᵢ aᵢⱼ qᵢ·kⱼ of every word of the query and of the item, with the weights aᵢⱼ held; a
        word that occurs several times is one.
        """
        similar, _ = self.keys.similarities(self.query.vectors, np.array([position]))
        pooled = self._attention(similar, np.ones(similar.shape[1], dtype=bool))
        values = self.weights[:, None] * pooled * similar
        words, row_of = _numbered(self.query.labels)
        keys, column_of = _numbered(self.labels_of(position)[: similar.shape[1]])
        pairs = (row_of[:, None] * len(keys) + column_of).ravel()
        sums = np.bincount(pairs, values.ravel(), len(words) * len(keys))
        sources = [Source(NAME, word) for word in words]
        return Components.pairs(sources, keys, sums.reshape(len(words), len(keys)))

    def _attention(self, similar: np.ndarray, there: np.ndarray) -> Any:
        return softmax(hide(similar, there), self.temperature)


def _numbered(labels: Sequence[Any]) -> tuple[list[Any], np.ndarray]:
    """The different labels, and which of them each one is, int (n,)."""
    numbers: dict[Any, int] = {}
    found = [numbers.setdefault(label, len(numbers)) for label in labels]
    return list(numbers), np.array(found, dtype=np.int64)


def _merged(vectors: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal vectors (L, d) as one, with the sum of their weights (L,); none without a weight."""
    rows: dict[bytes, int] = {}
    summed: list[float] = []
    kept: list[int] = []
    for i, weight in enumerate(weights.tolist()):
        row = rows.setdefault(vectors[i].tobytes(), len(rows)) if weight else -1
        if row == len(kept):
            kept.append(i)
            summed.append(0.0)
        if row >= 0:
            summed[row] += weight
    return vectors[kept], np.array(summed)


def late_interaction(
    query: LabelledVectors,
    keys: TokenKeys,
    lexical: TermKeys,
    labels_of: Callable[[int], Sequence[str]],
    temperature: float = TEMPERATURE,
    boosts: np.ndarray | float = 1.0,
    analyzer: Analyzer | None = None,
) -> LateInteraction | None:
    """Late interaction of a query's tokens, vectors (L, d) of any length, weighted by their words'
    idf in the catalog times `boosts`, (L,); None where it has no words."""
    weights = idf(query.labels, lexical, analyzer) * boosts
    if not weights.sum() > 0:
        return None
    units = LabelledVectors(query.labels, unit_rows(query.vectors).astype(np.float32))
    return LateInteraction(units, weights / weights.sum(), keys, labels_of, temperature)


def idf(words: Sequence[str], lexical: TermKeys, analyzer: Analyzer | None = None) -> np.ndarray:
    """BM25's, float64 (n_words,), by the rarest term of each word. 0 for what is no word, such as a
    comma."""
    analyzer = analyzer or Analyzer()
    return np.array([lexical.rarity(word, analyzer) for word in words], dtype=np.float64)


def rerank(
    first: Scores,
    second: LateInteraction | None,
    weight: float,
    mask: np.ndarray | None = None,
    depth: int = DEPTH,
) -> Scores:
    """The first pass with `weight` standard deviations of late interaction added to its best items.

    mask: bool (n_items,), True = may be ranked. Candidates are the `depth` best of what mask and
    `first.answers` leave. Their scores by the second pass are standardized among themselves. All
    other items, and candidates without tokens, get what the lowest candidate gets: so the best
    `depth` items stay the same ones, and whatever follows them stays in its order. Where fewer than
    two candidates have tokens, or none differs from another, the first pass comes back.

    In the parts, weights of attention, mean and deviation are held: the mean is a constant part,
    the same for every item, and what is not a candidate has one part beside it.
    """
    if second is None or weight == 0:
        return first
    candidates = top_k(first.scores, depth, first.allowed(mask))
    candidates = candidates[second.keys.lengths(candidates) > 0]
    if len(candidates) < 2:
        return first
    found = second.scores(candidates)
    mean, deviation = float(found.mean()), float(found.std())
    if deviation < NEGLIGIBLE:
        return first
    factor = weight / max(deviation, LEAST_DEVIATION)
    common, lowest = -mean * factor, float((found.min() - mean) * factor)
    added = np.full(len(first.scores), lowest, dtype=np.float32)
    added[candidates] = (found - mean) * factor
    compared = set(candidates.tolist())
    taken_off = ScoreComponent(NAME, None, None, common)
    not_compared = Components.of(
        [ScoreComponent(NAME, None, NOT_COMPARED, lowest - common), taken_off]
    )

    def parts(position: int) -> Components:
        if position not in compared:
            return not_compared
        return Components.joined(
            [second.parts(position).scaled(factor), Components.of([taken_off])]
        )

    return plus(first, NAME, added, parts)


# --- texts to tokens ---


def item_tokens(
    encoder: TextEncoder,
    fields: Sequence[Sequence[str]],
    progress: Progress | None = None,
) -> Iterator[np.ndarray]:
    """What `TokenKeys.stored` holds of each item given as columns of texts, at most `LONGEST_ITEM`
    tokens of each: as `TextEncoder.tokens_many` gives them, one item after the other. Each column
    is read alone, as for the keys.
    """
    every = [text for columns in zip(*fields, strict=True) for text in columns]
    tokens = iter(encoder.tokens_many(every, LONGEST_ITEM, progress))
    items = zip(*[tokens] * len(fields), strict=True)
    return (np.concatenate(columns)[:LONGEST_ITEM] for columns in items)


def token_labels(encoder: TextEncoder, fields: Sequence[str]) -> list[str]:
    """The words of an item's tokens, as `item_tokens` has them."""
    texts = [text for text in fields if text.strip()]
    return [label for text in texts for label in encoder.read(text).tokens.labels]


def token_keys(found: Iterable[np.ndarray], table: np.ndarray | None = None) -> TokenKeys | None:
    """Keys, in memory, of the tokens that `item_tokens` found; None where it found none."""
    spans = list(found)
    if not any(map(len, spans)):
        return None
    indptr = np.cumsum([0, *map(len, spans)], dtype=np.int64)
    return TokenKeys(indptr, np.concatenate(spans), table)
