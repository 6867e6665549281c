"""The k best of many scores, exactly: of scores at hand, and of keys too many to score at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qkvsearch._utils.threads import run_in_threads

# Few enough for their best to be found in no time, enough that few blocks hold one of the k best.
BLOCK = 512
# Products of a block of keys with all queries at hand: a megabyte, so that they stay in the cache.
PRODUCTS = 2**18
MAX_QUERIES = 128
MAX_KEYS = 2**14

# Scores (stop − start, n) of the keys at the positions (stop − start,) or slice with n queries.
Score = Callable[[slice | np.ndarray], np.ndarray]


def top_k(scores: np.ndarray, k: int, mask: np.ndarray | None = None) -> np.ndarray:
    """Positions (int64) of the k largest scores among those that `mask` leaves, best first.

    Ties go to the smaller position. Fewer than k come back where fewer are left.

    >>> top_k(np.array([1., 3., 3., 2.]), 2).tolist()
    [1, 2]
    """
    if mask is not None and mask.all():
        mask = None
    candidates = _promising(scores, k, mask)
    if candidates is None and mask is not None:
        candidates = mask.nonzero()[0]
    left = scores if candidates is None else scores[candidates]
    if k < len(left):
        threshold = np.partition(left, len(left) - k)[len(left) - k] if k > 0 else np.inf
        best = (left >= threshold).nonzero()[0]
        candidates = best if candidates is None else candidates[best]
        left = left[best]
    elif candidates is None:
        candidates = np.arange(len(scores))
    # Those of one score stand in the order of their positions.
    return candidates[(-left).argsort(kind="stable")[:k]]


def _promising(scores: np.ndarray, k: int, mask: np.ndarray | None) -> np.ndarray | None:
    """Ascending positions among which the k best are; None where a look at each finds no fewer.

    The blocks with the largest maxima hold k scores that are left and no worse than a bound, so
    what is below it is out. One pass for the maxima replaces several over everything.
    """
    n_blocks = len(scores) // BLOCK
    if not 0 < k <= n_blocks // 8 or scores.dtype.kind != "f":
        return None
    whole = n_blocks * BLOCK
    blocks = scores[:whole].reshape(n_blocks, BLOCK)
    best = blocks.max(axis=1)
    if np.isnan(best).any():  # it would hide what else its block has
        return None
    high = np.argpartition(best, n_blocks - 2 * k)[n_blocks - 2 * k :]
    peaks = best[high]
    if mask is not None:
        # ±∞, the cap, without a branch: np.where takes ten times as long on a scattered mask.
        caps = (mask[:whole].reshape(n_blocks, BLOCK)[high] - scores.dtype.type(0.5)) * np.inf
        peaks = np.minimum(blocks[high], caps, dtype=scores.dtype).max(axis=1)
    bound = np.partition(peaks, k)[k]
    tied = np.flatnonzero(best == bound)
    chosen = np.sort(np.concatenate([np.flatnonzero(best > bound), tied[: 2 * k]]))
    if bound == -np.inf or len(chosen) > n_blocks // 2:
        return None
    places = np.flatnonzero(blocks[chosen] >= bound)
    places = chosen[places // BLOCK] * BLOCK + places % BLOCK
    found = np.concatenate([places, whole + np.flatnonzero(scores[whole:] >= bound)])
    found = found if mask is None else found[mask[found]]
    # Ties go to the smaller position: of many blocks that only reach the bound, the first suffice
    # where they hold k scores.
    if len(tied) > 2 * k and np.isin(found // BLOCK, tied[: 2 * k]).sum() < k:
        return None
    return found


def search_dense(
    queries: np.ndarray, keys: np.ndarray, k: int, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The k keys with the largest query · key for each query: positions, int64, and scores, both
    (n, min(k, keys left)), best first.

    queries: (n, d). keys: (N, d), as well a memory map: they are read once for every 128 queries,
    in blocks, several at a time, and no more than a block's products are held (a single query's
    are all held, 4 bytes a key). mask: bool (N,),
    True = may be found. Exact: nothing is left out but what a key found earlier surpasses; ties go
    to the smaller position, and a NaN counts as −∞. Raises `ValueError` where shapes do not fit.

    >>> positions, scores = search_dense(np.eye(2), np.array([[1., 0], [3, 1], [2, 1]]), k=2)
    >>> positions.tolist(), scores.tolist()
    ([[1, 2], [1, 2]], [[3.0, 2.0], [1.0, 1.0]])
    """
    if queries.ndim != 2 or keys.ndim != 2 or queries.shape[1] != keys.shape[1]:
        raise ValueError(f"queries {queries.shape} and keys {keys.shape} must be (n, d) and (N, d)")
    queries = queries.astype(keys.dtype, copy=False)
    if len(queries) == 1 and k >= 0 and (mask is None or mask.shape == (len(keys),)):
        # Reading the keys takes all the time, and BLAS is best at it; a score is d times smaller.
        scores = np.fmax(keys @ queries[0], -np.inf)
        best = top_k(scores, k, mask)
        return best[None], scores[best][None]

    def scorer(chosen: slice) -> Callable[[], Score]:
        turned = queries[chosen].T

        def worker() -> Score:
            room = np.empty((MAX_KEYS, turned.shape[1]), keys.dtype)

            def score(places: slice | np.ndarray) -> np.ndarray:
                block = keys[places]
                return np.matmul(block, turned, out=room[: len(block)])

            return score

        return worker

    return search_blocks(scorer, len(queries), len(keys), k, mask)


def search_blocks(
    scorer: Callable[[slice], Callable[[], Score]],
    n_queries: int,
    n_keys: int,
    k: int,
    mask: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """`search_dense` with products made by others: `scorer(some queries)()` gives each thread a
    function from places of keys to their scores (places, queries), in an array that it may reuse.

    Raises `ValueError` for a mask that is not (N,) and a negative k.
    """
    if k < 0 or (mask is not None and mask.shape != (n_keys,)):
        raise ValueError(f"k = {k} must not be negative, and a mask must be ({n_keys},)")
    width = min(k, n_keys if mask is None else int(np.count_nonzero(mask)))
    parts = [
        _search_some(scorer(slice(i, i + MAX_QUERIES)), n, n_keys, width, mask)
        for i in range(0, n_queries if width else 0, MAX_QUERIES)
        for n in [min(MAX_QUERIES, n_queries - i)]
    ]
    if not parts:
        return np.zeros((n_queries, width), np.int64), np.zeros((n_queries, width), np.float32)
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _search_some(
    scorer: Callable[[], Score], n: int, n_keys: int, k: int, mask: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Every thread keeps the best of the blocks that it takes; the best of those are the best."""
    size = max(1, min(MAX_KEYS, PRODUCTS // n))
    found: list[_Best] = []

    def worker() -> Callable[[int], None]:
        score, best = scorer(), _Best(n, k)
        found.append(best)

        def take(begin: int) -> None:
            places: slice | np.ndarray = slice(begin, min(begin + size, n_keys))
            positions = np.arange(begin, min(begin + size, n_keys))
            if mask is not None and not mask[places].all():
                places = positions = positions[mask[places]]
            if len(positions):
                best.add(score(places), positions)

        return take

    run_in_threads(worker, range(0, n_keys, size))
    total = found[0]
    for other in found[1:]:
        total.waiting += [*other.waiting, other.kept()]
    total.settle()
    return total.positions.reshape(n, k), total.scores.reshape(n, k)


class _Best:
    """The k best of the scores seen so far, for each of n queries, and the k-th as a threshold.

    What passes the threshold waits until enough has come to make sorting worth it. Blocks must
    come in ascending order, so that at the threshold an earlier position has won already.
    """

    def __init__(self, n: int, k: int) -> None:
        self.n, self.k = n, k
        self.queries = self.positions = np.zeros(0, np.int64)
        self.scores = np.zeros(0, np.float32)
        self.thresholds: np.ndarray | None = None
        self.waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.n_waiting = 0

    def add(self, scores: np.ndarray, positions: np.ndarray) -> None:
        """scores: (B, n) of the keys at the positions (B,)."""
        passing = None
        if self.thresholds is not None:
            passing = np.flatnonzero(scores > self.thresholds)
        # So many, before there is a threshold or where scores rise and rise, are not worth sorting.
        if passing is None or len(passing) > 4 * self.n * self.k:
            known = np.fmax(scores.T, -np.inf)
            rows = [top_k(row, self.k) for row in known]
            queries = np.repeat(np.arange(self.n), [len(row) for row in rows])
            places = np.concatenate(rows)
        else:
            places, queries = np.divmod(passing, self.n)
        if len(places):
            taken = np.fmax(scores[places, queries], -np.inf)
            self.waiting.append((queries, positions[places], taken))
            self.n_waiting += len(places)
        if self.n_waiting > self.n * self.k or (self.thresholds is None and self.n_waiting):
            self.settle()

    def kept(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.queries, self.positions, self.scores

    def settle(self) -> None:
        """Sort those that wait among the best, and raise the thresholds."""
        columns = zip(*[self.kept(), *self.waiting], strict=True)
        queries, positions, scores = (np.concatenate(column) for column in columns)
        order = np.lexsort((positions, -scores, queries))
        starts = np.searchsorted(queries[order], np.arange(self.n))
        rank = np.arange(len(order)) - starts[queries[order]]
        order = order[rank < self.k]
        self.queries, self.positions, self.scores = queries[order], positions[order], scores[order]
        self.waiting, self.n_waiting = [], 0
        if len(order) == self.n * self.k:
            self.thresholds = self.scores.reshape(self.n, self.k)[:, -1]
