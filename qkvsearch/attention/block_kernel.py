"""The compiled kernel of block-wise attention, for plain float32: an online softmax over blocks.

With no Python code between the matrix products, threads do not wait for one another.
"""

from __future__ import annotations

import numpy as np

from qkvsearch.attention.arrays import Array
from qkvsearch.attention.compiled_exp import exp_row
from qkvsearch.compiled import compiled_for_any

# A score is at most |q|·|k|. Where that is below this, exp cannot overflow: no peak is subtracted.
SMALL = np.float32(40)
NO_PEAK = np.float32(0)
LOWEST = np.finfo(np.float32).min
ONE = np.float32(1)
# Numbers of a row that are compared side by side.
LANES = 64


@compiled_for_any
def largest(row: Array, lanes: Array) -> np.float32:
    """The largest number, or float32's lowest where there is none. NaNs are passed over."""
    # In lanes side by side: with a single running maximum, each comparison waits for the last.
    lanes[:] = LOWEST
    whole = row.shape[0] - row.shape[0] % LANES
    for begin in range(0, whole, LANES):
        part = row[begin : begin + LANES]
        for j in range(LANES):
            lanes[j] = part[j] if part[j] > lanes[j] else lanes[j]
    top = LOWEST
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

    Query i attends to the keys starts[i] ≤ j < stops[i]. peaks, totals (L,) and mixed (L, dv), as
    in `blocks.Partial`, are those of no keys at first, and become those of all keys, in place.
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
            for i in range(len(rows)):
                for c in range(mixed.shape[1]):
                    mixed[top + i, c] += added[i, c]
