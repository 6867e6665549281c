"""Damping: less of what is popular, as a part of the score."""

from __future__ import annotations

import numpy as np

from qkvsearch.retrieval import Head
from qkvsearch.retrieval.fusion import plus

POPULARITY = "popularity"


def log_popularity(counts: np.ndarray) -> np.ndarray:
    """ln(1 + how many users interacted with it), in standard deviations from the mean item,
    (n_items,).

    >>> log_popularity(np.array([0, 0, 8, 8])).tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """
    logs = np.log1p(np.asarray(counts, dtype=np.float64))
    return np.asarray((logs - logs.mean()) / (logs.std() or 1.0))


def damped(head: Head, popularity: np.ndarray, damping: float) -> Head:
    """Less for popular items: score − damping · σ · popularity, σ the scores' standard deviation
    over all items. The damping is a part of the score, "popularity".
    """
    spread = float(head.scores.std(dtype=np.float64))
    return plus(head, POPULARITY, -damping * spread * popularity)
