"""Block-wise attention compiled, for plain float32. Without Python between products of matrices,
threads need not wait for one another; and an exponential takes half the time of NumPy's."""

from __future__ import annotations

import numpy as np

from qkvsearch.attention.arrays import Array
from qkvsearch.compiled import compiled_for_any

# exp(x) = 2ⁿ · exp(r), n whole and |r| ≤ ½ ln 2, which is subtracted in two parts to stay exact.
LOG2_E = np.float32(1.44269504)
LN2_HIGH = np.float32(0.693359375)
LN2_LOW = np.float32(-2.12194440e-4)
# exp(r) as a polynomial, fitted for the least relative error: 2e-9, far below float32's 6e-8.
C2, C3, C4, C5, C6 = (
    np.float32(c) for c in (0.49999994, 0.16666431, 0.041668, 0.00837416, 0.00138437)
)
ONE = np.float32(1)
# Below, exp is no normal number any more; such a weight is 0.
LOWEST = np.float32(-87.3)
BIAS, MANTISSA_BITS = np.int32(127), np.int32(23)

# |q|·|k| under this bounds the scores so low that their exponentials need no peak to stay in range.
SMALL = np.float32(40)
NO_PEAK = np.float32(0)
NOTHING = np.finfo(np.float32).min
LANES = 64


@compiled_for_any
def largest(row: Array, lanes: Array) -> np.float32:
    """The largest number, or float32's lowest where there is none. NaNs are passed over."""
    # In lanes side by side, because a single running maximum keeps the processor waiting.
    lanes[:] = NOTHING
    whole = row.shape[0] - row.shape[0] % LANES
    for begin in range(0, whole, LANES):
        part = row[begin : begin + LANES]
        for j in range(LANES):
            lanes[j] = part[j] if part[j] > lanes[j] else lanes[j]
    top = NOTHING
    for j in range(whole, row.shape[0]):
        top = max(top, row[j])
    for j in range(LANES):
        top = max(top, lanes[j])
    return top


@compiled_for_any
def norms(vectors: Array) -> Array:
    """Lengths (n,) of vectors (n, d)."""
    found = np.empty(vectors.shape[0], np.float32)
    for i in range(vectors.shape[0]):
        total = np.float32(0)
        vector = vectors[i]
        for c in range(vector.shape[0]):
            total += vector[c] * vector[c]
        found[i] = np.sqrt(total)
    return found


@compiled_for_any
def exp_row(row: Array, peak: np.float32) -> np.float32:
    """exp(s − peak) in place, and their sum; a NaN stays. No s may exceed the peak by 88."""
    total = np.float32(0)
    for j in range(row.shape[0]):
        x = row[j] - peak
        n = np.rint(x * LOG2_E)
        r = (x - n * LN2_HIGH) - n * LN2_LOW
        p = ((((C6 * r + C5) * r + C4) * r + C3) * r + C2) * r + ONE
        power = np.int32((np.int32(n) + BIAS) << MANTISSA_BITS).view(np.float32)
        term = np.float32(0) if x < LOWEST else (p * r + ONE) * power
        row[j] = term
        total += term
    return total


@compiled_for_any
def _attend_block(
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
    """`attend_rows`, for as many queries as fit the scratch."""
    n_queries = query.shape[0]
    size = scratch.shape[1]
    added = np.empty_like(mixed)
    lanes = np.empty(LANES, np.float32)
    lengths = norms(query)
    last = stops.max()
    for begin in range(starts.min(), last, size):
        end = min(begin + size, last)
        scores = scratch.ravel()[: n_queries * (end - begin)].reshape(n_queries, end - begin)
        np.dot(query, key[begin:end].T, scores)
        longest = norms(key[begin:end]).max()
        for i in range(n_queries):
            row = scores[i]
            start = min(max(starts[i] - begin, 0), end - begin)
            stop = min(max(stops[i] - begin, start), end - begin)
            row[:start] = 0
            row[stop:] = 0
            if start == stop:  # a peak that no score of this row has must not shrink the others
                continue
            peak = max(peaks[i], NO_PEAK)
            if not lengths[i] * longest < SMALL:
                peak = max(peaks[i], largest(row[start:stop], lanes))
            shrunk = np.exp(peaks[i] - peak)
            totals[i] = totals[i] * shrunk + exp_row(row[start:stop], peak)
            peaks[i] = peak
            if shrunk != ONE:
                for c in range(mixed.shape[1]):
                    mixed[i, c] *= shrunk
        np.dot(scores, value[begin:end], added)
        for i in range(n_queries):
            for c in range(mixed.shape[1]):
                mixed[i, c] += added[i, c]


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
    """An online softmax of queries (L, d), scaled already, over keys (S, d) and values (S, dv).

    Query i sees the keys starts[i] ≤ j < stops[i]. peaks, totals (L,) and mixed (L, dv), as in
    `online.Partial`, come as those of no keys and leave as those of all. `scratch` is for scores:
    its shape says how many queries by how many keys to take at a time. All are float32, starts
    and stops int64, all C-contiguous.
    """
    for i in range(0, query.shape[0], scratch.shape[0]):
        j = min(i + scratch.shape[0], query.shape[0])
        _attend_block(
            query[i:j],
            key,
            value,
            starts[i:j],
            stops[i:j],
            scratch,
            peaks[i:j],
            totals[i:j],
            mixed[i:j],
        )
