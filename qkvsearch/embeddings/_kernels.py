"""The compiled solver of the implicit model, made once for each width; it leaves the GIL to others.

`width` is a tuple of so many nothings: its length, times LANES, is known when the loops are
compiled, which makes them a fifth faster than loops up to a number that comes with the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qkvsearch.compiled import compiled

Array = np.ndarray[Any, Any]
Width = tuple[int, ...]

ZERO = np.float32(0)
# Embeddings are padded with zeros to a multiple of what a processor multiplies at once.
LANES = 16
# Above so many components, blocks of them are solved one after another.
WIDEST_BLOCK = 128
# Rows of a history that are gathered at a time; a multiple of the four taken at once.
MOST_GATHERED = 12288
# A squared residual this small is float32 noise: dividing by it would only spread it.
CONVERGED = np.float32(1e-20)


def blocks(n_components: int) -> tuple[int, Width]:
    """How many blocks of components, and the width of each.

    >>> blocks(64), [(n, LANES * len(width)) for n, width in (blocks(5), blocks(300), blocks(512))]
    ((1, (0, 0, 0, 0)), [(1, 16), (3, 112), (4, 128)])
    """
    n_blocks = -(-n_components // WIDEST_BLOCK)
    return n_blocks, (0,) * -(-n_components // (n_blocks * LANES))


@compiled
def dot(a: Array, b: Array, width: Width) -> np.float32:
    total = ZERO
    for j in range(LANES * len(width)):
        total += a[j] * b[j]
    return total


@compiled
def add_gram(gram: Array, vector: Array, first: int, start: int, out: Array, width: Width) -> None:
    """out += gram[first:first + len(vector), start:start + b]ᵀ vector, b being the width."""
    b = LANES * len(width)
    # Four rows at a time, so that one load and one store of `out` serve four products.
    for k in range(0, vector.shape[0], 4):
        row = first + k
        g0, g1 = gram[row, start : start + b], gram[row + 1, start : start + b]
        g2, g3 = gram[row + 2, start : start + b], gram[row + 3, start : start + b]
        v0, v1, v2, v3 = vector[k], vector[k + 1], vector[k + 2], vector[k + 3]
        for j in range(b):
            out[j] += v0 * g0[j] + v1 * g1[j] + v2 * g2[j] + v3 * g3[j]


@compiled
def add_history(history: Array, vector: Array, out: Array, width: Width) -> None:
    """out += historyᵀ (history vector), for a history (h, b), in one pass over it."""
    h, b = history.shape[0], LANES * len(width)
    for k in range(0, h - 3, 4):
        y0, y1, y2, y3 = history[k], history[k + 1], history[k + 2], history[k + 3]
        s0 = s1 = s2 = s3 = ZERO
        for j in range(b):
            s0 += y0[j] * vector[j]
            s1 += y1[j] * vector[j]
            s2 += y2[j] * vector[j]
            s3 += y3[j] * vector[j]
        for j in range(b):
            out[j] += s0 * y0[j] + s1 * y1[j] + s2 * y2[j] + s3 * y3[j]
    for k in range(h - h % 4, h):
        s = dot(history[k], vector, width)
        for j in range(b):
            out[j] += s * history[k, j]


@compiled
def begin(
    others: Array, columns: Array, confidences: Array, x: Array, errors: Array, width: Width
) -> None:
    """errors[k] = √c·(1 − y·x), without the first block's part of the product."""
    later = x[LANES * len(width) :]
    for k in range(columns.shape[0]):
        y = others[columns[k], LANES * len(width) :]
        rest = ZERO
        for j in range(later.shape[0]):
            rest += y[j] * later[j]
        errors[k] = np.sqrt(confidences[min(k, confidences.shape[0] - 1)]) * (np.float32(1) - rest)


@compiled
def gather(
    others: Array,
    columns: Array,
    confidences: Array,
    start: int,
    x: Array,
    history: Array,
    errors: Array,
    out: Array,
    width: Width,
) -> None:
    """history[k] = √c·y[start:start + b]; out += historyᵀ errors. The first block, at 0, takes its
    own part from the errors.
    """
    for k in range(columns.shape[0]):
        y = others[columns[k], start : start + LANES * len(width)]
        row = history[k]
        root = np.sqrt(confidences[min(k, confidences.shape[0] - 1)])
        score = ZERO
        for j in range(LANES * len(width)):
            row[j] = root * y[j]
            score += row[j] * x[j]
        if start == 0:
            errors[k] -= score
        error = errors[k]
        for j in range(LANES * len(width)):
            out[j] += error * row[j]


@compiled
def multiply_history(
    others: Array,
    columns: Array,
    confidences: Array,
    start: int,
    history: Array,
    vector: Array,
    out: Array,
    width: Width,
) -> None:
    """out += historyᵀ (history vector). A history longer than its place is gathered again, part
    by part.
    """
    n, at_once = len(columns), len(history)
    if n <= at_once:
        add_history(history[:n], vector, out, width)
        return
    for first in range(0, n, at_once):
        met = columns[first : first + at_once]
        for k in range(len(met)):
            y = others[met[k], start : start + LANES * len(width)]
            root = np.sqrt(confidences[min(first + k, confidences.shape[0] - 1)])
            for j in range(LANES * len(width)):
                history[k, j] = root * y[j]
        add_history(history[: len(met)], vector, out, width)


@compiled
def solve_block(
    others: Array,
    columns: Array,
    confidences: Array,
    gram: Array,
    ridge: np.float32,
    start: int,
    embedding: Array,
    errors: Array,
    history: Array,
    work: Array,
    steps: int,
    width: Width,
) -> None:
    """Conjugate gradient on one block of one row's embedding, in place; `errors` follow it."""
    b, n, at_once = LANES * len(width), len(columns), len(history)
    x = embedding[start : start + b]
    residual, direction, product, moved = work[0], work[1], work[2], work[3]
    # Number by number, here and below: assigning slices would double the time to compile.
    for j in range(b):
        product[j] = ridge * x[j]
        residual[j] = moved[j] = ZERO
    add_gram(gram, embedding, 0, start, product, width)
    for first in range(0, n, at_once):
        last = min(n, first + at_once)
        own = confidences[min(first, confidences.shape[0] - 1) : last]
        part = columns[first:last], own, start, x, history, errors[first:last]
        gather(others, *part, residual, width)
    for j in range(b):
        residual[j] -= product[j]
        direction[j] = residual[j]
    squared = dot(residual, residual, width)
    for _ in range(steps):
        if squared < CONVERGED:
            break
        for j in range(b):
            product[j] = ridge * direction[j]
        add_gram(gram, direction, start, start, product, width)
        multiply_history(others, columns, confidences, start, history, direction, product, width)
        step = squared / dot(direction, product, width)
        for j in range(b):
            moved[j] += step * direction[j]
            residual[j] -= step * product[j]
        before, squared = squared, dot(residual, residual, width)
        for j in range(b):
            direction[j] = residual[j] + squared / before * direction[j]
    for j in range(b):
        x[j] += moved[j]
    if start + b < embedding.shape[0]:
        for k in range(n):
            y = others[columns[k], start : start + b]
            root = np.sqrt(confidences[min(k, confidences.shape[0] - 1)])
            errors[k] -= root * dot(y, moved, width)


@compiled
def solve_rows(
    rows: Array,
    indptr: Array,
    columns: Array,
    confidences: Array,
    gram: Array,
    ridges: Array,
    others: Array,
    solved: Array,
    steps: int,
    width: Width,
) -> None:
    """Conjugate gradient on each row x of `solved`, in place, from where it stands.

    Solves (gram + Σ c·y yᵀ + ridge·I) x = Σ c·y, the sums over the row's pairs: `columns` name the
    rows y of `others`, `confidences` are c (one for all where there is only one). Block by block of
    components, the others held fixed: `errors` are √c·(1 − y·x) as x stands. The √c·y of a block
    are gathered once into `history`, small and contiguous, which every step reads again; what is
    longer than MOST_GATHERED is gathered part by part, since it would not stay near the processor.
    """
    d, b = others.shape[1], LANES * len(width)
    longest = 0
    for row in rows:
        longest = max(longest, indptr[row + 1] - indptr[row])
    history = np.empty((min(longest, MOST_GATHERED), b), np.float32)
    all_errors, work = np.empty(longest, np.float32), np.empty((4, b), np.float32)
    for row in rows:
        met = columns[indptr[row] : indptr[row + 1]]
        last = min(indptr[row + 1], confidences.shape[0])
        own = confidences[min(indptr[row], last - 1) : last]
        errors, embedding = all_errors[: len(met)], solved[row]
        begin(others, met, own, embedding, errors, width)
        for start in range(0, d, b):
            solve_block(
                others, met, own, gram, ridges[row], start, embedding, errors, history, work,
                steps, width,
            )  # fmt: skip
