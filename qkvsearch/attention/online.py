"""The online softmax: attention over some of the keys, to which more keys can be added.

A softmax needs a row's largest score and the sum of its exponentials. Both can be kept as running
values and corrected when a larger score arrives. So keys may come block by block, in any order,
from several files or machines.
Milakov & Gimelshein 2018, section 3; Dao et al. 2022, section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from qkvsearch.attention.arrays import Array


class Partial(NamedTuple):
    """What some of the keys contribute to each query's answer.

    peak (..., L), at least the largest score so far; total (..., L) = Σⱼ exp(sⱼ − peak), 0 where
    every key was hidden; mixed (..., L, dv) = Σⱼ exp(sⱼ − peak)·vⱼ.

    >>> first = Partial(np.array([0.0]), np.array([2.0]), np.array([[10.0]]))
    >>> then = Partial(np.array([0.0]), np.array([1.0]), np.array([[7.0]]))
    >>> first.merge(then).total, first.output(), first.merge(then).output().round(3)
    (array([3.]), array([[5.]]), array([[5.667]]))
    """

    peak: Array
    total: Array
    mixed: Array

    @classmethod
    def empty(cls, n_queries: int, width: int, dtype: np.dtype) -> Partial:
        """Of no keys at all: L queries, values of `width`."""
        return cls(
            # Not −∞: −∞ − (−∞) would be NaN.
            np.full(n_queries, np.finfo(dtype).min, dtype),
            np.zeros(n_queries, dtype),
            np.zeros((n_queries, width), dtype),
        )

    @np.errstate(all="ignore")
    def merge(self, other: Partial) -> Partial:
        """What the keys of both contribute together."""
        if (self.peak == other.peak).all():
            return Partial(self.peak, self.total + other.total, self.mixed + other.mixed)
        peak = np.maximum(self.peak, other.peak)
        mine, theirs = np.exp(self.peak - peak), np.exp(other.peak - peak)
        total = self.total * mine + other.total * theirs
        return Partial(peak, total, _times(self.mixed, mine) + _times(other.mixed, theirs))

    def output(self) -> Array:
        """The mixed values (..., L, dv), as if these keys were all; zeros where none is visible."""
        total = self.total[..., None]
        return self.mixed / np.where(total == 0, 1, total)


# --- terms: what each key adds to its row, computed in place of the scores (L, S). Each function
# returns the rows' peaks (L,) and totals (L,) ---

Terms = Callable[[Array], tuple[Array, Array]]


def softmax_terms(scores: Array) -> tuple[Array, Array]:
    """exp(s − peak)."""
    # Never −∞: −∞ − (−∞) would be NaN.
    peak = np.maximum(scores.max(axis=-1), np.finfo(scores.dtype).min)
    scores -= peak[:, None]
    np.exp(scores, out=scores)
    return peak, scores.sum(axis=-1)


def relu_terms(scores: Array) -> tuple[Array, Array]:
    """max(0, s)."""
    scores[scores <= 0] = 0
    return _no_peak(scores), scores.sum(axis=-1)


def plain_terms(scores: Array) -> tuple[Array, Array]:
    """s itself. The total is the number of visible keys; nothing is divided by it."""
    hidden = scores == -np.inf
    scores[hidden] = 0
    return _no_peak(scores), (~hidden).sum(axis=-1, dtype=scores.dtype)


# For each normalizer; weights.NORMALIZERS has the same names.
TERMS: Mapping[str, Terms] = {"softmax": softmax_terms, "relu": relu_terms, "none": plain_terms}


def _no_peak(scores: Array) -> Array:
    return np.zeros(len(scores), scores.dtype)


def _times(mixed: Array, factor: Array) -> Array:
    """mixed · factor with ∞ · 0 = 0: a weight that has shrunk to 0 takes nothing."""
    scaled = mixed * factor[..., None]
    return scaled if np.isfinite(scaled).all() else np.where(factor[..., None] == 0, 0, scaled)
