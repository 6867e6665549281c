"""The compiled loops of attention and of what stands beside it in an encoder layer.

With no Python code between the matrix products, threads do not wait for one another.
"""

import numpy as np

from qkvsearch._utils.compiled import compiled, compiled_for_any
from qkvsearch.attention.array_api import Array
from qkvsearch.attention.layers.basic import ERF_DENOMINATOR, ERF_LIMIT, ERF_NUMERATOR, SQRT_HALF

ZERO, ONE, HALF = np.float32(0), np.float32(1), np.float32(0.5)

# --- exp: half the time of NumPy's, and the one place that defines it ---

# exp(x) = 2ⁿ · exp(r), n whole and |r| ≤ ½ ln 2, which is subtracted in two parts to stay exact.
LOG2_E = np.float32(1.44269504)
LN2_HIGH = np.float32(0.693359375)
LN2_LOW = np.float32(-2.12194440e-4)
# exp(r) as a polynomial, fitted for the least relative error: 2e-9, far below float32's 6e-8.
C2, C3, C4, C5, C6 = (
    np.float32(c) for c in (0.49999994, 0.16666431, 0.041668, 0.00837416, 0.00138437)
)
# Below this, exp(x) is smaller than float32's normal numbers; such a weight becomes 0.
SMALLEST_EXPONENT = np.float32(-87.3)
BIAS, MANTISSA_BITS = np.int32(127), np.int32(23)


@compiled_for_any
def exp_row(row: Array, peak: np.float32) -> np.float32:
    """Compute exp(row − peak) of a row (n,), in place, and return the sum. A NaN stays.

    No entry may exceed the peak by 88 or more, where float32 overflows.
    """
    total = np.float32(0)
    for j in range(row.shape[0]):
        x = row[j] - peak
        n = np.rint(x * LOG2_E)
        r = (x - n * LN2_HIGH) - n * LN2_LOW
        p = ((((C6 * r + C5) * r + C4) * r + C3) * r + C2) * r + ONE
        power = np.int32((np.int32(n) + BIAS) << MANTISSA_BITS).view(np.float32)
        term = np.float32(0) if x < SMALLEST_EXPONENT else (p * r + ONE) * power
        row[j] = term
        total += term
    return total


# --- attention block by block, for plain float32: an online softmax over blocks ---

# A score is at most |q|·|k|. Where that is below this, exp cannot overflow: no peak is subtracted.
SMALL = np.float32(40)
# Any score will do as the peak that no other can exceed by more: exp stays finite.
ABOVE = np.float32(80)
# Such a score is searched in this many scores of a row first, then in all.
FIRST_SCORES = 128
LOWEST = np.finfo(np.float32).min
# Numbers of a row that are compared side by side.
LANES = 64


@compiled_for_any
def largest(row: Array, lanes: Array) -> np.float32:
    """Return the largest number, or float32's lowest if there is none. NaNs are skipped."""
    # In lanes side by side: with a single running maximum, each comparison waits for the last.
    lanes[:] = LOWEST
    whole = row.shape[0] - row.shape[0] % LANES
    for begin in range(0, whole, LANES):
        lane_block = row[begin : begin + LANES]
        for j in range(LANES):
            lanes[j] = lane_block[j] if lane_block[j] > lanes[j] else lanes[j]
    half = LANES // 2
    while half >= 8:
        for j in range(half):
            lanes[j] = lanes[j + half] if lanes[j + half] > lanes[j] else lanes[j]
        half //= 2
    top = LOWEST
    for j in range(whole, row.shape[0]):
        top = max(top, row[j])
    for j in range(8):
        top = max(top, lanes[j])
    return top


@compiled_for_any
def norms(vectors: Array) -> Array:
    """Return the lengths (n,) of vectors (n, d)."""
    lengths = np.empty(vectors.shape[0], np.float32)
    for i in range(vectors.shape[0]):
        total = np.float32(0)
        vector = vectors[i]
        for c in range(vector.shape[0]):
            total += vector[c] * vector[c]
        lengths[i] = np.sqrt(total)
    return lengths


@compiled_for_any
def attend_rows(
    query: Array,
    key: Array,
    value: Array,
    starts: Array,
    stops: Array,
    scratch: Array,
    peaks: Array,
    totals: Array,
    mixed: Array,
) -> None:
    """Run an online softmax of scaled queries (L, d) over keys (S, d) and values (S, dv).

    Query i attends to the keys starts[i] ≤ j < stops[i]. peaks, totals (L,) and mixed (L, dv), as
    in `blockwise.Partial`, are those of no keys at first, and become those of all keys, in place.
    `scratch` is room for scores, (queries, keys) of a block. All are float32, starts and stops
    int64, all C-contiguous.
    """
    n_rows, size = scratch.shape
    lanes = np.empty(LANES, np.float32)
    lengths = norms(query)
    for top in range(0, query.shape[0], n_rows):
        rows = query[top : top + n_rows]
        added = np.empty((rows.shape[0], mixed.shape[1]), np.float32)
        last = stops[top : top + n_rows].max()
        for begin in range(starts[top : top + n_rows].min(), last, size):
            end = min(begin + size, last)
            scores = scratch.ravel()[: len(rows) * (end - begin)].reshape(len(rows), end - begin)
            np.dot(rows, key[begin:end].T, scores)
            longest = norms(key[begin:end]).max()
            for i in range(top, top + len(rows)):
                row = scores[i - top]
                start = min(max(starts[i] - begin, 0), end - begin)
                stop = min(max(stops[i] - begin, start), end - begin)
                row[:start] = 0
                row[stop:] = 0
                if start == stop:  # the peak of no scores must not shrink those found before
                    continue
                bound, peak = lengths[i] * longest, peaks[i]
                if bound < SMALL:
                    peak = max(peak, ZERO)
                elif not bound - peak < ABOVE:
                    peak = max(peak, largest(row[start : min(stop, start + FIRST_SCORES)], lanes))
                    if not bound - peak < ABOVE:
                        peak = max(peak, largest(row[start:stop], lanes))
                shrunk = np.exp(peaks[i] - peak)
                totals[i] = totals[i] * shrunk + exp_row(row[start:stop], peak)
                peaks[i] = peak
                if shrunk != ONE:
                    for c in range(mixed.shape[1]):
                        mixed[i, c] *= shrunk
            np.dot(scores, value[begin:end], added)
            for i in range(len(rows)):
                for c in range(mixed.shape[1]):
                    mixed[top + i, c] += added[i, c]


# --- what lies between the products of matrices in `layers.fast_encoder`: a pass each, in place ---

P0, P1, P2, P3, P4, P5, P6 = ERF_NUMERATOR
Q0, Q1, Q2, Q3, Q4 = ERF_DENOMINATOR


@compiled
def add_gelu(x: Array, bias: Array) -> None:
    """Compute gelu(x + bias) of x (n, d), in place."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            value = x[i, j] + bias[j]
            t = min(max(value * SQRT_HALF, -ERF_LIMIT), ERF_LIMIT)
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
    """Compute the layer norm of x + added + bias, x (n, d), in place."""
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
