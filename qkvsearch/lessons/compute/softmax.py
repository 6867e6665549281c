"""Lesson on softmax: how the largest weight responds to its score, by the width of the rows."""

from collections.abc import Sequence

import numpy as np

from qkvsearch.attention.gradients import softmax_vjp


def largest_weight(scores: np.ndarray) -> tuple[float, float]:
    """Return the largest weight of each row, and its gradient by its own score, on average.

    scores (n, S).
    """
    weights, pull = softmax_vjp(scores)
    top = np.eye(scores.shape[1])[weights.argmax(axis=1)]
    return (weights * top).sum(axis=1).mean(), (pull(top) * top).sum(axis=1).mean()


def largest_by_width(widths: Sequence[int]) -> np.ndarray:
    """Return the largest weight and its gradient, then the same with scores over √d (n_widths, 4).

    They are means over 500 random queries (d), each with 8 random keys.
    """
    rng = np.random.default_rng(0)
    rows = []
    for d in widths:
        queries, keys = rng.normal(size=(500, 1, d)), rng.normal(size=(500, 8, d))
        scores = (queries @ keys.swapaxes(1, 2))[:, 0]
        rows.append([*largest_weight(scores), *largest_weight(scores / np.sqrt(d))])
    return np.array(rows)
