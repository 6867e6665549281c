"""The compiled training of `ImplicitALS`: conjugate gradient for one row after another. A user who
asks for recommendations is solved exactly in `user_vectors.py`.

`width` is a tuple of zeros; only its length matters. numba then knows the loop
bound, LANES times that length, at compile time, which makes the loops a fifth faster. Each width is
compiled once. Compiled functions release Python's lock (GIL), so threads run them in parallel.
"""

from typing import Any

import numpy as np

from qkvsearch._utils.compiled import compiled, prefetch

Array = np.ndarray[Any, Any]
Width = tuple[int, ...]

ZERO, ONE = np.float32(0), np.float32(1)
# Embeddings are padded with zeros to a multiple of this, which a processor multiplies at once.
LANES = 16
# More components than this are solved in blocks, one after another.
WIDEST_BLOCK = 128
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


def blocks(n_components: int) -> tuple[int, Width]:
    """The number of blocks of components, and the width of each.

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
def round_up(n: int) -> int:
    """n, or the next multiple of ROWS_AT_ONCE above it."""
    return -(-n // ROWS_AT_ONCE) * ROWS_AT_ONCE


@compiled
def prefetch_row(others: Array, columns: Array, k: int, start: int, stop: int) -> None:
    """Prefetch components start to stop of the row that comes AHEAD rows after pair k."""
    ahead = columns[min(k + AHEAD, columns.shape[0] - 1)]
    for j in range(start, stop, LANES):
        prefetch(others, ahead, j)


@compiled
def sqrt_confidence(confidences: Array, k: int) -> np.float32:
    """√c of pair k; `confidences` (1,) holds for all pairs."""
    return np.sqrt(confidences[min(k, confidences.shape[0] - 1)])


@compiled
def clear_padding(history: Array, n: int, width: Width) -> None:
    """Zero the rows after the n of a history, up to the next multiple of ROWS_AT_ONCE."""
    for k in range(n, round_up(n)):
        for j in range(LANES * len(width)):
            history[k, j] = ZERO


@compiled
def initial_errors(
    others: Array, columns: Array, confidences: Array, x: Array, errors: Array, width: Width
) -> None:
    """errors[k] = √c·(1 − y·x), y·x without the first block's components; 0 for padding, where it
    is multiplied by rows of zeros.
    """
    first, d = LANES * len(width), x.shape[0]
    rest_of_x = x[first:]
    for k in range(columns.shape[0]):
        prefetch_row(others, columns, k, first, d)
        y = others[columns[k], first:]
        rest = ZERO
        for j in range(rest_of_x.shape[0]):
            rest += y[j] * rest_of_x[j]
        errors[k] = sqrt_confidence(confidences, k) * (ONE - rest)
    for k in range(columns.shape[0], errors.shape[0]):
        errors[k] = ZERO


@compiled
def gather(
    others: Array,
    columns: Array,
    confidences: Array,
    first: int,
    start: int,
    history: Array,
    width: Width,
) -> Array:
    """Fill `history` with √c·y[start:start + b] of the pairs from `first` on, until it is full; the
    rows that it took, and of zeros up to the next multiple of ROWS_AT_ONCE.
    """
    b, last = LANES * len(width), min(columns.shape[0], first + history.shape[0])
    for k in range(first, last):
        prefetch_row(others, columns, k, start, start + b)
        y, weight = others[columns[k], start : start + b], sqrt_confidence(confidences, k)
        for j in range(b):
            history[k - first, j] = weight * y[j]
    clear_padding(history, last - first, width)
    return history[: round_up(last - first)]


@compiled
def history_rows(
    others: Array,
    columns: Array,
    confidences: Array,
    first: int,
    start: int,
    history: Array,
    width: Width,
) -> Array:
    """The rows of `history` for the pairs from `first` on; gathered again where not all fit."""
    if columns.shape[0] > history.shape[0]:
        return gather(others, columns, confidences, first, start, history, width)
    return history[: round_up(columns.shape[0])]


@compiled
def add_errors(
    history: Array, errors: Array, x: Array, out: Array, squares: Array, width: Width
) -> None:
    """out += historyᵀ (errors − history x), for a history (h, b), in one pass over it; the errors
    lose history x, and the columns' squared lengths are added to `squares`.
    """
    b = LANES * len(width)
    for k in range(0, history.shape[0], ROWS_AT_ONCE):
        y0, y1, y2, y3 = history[k], history[k + 1], history[k + 2], history[k + 3]
        s0 = s1 = s2 = s3 = ZERO
        for j in range(b):
            s0 += y0[j] * x[j]
            s1 += y1[j] * x[j]
            s2 += y2[j] * x[j]
            s3 += y3[j] * x[j]
            squares[j] += y0[j] * y0[j] + y1[j] * y1[j] + y2[j] * y2[j] + y3[j] * y3[j]
        e0, e1, e2, e3 = errors[k] - s0, errors[k + 1] - s1, errors[k + 2] - s2, errors[k + 3] - s3
        errors[k], errors[k + 1], errors[k + 2], errors[k + 3] = e0, e1, e2, e3
        for j in range(b):
            out[j] += e0 * y0[j] + e1 * y1[j] + e2 * y2[j] + e3 * y3[j]


@compiled
def add_history(history: Array, vector: Array, out: Array, width: Width) -> None:
    """out += historyᵀ (history vector), for a history (h, b), in one pass over it."""
    b = LANES * len(width)
    for k in range(0, history.shape[0], ROWS_AT_ONCE):
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
def update_errors(
    others: Array,
    columns: Array,
    confidences: Array,
    start: int,
    change: Array,
    history: Array,
    errors: Array,
    width: Width,
) -> None:
    """errors −= history·change, so that the next blocks see what this one changed."""
    n, capacity = len(columns), len(history)
    for first in range(0, n, capacity):
        block_rows = history_rows(others, columns, confidences, first, start, history, width)
        for k in range(min(capacity, n - first)):
            errors[first + k] -= dot(block_rows[k], change, width)


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
    """Preconditioned conjugate gradient on one block x of a row, in place; updates `errors` too."""
    b, n, capacity = LANES * len(width), len(columns), len(history)
    residual, direction, product = work[0], work[1], work[2]
    change, penalty, inverse = work[3], work[4], work[5]
    # Loops, here and below: assigning slices would double the time to compile.
    for j in range(b):
        penalty[j] = inverse[j] = spectrum[j] + ridge
        residual[j] = -penalty[j] * x[j]
        change[j] = direction[j] = ZERO
    for first in range(0, n, capacity):
        block_rows = gather(others, columns, confidences, first, start, history, width)
        own = errors[first : first + len(block_rows)]
        # Of later blocks the errors are known whole, and `change` is still 0.
        add_errors(block_rows, own, x if start == 0 else change, residual, inverse, width)
    for j in range(b):
        inverse[j] = ONE / inverse[j]
    before = ONE  # any number: the first direction is 0
    for _ in range(steps):
        squared = ZERO
        for j in range(b):
            squared += residual[j] * residual[j] * inverse[j]
        if squared < CONVERGED:
            break
        ratio = squared / before
        for j in range(b):
            direction[j] = residual[j] * inverse[j] + ratio * direction[j]
            product[j] = penalty[j] * direction[j]
        for first in range(0, n, capacity):
            block_rows = history_rows(others, columns, confidences, first, start, history, width)
            add_history(block_rows, direction, product, width)
        step, before = squared / dot(direction, product, width), squared
        for j in range(b):
            change[j] += step * direction[j]
            residual[j] -= step * product[j]
    for j in range(b):
        x[j] += change[j]
    if start + b < others.shape[1]:
        update_errors(others, columns, confidences, start, change, history, errors, width)


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
    """A few conjugate gradient steps for each row x of `solved`, in place, from its present value.

    Solves (diag(spectrum) + Σ c·y yᵀ + ridge·I) x = Σ c·y, the sums over the row's pairs: `columns`
    are row numbers of y in `others`, `confidences` are c, one for each pair or one for all.
    The components are solved block by block, the other blocks held fixed; `errors` are √c·(1 − y·x)
    for the present x. The preconditioner is the matrix's diagonal (Jacobi). The √c·y of a block are
    gathered once into `history`, small and contiguous, which every step reads again. A history
    longer than MAX_GATHERED is gathered for every step, since it would not stay in the cache.
    """
    b, longest = LANES * len(width), 0
    for row in rows:
        longest = max(longest, indptr[row + 1] - indptr[row])
    history = np.empty((min(round_up(longest), MAX_GATHERED), b), np.float32)
    all_errors, work = np.empty(round_up(longest), np.float32), np.empty((6, b), np.float32)
    for row in rows:
        items = columns[indptr[row] : indptr[row + 1]]
        last = min(indptr[row + 1], confidences.shape[0])
        own = confidences[min(indptr[row], last - 1) : last]
        buffer = history[: PIECE if len(items) > len(history) else len(history)]
        errors = all_errors[: round_up(len(items))]
        initial_errors(others, items, own, solved[row], errors, width)
        for start in range(0, others.shape[1], b):
            solve_block(
                others, items, own, spectrum[start : start + b], ridges[row], start,
                solved[row, start : start + b], errors, buffer, work, steps, width,
            )  # fmt: skip


@compiled
def transpose(
    indptr: Array,
    columns: Array,
    values: Array,
    free: Array,
    rows: Array,
    values_of_rows: Array,
) -> None:
    """Compressed rows to compressed columns, by counting: `rows` gets the row of each pair, column
    after column, in ascending order, and `values_of_rows` its value, where there is one for each.

    free: where each column begins; it is changed.
    """
    one_each = values_of_rows.shape[0] == columns.shape[0] and columns.shape[0] > 1
    for row in range(indptr.shape[0] - 1):
        for k in range(indptr[row], indptr[row + 1]):
            slot = free[columns[k]]
            free[columns[k]] = slot + 1
            rows[slot] = row
            if one_each:
                values_of_rows[slot] = values[k]
