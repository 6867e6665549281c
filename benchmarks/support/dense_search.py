"""The k keys with the largest products, by `search_blocks`: for `dense_speed` and for tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qkvsearch.scores.topk import MAX_KEYS, Score, search_blocks, top_k


def search_dense(
    queries: np.ndarray, keys: np.ndarray, k: int, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each query the k keys with the largest query · key: positions, int64, and scores,
    both (n, min(k, allowed keys)), best first.

    queries: (n, d). keys: (N, d), perhaps a memory map. They are read once for every 128 queries,
    block by block in several threads, and only the products of these blocks are in memory (for a
    single query all products, 4 bytes a key). mask: bool (N,), True = allowed. The result is exact.
    Ties go to the smaller position, and a NaN counts as −∞. Raises `ValueError` where shapes do not
    fit.

    >>> positions, scores = search_dense(np.eye(2), np.array([[1., 0], [3, 1], [2, 1]]), k=2)
    >>> positions.tolist(), scores.tolist()
    ([[1, 2], [1, 2]], [[3.0, 2.0], [1.0, 1.0]])
    """
    if queries.ndim != 2 or keys.ndim != 2 or queries.shape[1] != keys.shape[1]:
        raise ValueError(f"queries {queries.shape} and keys {keys.shape} must be (n, d) and (N, d)")
    queries = queries.astype(keys.dtype, copy=False)
    if len(queries) == 1 and k >= 0 and (mask is None or mask.shape == (len(keys),)):
        # Reading the keys takes nearly all the time, and BLAS is best at it.
        scores = np.fmax(keys @ queries[0], -np.inf)
        best = top_k(scores, k, mask)
        return best[None], scores[best][None]

    def scorer(chosen: slice) -> Callable[[], Score]:
        transposed = queries[chosen].T

        def worker() -> Score:
            buffer = np.empty((MAX_KEYS, transposed.shape[1]), keys.dtype)

            def score(rows: slice | np.ndarray) -> np.ndarray:
                block = keys[rows]
                return np.matmul(block, transposed, out=buffer[: len(block)])

            return score

        return worker

    return search_blocks(scorer, len(queries), len(keys), k, mask)
