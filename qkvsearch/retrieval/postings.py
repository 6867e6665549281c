"""The best items for many word queries, without a head for each: sums of BM25 weights, compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from qkvsearch.threads import run_in_threads

# Queries a thread takes at a time, so that taking them costs little.
TOGETHER = 16


def search_postings(
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    n_items: int,
    queries: Sequence[np.ndarray],
    k: int,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The k best positions, int64, and scores, float32, for each query, best first.

    indptr, indices, weights: as in `LexicalKeys`, all weights positive. A query is the rows of its
    terms, each as often as it has it. Items without any of the terms are not found; ties go to the
    smaller position. Queries are spread over threads. The kernel's compiler takes half a second to
    import, so that a single query is better asked of `LexicalKeys.head`.

    >>> items, weights = np.array([0, 2], np.int32), np.array([1, 2], np.float32)
    >>> search_postings(np.array([0, 2]), items, weights, 3, [np.array([0])], k=5)[0][0].tolist()
    [2, 0]
    """
    from qkvsearch.retrieval._kernels import best_by_postings

    width = min(k, n_items)
    found = [(np.zeros(0, np.int64), np.zeros(0, np.float32))] * len(queries)
    if not width:
        return found

    def worker() -> Callable[[int], None]:
        sums = np.zeros(n_items, np.float32)

        def take(begin: int) -> None:
            for i in range(begin, min(begin + TOGETHER, len(queries))):
                terms = np.asarray(queries[i], np.int64)
                positions, scores = np.empty(width, np.int64), np.empty(width, np.float32)
                n = best_by_postings(indptr, indices, weights, terms, sums, positions, scores)
                found[i] = positions[:n], scores[:n]

        return take

    run_in_threads(worker, range(0, len(queries), TOGETHER))
    return found
