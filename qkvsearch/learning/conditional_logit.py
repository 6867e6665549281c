"""The weights of heads under which the items that answer queries are most likely.

A conditional logit: an item's chance is the softmax of the fused score over the items there are.
McFadden 1974, "Conditional logit analysis of qualitative choice behavior".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qkvsearch.retrieval.fusion import mean_and_deviation

# (heads, queries, items) standardised scores.
Scores = np.ndarray


class Alternatives(NamedTuple):
    """What queries choose among.

    scores: (heads, queries, items), standardised. answers: (queries, items), each row adds up
    to 1 over the items that answer the query. offsets: (queries, items), the logarithm of how many
    items of the catalogue each stands for, or 0 where all of them are here.
    """

    scores: Scores
    answers: np.ndarray
    offsets: np.ndarray | float = 0.0

    @classmethod
    def each_its_own(cls, scores: Scores) -> Alternatives:
        """Item i is the answer to query i."""
        return cls(scores, np.eye(scores.shape[1], dtype=np.float32))


def standardised(scores: np.ndarray) -> np.ndarray:
    """Each query's scores in standard deviations from their mean, as fusion has them: zeros where
    they differ by rounding errors alone.

    >>> standardised(np.array([[1.0, 3.0]]))
    array([[-1.,  1.]])
    """
    mean, deviation = mean_and_deviation(scores)
    factor = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
    return (scores - mean.astype(scores.dtype)) * factor.astype(scores.dtype)


def conditional_logit(sets: Sequence[Alternatives]) -> np.ndarray:
    """Weights (heads,) ≥ 0, adding up to 1, under which the answers are most likely.

    Maximises Σ ln softmax(Σₕ wₕ zₕ + offset), averaged over each query's answers, whose gradient is
    zₕ of the answers − its mean under the softmax. McFadden 1974, section 2; with a sample of the
    items: McFadden 1978, "Modelling the choice of residential location".

    >>> right, noise = 3 * np.eye(5), np.random.default_rng(0).normal(size=(5, 5))
    >>> conditional_logit([Alternatives.each_its_own(np.stack([right, noise]))]).argmax()
    np.int64(0)
    """
    from scipy.optimize import minimize

    from qkvsearch.attention import softmax

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = 0.0, np.zeros_like(weights)
        for scores, answers, offsets in sets:
            fused = np.tensordot(weights.astype(scores.dtype), scores, 1)
            likely = softmax(fused + offsets)
            value -= float((answers * np.log(likely + 1e-30)).sum())
            gradient += np.einsum("qi,hqi->h", likely - answers, scores)
        n_queries = sum(len(alternatives.answers) for alternatives in sets)
        return value / n_queries, gradient / n_queries

    n_heads = len(sets[0].scores)
    bounds = [(0, None)] * n_heads
    best = minimize(loss, np.ones(n_heads), jac=True, bounds=bounds, method="L-BFGS-B").x
    return best / best.sum() if best.sum() > 0 else np.full(n_heads, 1 / n_heads)
