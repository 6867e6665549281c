"""The k best of many scores, exactly."""

from __future__ import annotations

import numpy as np


def top_k(scores: np.ndarray, k: int, mask: np.ndarray | None = None) -> np.ndarray:
    """Positions (int64) of the k largest scores among those that `mask` leaves, best first.

    Ties go to the smaller position. Fewer than k come back where fewer are left.

    >>> top_k(np.array([1., 3., 3., 2.]), 2).tolist()
    [1, 2]
    """
    candidates = np.arange(len(scores)) if mask is None else np.flatnonzero(mask)
    if k < len(candidates):
        left = scores[candidates]
        threshold = np.partition(left, len(left) - k)[len(left) - k] if k > 0 else np.inf
        above = candidates[left > threshold]
        level = candidates[left == threshold][: k - len(above)]
        candidates = np.concatenate([above, level])
    return candidates[np.lexsort((candidates, -scores[candidates]))]
