"""Positions: where in the text a token stands, as a vector to add to the token's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.layers.initializers import Array, Initializer, Rng, gaussian


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


@dataclass(eq=False)
class LearnedPositions:
    """A learned vector for each position, added to the token there.

    weight (n, d); x (..., L, d) -> (..., L, d). Raises ValueError where L is above n, or the width
    of x is not d.
    Gehring et al. 2017, section 3.1; Devlin et al. 2019 (BERT), section 3.

    >>> LearnedPositions(np.array([[0.5], [0.0]]))(np.ones((2, 1)))
    array([[1.5],
           [1. ]])
    """

    weight: Array

    @classmethod
    def create(
        cls,
        n: int,
        d: int,
        rng: Rng,
        *,
        initializer: Initializer = gaussian,
        dtype: npt.DTypeLike = np.float32,
    ) -> LearnedPositions:
        """A random table.

        >>> LearnedPositions.create(512, 8, rng=0)(np.ones((2, 5, 8))).shape
        (2, 5, 8)
        """
        return cls(initializer((n, d), rng).astype(dtype, copy=False))

    def __call__(self, x: Array) -> Array:
        (n, d), length = self.weight.shape, x.shape[-2]
        if x.shape[-1] != d:
            raise ValueError(f"a weight (n, d) = {(n, d)} does not fit x {x.shape}")
        if length > n:
            raise ValueError(f"a text of {length} tokens is longer than the {n} positions learned")
        return x + self.weight[:length]
