"""The compiled training of `ImplicitALS`: conjugate gradient for one row after another. A user who
asks for recommendations is solved exactly in `user_vectors.py`.

`width` is a tuple of zeros; only its length matters. numba then knows the loop bound, LANES times
that length, at compile time, which makes the loops a fifth faster. Each width is compiled once.
Compiled functions release Python's lock (GIL), so threads run them in parallel.
"""

from typing import Any, NamedTuple

import numpy as np

from qkvsearch._utils.compiled import compiled, prefetch
from qkvsearch.models.pairs import Pairs

Array = np.ndarray[Any, Any]
Width = tuple[int, ...]

ZERO, ONE = np.float32(0), np.float32(1)
# Embeddings are padded with zeros to a multiple of this, which a processor multiplies at once.
LANES = 16
# Rows of a history that are multiplied at once.
ROWS_AT_ONCE = 4
# A history of more than MAX_GATHERED rows is gathered again for every step, PIECE rows at a time.
# Both are multiples of ROWS_AT_ONCE.
MAX_GATHERED, PIECE = 8192, 64
# How many rows ahead of its use an embedding is prefetched: about as long as memory takes.
AHEAD = 8
# Below this, what is left of the residual is rounding errors of float32: dividing by it would
# amplify them.
CONVERGED = np.float32(1e-20)


class Equations(NamedTuple):
    """What the equations of all rows have in common, and the ridge of each."""

    # float32 (d,): the diagonal of the term over all pairs.
    spectrum: Array
    # float32 (n_rows,)
    ridges: Array
    # float32 (n_others, d): the embeddings of the other side, which are held fixed.
    others: Array


def width_of(n_components: int) -> Width:
    """Return the width that holds so many components, in LANES.

    >>> len(width_of(5)), len(width_of(64)), len(width_of(300))
    (1, 4, 19)
    """
    return (0,) * -(-n_components // LANES)


@compiled
def dot(a: Array, b: Array, width: Width) -> np.float32:
    """Return a·b, of vectors (d,)."""
    total = ZERO
    for j in range(LANES * len(width)):
        total += a[j] * b[j]
    return total


@compiled
def round_up(n: int) -> int:
    """Return n, or the next multiple of ROWS_AT_ONCE above it."""
    return -(-n // ROWS_AT_ONCE) * ROWS_AT_ONCE


@compiled
def prefetch_row(others: Array, columns: Array, k: int, width: Width) -> None:
    """Prefetch the row that comes AHEAD rows after pair k."""
    ahead = columns[min(k + AHEAD, columns.shape[0] - 1)]
    for j in range(0, LANES * len(width), LANES):
        prefetch(others, ahead, j)


@compiled
def sqrt_confidence(confidences: Array, k: int) -> np.float32:
    """Return √c of pair k; `confidences` (1,) holds for all pairs."""
    return np.sqrt(confidences[min(k, confidences.shape[0] - 1)])


@compiled
def clear_padding(history: Array, n: int, width: Width) -> None:
    """Zero the rows after the n of a history, up to the next multiple of ROWS_AT_ONCE."""
    for k in range(n, round_up(n)):
        for j in range(LANES * len(width)):
            history[k, j] = ZERO


@compiled
def gather(
    others: Array, columns: Array, confidences: Array, first: int, history: Array, width: Width
) -> Array:
    """Fill `history` with √c·y of the pairs from `first` on, until it is full. Return the rows that
    were filled, and rows of zeros up to the next multiple of ROWS_AT_ONCE.
    """
    last = min(columns.shape[0], first + history.shape[0])
    for k in range(first, last):
        prefetch_row(others, columns, k, width)
        y, weight = others[columns[k]], sqrt_confidence(confidences, k)
        for j in range(LANES * len(width)):
            history[k - first, j] = weight * y[j]
    clear_padding(history, last - first, width)
    return history[: round_up(last - first)]


@compiled
def history_rows(
    others: Array, columns: Array, confidences: Array, first: int, history: Array, width: Width
) -> Array:
    """Return the rows of `history` for the pairs from `first` on; gather them again where not all
    fit.
    """
    if columns.shape[0] > history.shape[0]:
        return gather(others, columns, confidences, first, history, width)
    return history[: round_up(columns.shape[0])]


@compiled
def add_errors(
    history: Array,
    confidences: Array,
    first: int,
    x: Array,
    out: Array,
    squares: Array,
    width: Width,
) -> None:
    """Add historyᵀ (√c − history x) to `out`, for a history (h, d) of the pairs from `first` on, in
    one pass over it; and the columns' squared lengths to `squares`.
    """
    d = LANES * len(width)
    for k in range(0, history.shape[0], ROWS_AT_ONCE):
        y0, y1, y2, y3 = history[k], history[k + 1], history[k + 2], history[k + 3]
        s0 = s1 = s2 = s3 = ZERO
        for j in range(d):
            s0 += y0[j] * x[j]
            s1 += y1[j] * x[j]
            s2 += y2[j] * x[j]
            s3 += y3[j] * x[j]
            squares[j] += y0[j] * y0[j] + y1[j] * y1[j] + y2[j] * y2[j] + y3[j] * y3[j]
        # Padding rows get errors too, but are zero, so that they add nothing.
        e0 = sqrt_confidence(confidences, first + k) - s0
        e1 = sqrt_confidence(confidences, first + k + 1) - s1
        e2 = sqrt_confidence(confidences, first + k + 2) - s2
        e3 = sqrt_confidence(confidences, first + k + 3) - s3
        for j in range(d):
            out[j] += e0 * y0[j] + e1 * y1[j] + e2 * y2[j] + e3 * y3[j]


@compiled
def add_history(history: Array, vector: Array, out: Array, width: Width) -> None:
    """Add historyᵀ (history vector) to `out`, for a history (h, d), in one pass over it."""
    d = LANES * len(width)
    for k in range(0, history.shape[0], ROWS_AT_ONCE):
        y0, y1, y2, y3 = history[k], history[k + 1], history[k + 2], history[k + 3]
        s0 = s1 = s2 = s3 = ZERO
        for j in range(d):
            s0 += y0[j] * vector[j]
            s1 += y1[j] * vector[j]
            s2 += y2[j] * vector[j]
            s3 += y3[j] * vector[j]
        for j in range(d):
            out[j] += s0 * y0[j] + s1 * y1[j] + s2 * y2[j] + s3 * y3[j]


@compiled
def solve_row(
    others: Array,
    columns: Array,
    confidences: Array,
    spectrum: Array,
    ridge: np.float32,
    x: Array,
    history: Array,
    work: Array,
    steps: int,
    width: Width,
) -> None:
    """Take the steps of the preconditioned conjugate gradient for one row x, in place."""
    d, n, capacity = LANES * len(width), len(columns), len(history)
    residual, direction, product, penalty, inverse = work[0], work[1], work[2], work[3], work[4]
    # Loops, here and below: assigning slices would double the time to compile.
    for j in range(d):
        penalty[j] = inverse[j] = spectrum[j] + ridge
        residual[j] = -penalty[j] * x[j]
        direction[j] = ZERO
    for first in range(0, n, capacity):
        rows = gather(others, columns, confidences, first, history, width)
        add_errors(rows, confidences, first, x, residual, inverse, width)
    for j in range(d):
        inverse[j] = ONE / inverse[j]
    before = ONE  # any number: the first direction is 0
    for _ in range(steps):
        squared = ZERO
        for j in range(d):
            squared += residual[j] * residual[j] * inverse[j]
        if squared < CONVERGED:
            break
        ratio = squared / before
        for j in range(d):
            direction[j] = residual[j] * inverse[j] + ratio * direction[j]
            product[j] = penalty[j] * direction[j]
        for first in range(0, n, capacity):
            rows = history_rows(others, columns, confidences, first, history, width)
            add_history(rows, direction, product, width)
        step, before = squared / dot(direction, product, width), squared
        for j in range(d):
            x[j] += step * direction[j]
            residual[j] -= step * product[j]


@compiled
def solve_rows(
    rows: Array, pairs: Pairs, equations: Equations, solved: Array, steps: int, width: Width
) -> None:
    """Take a few conjugate gradient steps for each row x of `solved`, in place, from its present
    value.

    Solves (diag(spectrum) + Σ c·y yᵀ + ridge·I) x = Σ c·y, the sums over the row's pairs, each with
    a row y of `others` and a confidence c. The preconditioner is the matrix's diagonal (Jacobi).

    The √c·y are gathered once into `history`, small and contiguous, which every step reads again. A
    history longer than MAX_GATHERED is gathered for every step, since it would not stay in the
    cache.
    """
    starts, columns, confidences = pairs.starts, pairs.columns, pairs.confidences
    spectrum, ridges, others = equations.spectrum, equations.ridges, equations.others
    d, longest = LANES * len(width), 0
    for row in rows:
        longest = max(longest, starts[row + 1] - starts[row])
    history = np.empty((min(round_up(longest), MAX_GATHERED), d), np.float32)
    work = np.empty((5, d), np.float32)
    for row in rows:
        items = columns[starts[row] : starts[row + 1]]
        # One confidence for each pair, or the only one.
        last = min(starts[row + 1], confidences.shape[0])
        own = confidences[min(starts[row], last - 1) : last]
        buffer = history[: PIECE if len(items) > len(history) else len(history)]
        solve_row(
            others, items, own, spectrum, ridges[row], solved[row], buffer, work, steps, width
        )
