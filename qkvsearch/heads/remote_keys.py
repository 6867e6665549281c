"""Dense keys on a server: it finds candidates, which are scored here by their exact keys.

The mean and the deviation of the scores of all items need no keys: with the keys' mean μ and
covariance Σ they are q·μ and √(qᵀΣq). The items that are no candidates get the scores of a fixed
sample of items, shifted and scaled so that the scores of all items have this mean and deviation.
So fusion and softmax need not know that the keys are remote.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.engines.milvus.remote_rows import RemoteRows
from qkvsearch.heads.dense_keys import ItemKeys
from qkvsearch.scores.approximate import ApproximateQuery, Filter
from qkvsearch.scores.components import PartsOf
from qkvsearch.scores.fusion import Scores

# The items of the sample.
DRAWN = 8192


KeyRows: TypeAlias = np.ndarray | RemoteRows


@dataclass(frozen=True)
class RemoteKeys(ItemKeys["RemoteQuery"]):
    """Remote keys of a dense head."""

    vectors: RemoteRows
    # Of the keys of all items: float64 (d,) and (d, d).
    mean: np.ndarray
    covariance: np.ndarray
    # The rows of the sample, ascending, (m,).
    drawn: np.ndarray

    @cached_property
    def drawn_vectors(self) -> np.ndarray:
        """The keys of the sample, read once."""
        return self.vectors[self.drawn]

    def scored(self, name: str, vector: np.ndarray, parts: PartsOf) -> RemoteQuery:
        return RemoteQuery(name, self, vector, parts)


class RemoteQuery(ApproximateQuery):
    """One query to remote keys. Each key that it needs is read once."""

    min_candidates = 400

    def __init__(self, name: str, keys: RemoteKeys, vector: np.ndarray, parts: PartsOf) -> None:
        self.name = name
        self.keys = keys
        self.vector = vector
        self.parts = parts
        # The rows whose keys are read, and their exact scores.
        self._rows = keys.drawn
        self._scores = keys.drawn_vectors @ vector

    def nearest(self, k: int, allowed: Filter) -> np.ndarray:
        vectors = self.keys.vectors
        if len(self.keys.drawn) == len(vectors):  # then all are read already
            return self.keys.drawn
        return vectors.store.nearest(vectors.head, self.vector, k, allowed)

    def scores(self, candidates: np.ndarray) -> Scores:
        new = np.setdiff1d(candidates, self._rows)
        if len(new):
            self._rows = np.concatenate([self._rows, new])
            self._scores = np.concatenate([self._scores, self.keys.vectors[new] @ self.vector])
        scores = np.empty(len(self.keys.vectors), np.float32)
        scores[self._rows] = self._scores
        is_other = np.ones(len(scores), dtype=bool)
        is_other[self._rows] = False
        # Of the sample, candidates are no example of items that are none.
        sample = scores[np.setdiff1d(self.keys.drawn, candidates)]
        scores[is_other] = self._estimated(sample, int(np.count_nonzero(is_other)))
        return Scores(self.name, scores, self.parts, exact_above=self.above)

    def above(self, threshold: float) -> np.ndarray:
        vectors = self.keys.vectors
        is_above = np.zeros(len(vectors), dtype=bool)
        is_above[vectors.store.above(vectors.head, self.vector, threshold)] = True
        return is_above

    def _estimated(self, sample: np.ndarray, n: int) -> np.ndarray:
        """Return the scores of the sample for n other items, shifted and scaled.

        Mean and deviation of all items' scores are then those of all keys.
        """
        n_items = len(self.keys.vectors)
        mean = float(self.vector @ self.keys.mean)
        mean_square = float(self.vector @ self.keys.covariance @ self.vector) + mean * mean
        # What the exact scores do not explain of these is left to the others.
        exact = self._scores.astype(np.float64)
        mean_of_others = (n_items * mean - float(exact.sum())) / max(n, 1)
        mean_square_of_others = (n_items * mean_square - float(exact @ exact)) / max(n, 1)
        variance = max(mean_square_of_others - mean_of_others**2, 0.0)
        if not len(sample) or not n:
            return np.full(n, mean_of_others, np.float32)
        estimates = np.resize(sample, n)
        estimates -= np.float32(estimates.mean(dtype=np.float64))
        deviation = float(estimates.std(dtype=np.float64))
        factor = math.sqrt(variance) / deviation if deviation else 0.0
        estimates *= np.float32(factor)
        return np.asarray(estimates + np.float32(mean_of_others))
