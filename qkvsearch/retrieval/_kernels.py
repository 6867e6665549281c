"""Loops over keys compiled. Only imported for what needs them, since numba is slow to import."""

from __future__ import annotations

import numpy as np

from qkvsearch._utils.compiled import compiled_for_any
from qkvsearch.attention.array_api import Array


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
