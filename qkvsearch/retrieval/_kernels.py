"""Loops over keys compiled. Only imported for what needs them, since numba is slow to import."""

from __future__ import annotations

import numpy as np

from qkvsearch.attention.arrays import Array
from qkvsearch.compiled import compiled_for_any

STRIDE = 128


@compiled_for_any
def products(codes: Array, scales: Array, queries: Array, found: Array) -> None:
    """found[i, j] = scales[i] · (codes[i] · queries[j]).

    codes: int8 (B, d). scales: float32 (B,). queries: float32 (n, d). found: float32 (B, n).
    In float32, because with int8 · int8 the query would be rounded too, and it takes longer.
    """
    for i in range(codes.shape[0]):
        code = codes[i]
        for j in range(queries.shape[0]):
            query = queries[j]
            total = np.float32(0)
            for c in range(query.shape[0]):
                total += np.float32(code[c]) * query[c]
            found[i, j] = total * scales[i]


@compiled_for_any
def best_by_postings(
    indptr: Array,
    indices: Array,
    weights: Array,
    terms: Array,
    sums: Array,
    positions: Array,
    scores: Array,
) -> int:
    """Add up the terms' weights by item and keep the best: how many, in positions and scores (k,).

    indptr: int64 (n_terms + 1,). indices: int32. weights: float32, positive. terms: int64, one for
    each time the query has it. sums: float32 (n_items,), zeros, and zeros again on return.
    """
    for term in terms:
        for j in range(indptr[term], indptr[term + 1]):
            sums[indices[j]] += weights[j]
    k, n_found, n_items = positions.shape[0], 0, sums.shape[0]
    threshold = np.float32(0)
    bits = sums.view(np.int32)
    for begin in range(0, n_items, STRIDE):
        stop = min(begin + STRIDE, n_items)
        # Most strides have nothing above. As integers, floats that are not negative have the same
        # order, and their maximum is found many at a time.
        top = np.int32(0)
        part = bits[begin:stop]
        for i in range(part.shape[0]):
            top = max(top, part[i])
        if top > np.float32(threshold).view(np.int32):
            for i in range(begin, stop):
                score = sums[i]
                if score > threshold:
                    # Insertion from the end; an equal score found earlier stays before it.
                    place = min(n_found, k - 1)
                    while place > 0 and scores[place - 1] < score:
                        scores[place], positions[place] = scores[place - 1], positions[place - 1]
                        place -= 1
                    scores[place], positions[place] = score, i
                    n_found = min(n_found + 1, k)
                    if n_found == k:
                        threshold = scores[k - 1]
    sums[:] = 0
    return n_found
