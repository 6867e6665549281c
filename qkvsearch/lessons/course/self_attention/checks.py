"""Lesson 7, what its steps are compared with: one by one, a bias, wider values."""

from __future__ import annotations

import numpy as np

from qkvsearch.attention import attention
from qkvsearch.attention.layers.initializers import gaussian, kaiming_normal, xavier_normal
from qkvsearch.attention.trace import Trace, project

# Matrices drawn, to see how far their numbers spread.
SAMPLES = 4_000
# Columns that a wider W_V has more.
MORE = 2


def spreads(shape: tuple[int, int]) -> list[tuple[str, float, float]]:
    """Initialisers by name, with the variance that they aim at and that of many draws."""
    fan_out, fan_in = shape
    drawn = {
        "Gaussian": (gaussian, 0.02**2),
        "Xavier": (xavier_normal, 2 / (fan_in + fan_out)),
        "Kaiming": (kaiming_normal, 2 / fan_in),
    }
    rng = np.random.default_rng(0)
    return [
        (name, wanted, float(np.var([start(shape, rng) for _ in range(SAMPLES)])))
        for name, (start, wanted) in drawn.items()
    ]


def projected_singly(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x·W, a row at a time.

    x (n, d_in), weight (d_in, d) -> (n, d).
    """
    return np.array([project(row[None], weight)[0] for row in x])


def biased(x: np.ndarray, weight: np.ndarray, bias: float) -> np.ndarray:
    """x·W + b, where every number of b is `bias`."""
    return project(x, weight, np.full((1, weight.shape[1]), bias))


def wider(w_value: np.ndarray) -> np.ndarray:
    """The matrix with `MORE` columns, which repeat its own.

    >>> wider(np.array([[1.0, 2.0, 3.0]]))
    array([[1., 2., 3., 1., 2.]])
    """
    return np.tile(w_value, 1 + MORE)[:, : w_value.shape[1] + MORE]


def attended_singly(steps: Trace, scale: float | None) -> np.ndarray:
    """The outputs (n, dv), a query at a time, under the mask that the trace had."""
    keys, values = steps["keys"].array, steps["values"].array
    visible = np.asarray(steps["masked"].array) > -np.inf
    return np.array(
        [
            attention(query[None], keys, values, mask=row[None], scale=scale)[0]
            for query, row in zip(steps["queries"].array, visible, strict=True)
        ]
    )
