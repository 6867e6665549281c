"""What lies between the products of matrices in `packed`, compiled: a pass each, in place."""

from __future__ import annotations

import numpy as np

from qkvsearch.attention.compiled_exp import exp_row
from qkvsearch.attention.layers.initializers import Array
from qkvsearch.compiled import compiled

ZERO, ONE, HALF, CLIP = np.float32(0), np.float32(1), np.float32(0.5), np.float32(4)
ROOT_HALF = np.float32(0.7071067811865476)
# erf(x) ≈ x · P(x²) / Q(x²) for |x| ≤ 4, to 3e-7: the coefficients of Eigen's `perf`, lowest first.
P0, P1, P2, P3, P4, P5, P6 = np.array(
    [-1.60960333262415e-02, -2.95459980854025e-03, -7.34990630326855e-04, -5.69250639462346e-05,
     -2.10102402082508e-06, 2.77068142495902e-08, -2.72614225801306e-10], np.float32,
)  # fmt: skip
Q0, Q1, Q2, Q3, Q4 = np.array(
    [-1.42647390514189e-02, -7.37332916720468e-03, -1.68282697438203e-03, -2.13374055278905e-04,
     -1.45660718464996e-05], np.float32,
)  # fmt: skip


@compiled
def add_gelu(x: Array, bias: Array) -> None:
    """x (n, d) = gelu(x + bias), in place."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            value = x[i, j] + bias[j]
            t = min(max(value * ROOT_HALF, -CLIP), CLIP)
            s = t * t
            p = P0 + s * (P1 + s * (P2 + s * (P3 + s * (P4 + s * (P5 + s * P6)))))
            q = Q0 + s * (Q1 + s * (Q2 + s * (Q3 + s * Q4)))
            x[i, j] = HALF * value * (ONE + t * (p / q))


@compiled
def softmax_rows(scores: Array, scale: np.float32, is_causal: bool) -> None:
    """scores (n · m, m), n squares below one another, = softmax(scale · scores) of each row, in
    place; `is_causal`: row i of a square sees its columns 0 … i alone, the others get 0."""
    m = scores.shape[1]
    for i in range(scores.shape[0]):
        n_seen = i % m + 1 if is_causal else m
        row = scores[i, :n_seen]
        top = row[0]
        for j in range(n_seen):
            top = max(top, row[j])
        for j in range(n_seen):
            row[j] = (row[j] - top) * scale
        factor = ONE / exp_row(row, ZERO)
        for j in range(n_seen):
            row[j] *= factor
        scores[i, n_seen:] = 0


@compiled
def add_norm(
    x: Array, added: Array, bias: Array, weight: Array, shift: Array, epsilon: np.float32
) -> None:
    """x (n, d) = the layer norm of x + added + bias, in place."""
    n, d = x.shape
    width = np.float32(d)
    for i in range(n):
        row, other = x[i], added[i]
        total = np.float32(0)
        for j in range(d):
            row[j] += other[j] + bias[j]
            total += row[j]
        mean = total / width
        squares = np.float32(0)
        for j in range(d):
            row[j] -= mean
            squares += row[j] * row[j]
        factor = ONE / np.sqrt(squares / width + epsilon)
        for j in range(d):
            row[j] = row[j] * factor * weight[j] + shift[j]
