"""GELU in float32 by a rational approximation of erf, in NumPy: what is compiled, and SciPy, take
longer to import than a text to encode. The compiled pass has the same coefficients.
"""

from __future__ import annotations

import math

import numpy as np

from qkvsearch.attention.array_api import Array

ROOT_HALF = np.float32(math.sqrt(0.5))
# erf(x) ≈ x · P(x²) / Q(x²) for |x| ≤ 4, to 3e-7: the coefficients of Eigen's `perf`, lowest first.
CLIP = np.float32(4)
P = np.array(
    [-1.60960333262415e-02, -2.95459980854025e-03, -7.34990630326855e-04, -5.69250639462346e-05,
     -2.10102402082508e-06, 2.77068142495902e-08, -2.72614225801306e-10], np.float32,
)  # fmt: skip
Q = np.array(
    [-1.42647390514189e-02, -7.37332916720468e-03, -1.68282697438203e-03, -2.13374055278905e-04,
     -1.45660718464996e-05], np.float32,
)  # fmt: skip


def gelu_in_place(x: Array) -> None:
    """x = ½x (1 + erf(x / √2)), float32 of any shape, to 3e-7 · max(1, |x|).

    >>> x = np.array([-1.0, 0.0, 1.0], np.float32)
    >>> gelu_in_place(x)
    >>> x.round(4)
    array([-0.1587,  0.    ,  0.8413], dtype=float32)
    """
    t = np.clip(x * ROOT_HALF, -CLIP, CLIP)
    s = t * t
    t *= _polynomial(P, s)
    t /= _polynomial(Q, s)
    t += np.float32(1)
    t *= np.float32(0.5)
    x *= t


def _polynomial(coefficients: Array, s: Array) -> Array:
    """Horner's rule, the lowest coefficient first."""
    value = s * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= s
    value += coefficients[0]
    return value
