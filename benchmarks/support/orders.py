"""How well two orders agree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np


def kendall_tau(right: Sequence[float], other: Sequence[float], *, ties: bool = False) -> float:
    """Return the share of pairs in the same order less that in the other one.

    ties: also count the pairs that the right order does not tell apart, as in neither order.

    >>> kendall_tau([3, 2, 1], [3, 1, 2]), kendall_tau([1, 1, 0], [1, 0, -1], ties=True)
    (0.3333333333333333, 0.6666666666666666)
    """
    signs = [
        np.sign(right[a] - right[b]) * np.sign(other[a] - other[b])
        for a, b in combinations(range(len(right)), 2)
        if ties or right[a] != right[b]
    ]
    return float(np.mean(signs))
