"""The compiled solver of the implicit model, made once for each width; it leaves the GIL to others.

`width` is a tuple of so many nothings: its length, times LANES, is known when the loops are
compiled, which makes them a fifth faster than loops up to a number that comes with the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qkvsearch.compiled import compiled, prefetch

Array = np.ndarray[Any, Any]
Width = tuple[int, ...]

ZERO, ONE = np.float32(0), np.float32(1)
# Embeddings are padded with zeros to a multiple of what a processor multiplies at once.
LANES = 16
# Above so many components, blocks of them are solved one after another.
WIDEST_BLOCK = 128
# Rows of a history that are multiplied at once.
AT_ONCE = 4
# A history of more rows is gathered anew for every step, piece by piece; multiples of AT_ONCE.
MOST_KEPT, PIECE = 8192, 64
# An embedding is asked for so many rows before its turn, since memory takes about so long.
AHEAD = 8
# So little of the objective left to gain is float32 noise: dividing by it would only spread it.
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
def rounded(n: int) -> int:
    """The next number of rows, n or above, that can be taken AT_ONCE."""
    return -(-n // AT_ONCE) * AT_ONCE


@compiled
def ask_ahead(others: Array, columns: Array, k: int, start: int, stop: int) -> None:
    ahead = columns[min(k + AHEAD, columns.shape[0] - 1)]
    for j in range(start, stop, LANES):
        prefetch(others, ahead, j)


@compiled
def root(confidences: Array, k: int) -> np.float32:
    """√c of a row's pair k; `confidences` hold a single one where all are equal."""
    return np.sqrt(confidences[min(k, confidences.shape[0] - 1)])


@compiled
def clear(history: Array, n: int, width: Width) -> None:
    """Zeros after the n rows of a history, so that they can be taken AT_ONCE."""
    for k in range(n, rounded(n)):
        for j in range(LANES * len(width)):
            history[k, j] = ZERO


@compiled
def begin(
    others: Array, columns: Array, confidences: Array, x: Array, errors: Array, width: Width
) -> None:
    """errors[k] = √c·(1 − y·x), without the first block's part of the product."""
    first, d = LANES * len(width), x.shape[0]
    later = x[first:]
    for k in range(columns.shape[0]):
        ask_ahead(others, columns, k, first, d)
        y = others[columns[k], first:]
        rest = ZERO
        for j in range(later.shape[0]):
            rest += y[j] * later[j]
        errors[k] = root(confidences, k) * (ONE - rest)


@compiled
def gather(
    others: Array,
    columns: Array,
    confidences: Array,
    first: int,
    start: int,
    x: Array,
    history: Array,
    errors: Array,
    out: Array,
    squares: Array,
    width: Width,
) -> None:
    """The pairs from `first` on, as many as there is room for: history[k] = √c·y[start:start + b];
    out += historyᵀ errors; squares += the history's squares. The first block, at 0, takes its own
    part from the errors.
    """
    b, last = LANES * len(width), min(columns.shape[0], first + history.shape[0])
    for k in range(first, last):
        ask_ahead(others, columns, k, start, start + b)
        y, row = others[columns[k], start : start + b], history[k - first]
        weight, score = root(confidences, k), ZERO
        for j in range(b):
            row[j] = weight * y[j]
            score += row[j] * x[j]
            squares[j] += row[j] * row[j]
        if start == 0:
            errors[k] -= score
        error = errors[k]
        for j in range(b):
            out[j] += error * row[j]
    clear(history, last - first, width)


@compiled
def kept(
    others: Array,
    columns: Array,
    confidences: Array,
    first: int,
    start: int,
    history: Array,
    width: Width,
) -> Array:
    """The history from `first` on, as much as there is room for: gathered again unless all is."""
    b, last = LANES * len(width), min(columns.shape[0], first + history.shape[0])
    if columns.shape[0] > history.shape[0]:
        for k in range(first, last):
            ask_ahead(others, columns, k, start, start + b)
            y, weight = others[columns[k], start : start + b], root(confidences, k)
            for j in range(b):
                history[k - first, j] = weight * y[j]
        clear(history, last - first, width)
    return history[: rounded(last - first)]


@compiled
def add_history(history: Array, vector: Array, out: Array, width: Width) -> None:
    """out += historyᵀ (history vector), for a history (h, b), in one pass over it."""
    b = LANES * len(width)
    for k in range(0, history.shape[0], AT_ONCE):
        y0, y1, y2, y3 = history[k], history[k + 1], history[k + 2], history[k + 3]
        s0 = s1 = s2 = s3 = ZERO
        for j in range(b):
            s0 += y0[j] * vector[j]
            s1 += y1[j] * vector[j]
            s2 += y2[j] * vector[j]
            s3 += y3[j] * vector[j]
        for j in range(b):
            out[j] += s0 * y0[j] + s1 * y1[j] + s2 * y2[j] + s3 * y3[j]


@compiled
def follow(
    others: Array,
    columns: Array,
    confidences: Array,
    start: int,
    moved: Array,
    history: Array,
    errors: Array,
    width: Width,
) -> None:
    """errors −= history moved, for the blocks that come after this one."""
    n, room = len(columns), len(history)
    for first in range(0, n, room):
        part = kept(others, columns, confidences, first, start, history, width)
        for k in range(min(room, n - first)):
            errors[first + k] -= dot(part[k], moved, width)


@compiled
def solve_block(
    others: Array,
    columns: Array,
    confidences: Array,
    spectrum: Array,
    ridge: np.float32,
    start: int,
    x: Array,
    errors: Array,
    history: Array,
    work: Array,
    steps: int,
    width: Width,
) -> None:
    """Preconditioned conjugate gradient on one block x of a row, in place; `errors` follow it."""
    b, n, room = LANES * len(width), len(columns), len(history)
    residual, direction, product = work[0], work[1], work[2]
    moved, penalty, inverse = work[3], work[4], work[5]
    # Number by number, here and below: assigning slices would double the time to compile.
    for j in range(b):
        penalty[j] = inverse[j] = spectrum[j] + ridge
        residual[j] = -penalty[j] * x[j]
        moved[j] = direction[j] = ZERO
    for first in range(0, n, room):
        gather(
            others, columns, confidences, first, start, x, history, errors, residual, inverse, width
        )
    for j in range(b):
        inverse[j] = ONE / inverse[j]
    before = ONE  # of no account: there is no direction yet
    for _ in range(steps):
        squared = ZERO
        for j in range(b):
            squared += residual[j] * residual[j] * inverse[j]
        if squared < CONVERGED:
            break
        turn = squared / before
        for j in range(b):
            direction[j] = residual[j] * inverse[j] + turn * direction[j]
            product[j] = penalty[j] * direction[j]
        for first in range(0, n, room):
            part = kept(others, columns, confidences, first, start, history, width)
            add_history(part, direction, product, width)
        step, before = squared / dot(direction, product, width), squared
        for j in range(b):
            moved[j] += step * direction[j]
            residual[j] -= step * product[j]
    for j in range(b):
        x[j] += moved[j]
    if start + b < others.shape[1]:
        follow(others, columns, confidences, start, moved, history, errors, width)


@compiled
def solve_rows(
    rows: Array,
    indptr: Array,
    columns: Array,
    confidences: Array,
    spectrum: Array,
    ridges: Array,
    others: Array,
    solved: Array,
    steps: int,
    width: Width,
) -> None:
    """Conjugate gradient on each row x of `solved`, in place, from where it stands.

    Solves (diag(spectrum) + Σ c·y yᵀ + ridge·I) x = Σ c·y, the sums over the row's pairs: `columns`
    name the rows y of `others`, `confidences` are c (one for all where there is only one). Block by
    block of components, the others held fixed: `errors` are √c·(1 − y·x) as x stands. The matrix's
    diagonal is the preconditioner (Jacobi). The √c·y of a block are gathered once into `history`,
    small and contiguous, which every step reads again; what is longer than MOST_KEPT is gathered
    again instead, since it would not stay near the processor.
    """
    b, longest = LANES * len(width), 0
    for row in rows:
        longest = max(longest, indptr[row + 1] - indptr[row])
    history = np.empty((min(rounded(longest), MOST_KEPT), b), np.float32)
    all_errors, work = np.empty(longest, np.float32), np.empty((6, b), np.float32)
    for row in rows:
        met = columns[indptr[row] : indptr[row + 1]]
        last = min(indptr[row + 1], confidences.shape[0])
        own = confidences[min(indptr[row], last - 1) : last]
        place = history[: PIECE if len(met) > len(history) else len(history)]
        errors = all_errors[: len(met)]
        begin(others, met, own, solved[row], errors, width)
        for start in range(0, others.shape[1], b):
            solve_block(
                others, met, own, spectrum[start : start + b], ridges[row], start,
                solved[row, start : start + b], errors, place, work, steps, width,
            )  # fmt: skip
