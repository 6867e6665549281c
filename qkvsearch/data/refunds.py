"""Negative weights: each takes back what it refunds, first of all the latest purchase before it."""

from __future__ import annotations

import numpy as np

# Weights are decimal fractions: 0.1 + 0.2 − 0.3 leaves nothing.
TOLERANCE = 1e-9


def what_is_left(pairs: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, int]:
    """What is left of each row's weight (n,), and how many refunds found too little to take back.

    pairs: which user and item each row is of, as a number (n,); rows are oldest first. A refund
    takes from rows of its own pair before it, the latest first. What it cannot take counts nothing:
    the purchase was before the log began.

    >>> what_is_left(np.array([0, 0, 0, 1]), np.array([2.0, 1.0, -2.0, -1.0]))
    (array([1., 0., 0., 0.]), 1)
    """
    left = np.maximum(weights, 0)
    unmatched = 0
    bought: dict[int, list[int]] = {}
    with_refunds = np.flatnonzero(np.isin(pairs, pairs[weights < 0]))
    for row, pair, weight in zip(
        with_refunds.tolist(),
        pairs[with_refunds].tolist(),
        weights[with_refunds].tolist(),
        strict=True,
    ):
        rows = bought.setdefault(pair, [])
        if weight > 0:
            rows.append(row)
            continue
        owed = -weight
        while rows and owed > 0:
            taken = min(owed, left[rows[-1]])
            left[rows[-1]] -= taken
            owed -= taken
            if left[rows[-1]] <= TOLERANCE * -weight:
                left[rows.pop()] = 0
        unmatched += int(owed > TOLERANCE * -weight)
    return left, unmatched
