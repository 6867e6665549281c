"""Weights to start from: random, at a size that keeps signals alive through many layers.

Each takes a shape (d_out, d_in), as a `Linear` keeps its weight: fan_in = d_in is the last axis,
fan_out = d_out the first. `rng` is a NumPy generator or a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Rng = np.random.Generator | int
Initializer = Callable[[Shape, Rng], Array]


def gaussian(shape: Shape, rng: Rng, deviation: float = 0.02) -> Array:
    """Normal, of a deviation that does not depend on the shape.

    Any shape. 0.02 as in Radford et al. 2018 (GPT), section 4.1.

    >>> gaussian((2, 3), rng=0).round(3)
    array([[ 0.003, -0.003,  0.013],
           [ 0.002, -0.011,  0.007]])
    """
    return np.random.default_rng(rng).normal(0, deviation, shape)


def xavier_normal(shape: Shape, rng: Rng) -> Array:
    """Normal, of variance 2 / (fan_in + fan_out): for tanh, and for layers without activation.

    (d_out, d_in). Raises ValueError for another number of axes.
    Glorot & Bengio 2010, section 4.2.1, equation 12.

    >>> round(float(xavier_normal((300, 400), rng=0).var()), 4), round(2 / 700, 4)
    (0.0029, 0.0029)
    """
    fan_in, fan_out = fans(shape)
    return gaussian(shape, rng, np.sqrt(2 / (fan_in + fan_out)))


def xavier_uniform(shape: Shape, rng: Rng) -> Array:
    """Uniform, of variance 2 / (fan_in + fan_out): within ±√(6 / (fan_in + fan_out)).

    (d_out, d_in). Raises ValueError for another number of axes.
    Glorot & Bengio 2010, section 4.2.1, equation 16.

    >>> round(float(xavier_uniform((300, 300), rng=0).max()), 3)
    0.1
    """
    fan_in, fan_out = fans(shape)
    return _uniform(shape, rng, 2 / (fan_in + fan_out))


def kaiming_normal(shape: Shape, rng: Rng) -> Array:
    """Normal, of variance 2 / fan_in: for layers before a ReLU, which halves the variance.

    (d_out, d_in). Raises ValueError for another number of axes.
    He et al. 2015, section 2.2, equation 10.

    >>> round(float(kaiming_normal((300, 400), rng=0).var()), 4), 2 / 400
    (0.005, 0.005)
    """
    fan_in, _ = fans(shape)
    return gaussian(shape, rng, np.sqrt(2 / fan_in))


def kaiming_uniform(shape: Shape, rng: Rng) -> Array:
    """Uniform, of variance 2 / fan_in: within ±√(6 / fan_in).

    (d_out, d_in). Raises ValueError for another number of axes.
    He et al. 2015, section 2.2, equation 10.

    >>> round(float(kaiming_uniform((300, 600), rng=0).max()), 3)
    0.1
    """
    fan_in, _ = fans(shape)
    return _uniform(shape, rng, 2 / fan_in)


def fans(shape: Shape) -> tuple[int, int]:
    """How many inputs an output sums over, and how many outputs an input feeds.

    (d_out, d_in) -> (fan_in, fan_out). Raises ValueError for another number of axes, or none.

    >>> fans((3, 4))
    (4, 3)
    """
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"fans are those of a weight (d_out, d_in), got shape {shape}")
    d_out, d_in = shape
    return d_in, d_out


def _uniform(shape: Shape, rng: Rng, variance: float) -> Array:
    """Uniform around 0; between ±bound the variance is bound² / 3."""
    bound = np.sqrt(3 * variance)
    return np.random.default_rng(rng).uniform(-bound, bound, shape)
