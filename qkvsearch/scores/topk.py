"""The k best of many scores, exactly: of given scores, and of keys too many to score at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qkvsearch._utils.threads import run_in_threads

# Blocks of scores whose maxima are compared first. Few blocks contain one of the k best.
BLOCK = 512
# The same where k is large for the number of items.
SMALL_BLOCK = 128
# The products of a block of keys with all queries: a megabyte, so that they stay in the cache.
PRODUCTS = 2**18
MAX_QUERIES = 128
MAX_KEYS = 2**14

# Rows of keys, a slice or (m,), to their scores (m, n) for n queries.
Score = Callable[[slice | np.ndarray], np.ndarray]


def top_k(scores: np.ndarray, k: int, mask: np.ndarray | None = None) -> np.ndarray:
    """Return the positions (int64) of the k largest scores that the mask allows, best first; fewer
    if it allows fewer. Ties go to the smaller position.

    >>> top_k(np.array([1., 3., 3., 2.]), 2).tolist()
    [1, 2]
    """
    if mask is not None and mask.all():
        mask = None
    candidates = _block_candidates(scores, k, mask)
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
    # Equal scores stay in the order of their positions.
    return candidates[(-left).argsort(kind="stable")[:k]]


def best_of_groups(
    scores: np.ndarray, k: int, mask: np.ndarray, groups: np.ndarray | None
) -> np.ndarray:
    """Return what `top_k` does, but of each group only the best item.

    groups: the number of each item's group, (n,); None where each item is one.

    >>> best_of_groups(np.array([1., 3., 3., 2.]), 2, np.ones(4, bool), np.array([0, 1, 1, 0]))
    array([1, 3])
    """
    if groups is None:
        return top_k(scores, k, mask)
    positions = np.zeros(0, dtype=np.int64)
    without_hit = mask
    # Each round finds at least one more group, so there are at most k.
    for _ in range(k):
        best = top_k(scores, 2 * k, without_hit)
        _, first = np.unique(groups[best], return_index=True)
        positions = np.append(positions, best[np.sort(first)])
        are_all = len(best) < 2 * k
        if are_all or len(positions) >= k:
            break
        # All items of other groups are below these.
        without_hit = mask & ~np.isin(groups, groups[positions])
    return positions[:k]


def _block_candidates(scores: np.ndarray, k: int, mask: np.ndarray | None) -> np.ndarray | None:
    """Return ascending positions among which the k best are; None where few can be ruled out.

    One pass over all scores finds the maximum of each block. It gives a `bound` that at least k
    allowed scores reach, so that a lower score is not one of the k best. All that follows looks
    only into blocks whose maximum reaches the bound.
    """
    size = BLOCK if k <= len(scores) // BLOCK // 8 else SMALL_BLOCK
    n_blocks = len(scores) // size
    has_few_best_blocks = 0 < k <= n_blocks // 8
    if not has_few_best_blocks or scores.dtype.kind != "f":
        return None
    n_in_blocks = n_blocks * size
    blocks = scores[:n_in_blocks].reshape(n_blocks, size)
    maxima = blocks.max(axis=1)
    if np.isnan(maxima).any():  # it hides the other scores of its block
        return None
    mask_blocks = None if mask is None else mask[:n_in_blocks].reshape(n_blocks, size)
    bound = _bound(blocks, maxima, k, mask_blocks)
    if bound == -np.inf:  # it rules nothing out
        return None
    # A tied block has no score above the bound, only scores equal to it. Ties go to the smaller
    # position, so the first k allowed ones are enough; the first 2·k blocks mostly have them.
    tied = np.flatnonzero(maxima == bound)
    first_tied = tied[: 2 * k]
    chosen = np.sort(np.concatenate([np.flatnonzero(maxima > bound), first_tied]))
    if len(chosen) > n_blocks // 2:
        return None
    reaching = np.flatnonzero(blocks[chosen] >= bound)
    positions = chosen[reaching // size] * size + reaching % size
    after_blocks = n_in_blocks + np.flatnonzero(scores[n_in_blocks:] >= bound)
    candidates = np.concatenate([positions, after_blocks])
    if mask is not None:
        candidates = candidates[mask[candidates]]
    if len(tied) > len(first_tied):
        n_ties = np.count_nonzero(np.isin(candidates // size, first_tied))
        if n_ties < k:  # the mask hides so many that a later block may have one of the k best
            return None
    return candidates


def _bound(
    blocks: np.ndarray, maxima: np.ndarray, k: int, mask_blocks: np.ndarray | None
) -> np.floating:
    """Return a number that at least k allowed scores reach; −∞ where none is found.

    The k-th largest peak of any blocks will do, a peak being a block's largest allowed score: k
    blocks then have a score that reaches it. The higher the bound, the fewer candidates are left,
    so the blocks with the largest maxima are taken. They are 2·k, because a mask may hide the best
    scores of some.

    blocks: (n_blocks, size). maxima: (n_blocks,). mask_blocks: bool, as `blocks`; None for all.
    """
    n_blocks = len(blocks)
    high = np.argpartition(maxima, n_blocks - 2 * k)[n_blocks - 2 * k :]
    if mask_blocks is None:
        peaks = maxima[high]
    else:
        # A cap is +∞ for an allowed score and −∞ for another. Arithmetic makes them without a
        # branch: on a scattered mask, np.where takes up to forty times as long.
        caps = (mask_blocks[high] - blocks.dtype.type(0.5)) * np.inf
        peaks = np.minimum(blocks[high], caps, dtype=blocks.dtype).max(axis=1)
    # Of 2·k numbers in ascending order, the one at index k has k − 1 others after it.
    return np.partition(peaks, k)[k]


def search_blocks(
    scorer: Callable[[slice], Callable[[], Score]],
    n_queries: int,
    n_keys: int,
    k: int,
    mask: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each query the k keys with the largest scores: positions, int64, and scores, both
    (n_queries, min(k, allowed keys)), best first.

    `scorer(slice of queries)()` gives each thread a function from rows of keys to their scores
    (rows, queries), in an array that it may reuse. The result is exact. Ties go to the smaller
    position, and a NaN counts as −∞. mask: bool (n_keys,), True = allowed.
    Raises `ValueError` for a mask that is not (N,) and for a negative k.
    """
    if k < 0 or (mask is not None and mask.shape != (n_keys,)):
        raise ValueError(f"k = {k} must not be negative, and a mask must be ({n_keys},)")
    width = min(k, n_keys if mask is None else int(np.count_nonzero(mask)))
    if not width or not n_queries:
        return np.zeros((n_queries, width), np.int64), np.zeros((n_queries, width), np.float32)
    positions, scores = [], []
    for start in range(0, n_queries, MAX_QUERIES):
        end = min(start + MAX_QUERIES, n_queries)
        best = _search_some(scorer(slice(start, end)), end - start, n_keys, width, mask)
        positions.append(best[0])
        scores.append(best[1])
    return np.concatenate(positions), np.concatenate(scores)


def _search_some(
    scorer: Callable[[], Score], n: int, n_keys: int, k: int, mask: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Find the best of the blocks that each thread scores, and then the best of all threads."""
    size = max(1, min(MAX_KEYS, PRODUCTS // n))
    best_of_threads: list[_Best] = []

    def worker() -> Callable[[int], None]:
        score, best = scorer(), _Best(n, k)
        best_of_threads.append(best)

        def add_block(start: int) -> None:
            rows: slice | np.ndarray = slice(start, min(start + size, n_keys))
            positions = np.arange(start, min(start + size, n_keys))
            if mask is not None and not mask[rows].all():
                rows = positions = positions[mask[rows]]
            if len(positions):
                best.add(score(rows), positions)

        return add_block

    run_in_threads(worker, range(0, n_keys, size))
    total = best_of_threads[0]
    for other in best_of_threads[1:]:
        total.pending += [*other.pending, other.sorted()]
    total.sort()
    return total.positions.reshape(n, k), total.scores.reshape(n, k)


class _Best:
    """The k best scores so far for each of n queries, and the k-th as a threshold.

    Scores above the threshold are sorted when there are enough of them. Blocks must come in
    ascending order: at the threshold, an earlier position has won already.
    """

    def __init__(self, n: int, k: int) -> None:
        self.n, self.k = n, k
        self.queries = self.positions = np.zeros(0, np.int64)
        self.scores = np.zeros(0, np.float32)
        self.thresholds: np.ndarray | None = None
        self.pending: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.n_pending = 0

    def add(self, scores: np.ndarray, positions: np.ndarray) -> None:
        """Add scores (B, n) of the keys at the positions (B,)."""
        passing = None
        if self.thresholds is not None:
            passing = np.flatnonzero(scores > self.thresholds)
        # Before there is a threshold, and where scores keep rising, too many pass to be sorted.
        if passing is None or len(passing) > 4 * self.n * self.k:
            finite = np.fmax(scores.T, -np.inf)
            rows = [top_k(row, self.k) for row in finite]
            queries = np.repeat(np.arange(self.n), [len(row) for row in rows])
            slots = np.concatenate(rows)
        else:
            slots, queries = np.divmod(passing, self.n)
        if len(slots):
            values = np.fmax(scores[slots, queries], -np.inf)
            self.pending.append((queries, positions[slots], values))
            self.n_pending += len(slots)
        if self.n_pending > self.n * self.k or (self.thresholds is None and self.n_pending):
            self.sort()

    def sorted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the best scores that are sorted already: queries, positions and scores."""
        return self.queries, self.positions, self.scores

    def sort(self) -> None:
        """Sort the pending scores among the best, and raise the thresholds."""
        columns = zip(*[self.sorted(), *self.pending], strict=True)
        queries, positions, scores = (np.concatenate(column) for column in columns)
        order = np.lexsort((positions, -scores, queries))
        starts = np.searchsorted(queries[order], np.arange(self.n))
        rank = np.arange(len(order)) - starts[queries[order]]
        order = order[rank < self.k]
        self.queries, self.positions, self.scores = queries[order], positions[order], scores[order]
        self.pending.clear()
        self.n_pending = 0
        if len(order) == self.n * self.k:
            self.thresholds = self.scores.reshape(self.n, self.k)[:, -1]
