"""Positions: where in the text a token stands, as a vector to add to the token's own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.layers.basic import Table
from qkvsearch.attention.layers.initializers import Array


def sinusoidal_positions(n: int, d: int, dtype: npt.DTypeLike = np.float32) -> Array:
    """Sines (even columns) and cosines (odd ones) of the position, each pair of columns slower.

    -> (n, d): sin(i / 10000^(2j/d)) in column 2j, the cosine in column 2j + 1; an odd d ends in a
    sine. Vaswani et al. 2017, section 3.5.

    >>> sinusoidal_positions(2, 4).round(2)
    array([[0.  , 1.  , 0.  , 1.  ],
           [0.84, 0.54, 0.01, 1.  ]], dtype=float32)
    """
    angles = np.arange(n)[:, None] / 10000.0 ** (np.arange(0, d, 2) / max(d, 1))
    positions = np.empty((n, d), dtype)
    positions[:, 0::2] = np.sin(angles)
    positions[:, 1::2] = np.cos(angles[:, : d // 2])
    return positions


class LearnedPositions(Table):
    """A learned vector for each position, added to the token there.

    weight (n, d); x (..., L, d) -> (..., L, d). places: int (L,), the position of each token, by
    default 0 … L − 1. Raises ValueError where L is above n, or the width of x is not d.
    Gehring et al. 2017, section 3.1; Devlin et al. 2019 (BERT), section 3.

    >>> LearnedPositions(np.array([[0.5], [0.0]]))(np.ones((2, 1)))
    array([[1.5],
           [1. ]])
    """

    def __call__(self, x: Array, places: Array | None = None) -> Array:
        (n, d), length = self.weight.shape, x.shape[-2]
        if x.shape[-1] != d:
            raise ValueError(f"a weight (n, d) = {(n, d)} does not fit x {x.shape}")
        if places is not None:
            return x + self.weight[places]
        if length > n:
            raise ValueError(f"a text of {length} tokens is longer than the {n} positions learned")
        return x + self.weight[:length]
