"""Damping: popular items are ranked lower, by how far above the mean their popularity is."""

from __future__ import annotations

import numpy as np

from qkvsearch.scores.fusion import Scores, plus

# The component of a score that damping subtracts.
POPULARITY = "popularity"


def log_popularity(counts: np.ndarray) -> np.ndarray:
    """Return ln(1 + number of users) of each item, standardized over all items, (n_items,).

    >>> log_popularity(np.array([0, 0, 8, 8])).tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """
    logs = np.log1p(np.asarray(counts, dtype=np.float64))
    return np.asarray((logs - logs.mean()) / (logs.std() or 1.0))


def damped(head: Scores, popularity: np.ndarray, damping: float) -> Scores:
    """Return score − damping · σ · popularity, where σ is the standard deviation of the scores over
    all items. The subtracted term is the score's component "popularity".
    """
    _, deviation = head.moments
    return plus(head, POPULARITY, -damping * deviation * popularity)
