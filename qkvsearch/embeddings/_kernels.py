"""The compiled inner loops of the collaborative models; they release the GIL for threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from qkvsearch.compiled import compiled

Array = np.ndarray[Any, Any]

ZERO = np.float32(0)
# A squared residual this small is float32 noise: dividing by it would only spread it.
CONVERGED = np.float32(1e-20)


@compiled
def dot(a: Array, b: Array) -> np.float32:
    total = ZERO
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@compiled
def multiply_gram(gram: Array, ridge: np.float32, vector: Array, out: Array) -> None:
    """out = (gram + ridge·I) vector, for a symmetric gram (d, d)."""
    d = vector.shape[0]
    for j in range(d):
        out[j] = ridge * vector[j]
    # Four rows at a time, so that one load and one store of `out` serve four products.
    for k in range(0, d - 3, 4):
        g0, g1, g2, g3 = gram[k], gram[k + 1], gram[k + 2], gram[k + 3]
        v0, v1, v2, v3 = vector[k], vector[k + 1], vector[k + 2], vector[k + 3]
        for j in range(d):
            out[j] += v0 * g0[j] + v1 * g1[j] + v2 * g2[j] + v3 * g3[j]
    for k in range(d - d % 4, d):
        for j in range(d):
            out[j] += vector[k] * gram[k, j]


@compiled
def add_history(history: Array, vector: Array, out: Array) -> None:
    """out += historyᵀ (history vector), for a history (h, d), in one pass over it."""
    h, d = history.shape
    for k in range(0, h - 3, 4):
        y0, y1, y2, y3 = history[k], history[k + 1], history[k + 2], history[k + 3]
        s0 = s1 = s2 = s3 = ZERO
        for j in range(d):
            s0 += y0[j] * vector[j]
            s1 += y1[j] * vector[j]
            s2 += y2[j] * vector[j]
            s3 += y3[j] * vector[j]
        for j in range(d):
            out[j] += s0 * y0[j] + s1 * y1[j] + s2 * y2[j] + s3 * y3[j]
    for k in range(h - h % 4, h):
        s = dot(history[k], vector)
        for j in range(d):
            out[j] += s * history[k, j]


@compiled
def gather(
    others: Array, columns: Array, roots: Array, x: Array, history: Array, out: Array
) -> None:
    """history[k] = √c·y of each pair; out += historyᵀ (√c − history x), row by row."""
    for k in range(columns.shape[0]):
        y = others[columns[k]]
        row = history[k]
        score = ZERO
        for j in range(y.shape[0]):
            row[j] = roots[k] * y[j]
            score += row[j] * x[j]
        error = roots[k] - score
        for j in range(y.shape[0]):
            out[j] += error * row[j]


@compiled
def solve_rows(
    rows: Array,
    indptr: Array,
    columns: Array,
    roots: Array,
    gram: Array,
    ridges: Array,
    others: Array,
    solved: Array,
    steps: int,
) -> None:
    """Conjugate gradient on each row x of `solved`, in place, from where it stands.

    Solves (gram + Σ c·y yᵀ + ridge·I) x = Σ c·y, the sums over the row's pairs: `columns` name the
    rows y of `others`, `roots` are √c. The √c·y are gathered once into `history`, small and
    contiguous, which every step reads again.
    """
    d = others.shape[1]
    longest = 0
    for row in rows:
        longest = max(longest, indptr[row + 1] - indptr[row])
    buffer = np.empty((longest, d), np.float32)
    residual = np.empty(d, np.float32)
    direction = np.empty(d, np.float32)
    product = np.empty(d, np.float32)
    for row in rows:
        start, end = indptr[row], indptr[row + 1]
        history, ridge, x = buffer[: end - start], ridges[row], solved[row]
        multiply_gram(gram, ridge, x, product)
        for j in range(d):
            residual[j] = -product[j]
        gather(others, columns[start:end], roots[start:end], x, history, residual)
        # Number by number: assigning the slice would double the time to compile.
        for j in range(d):
            direction[j] = residual[j]
        squared = dot(residual, residual)
        for _ in range(steps):
            if squared < CONVERGED:
                break
            multiply_gram(gram, ridge, direction, product)
            add_history(history, direction, product)
            step = squared / dot(direction, product)
            for j in range(d):
                x[j] += step * direction[j]
                residual[j] -= step * product[j]
            before, squared = squared, dot(residual, residual)
            for j in range(d):
                direction[j] = residual[j] + squared / before * direction[j]


@compiled
def descend(
    order: Array,
    indptr: Array,
    columns: Array,
    targets: Array,
    user_biases: Array,
    item_biases: Array,
    user_embeddings: Array,
    item_embeddings: Array,
    rate: np.float32,
    reg: np.float32,
) -> None:
    """One epoch of stochastic gradient descent, in place: all ratings of the users in `order`.

    Each rating pulls its own two biases and two vectors: x += rate·(error·∂r̂/∂x − reg·x).
    """
    kept = np.float32(1) - rate * reg
    for user in order:
        p = user_embeddings[user]
        for k in range(indptr[user], indptr[user + 1]):
            item = columns[k]
            q = item_embeddings[item]
            error = targets[k] - user_biases[user] - item_biases[item] - dot(p, q)
            pull = rate * error
            user_biases[user] = kept * user_biases[user] + pull
            item_biases[item] = kept * item_biases[item] + pull
            for j in range(p.shape[0]):
                before = p[j]
                p[j] = kept * before + pull * q[j]
                q[j] = kept * q[j] + pull * before
