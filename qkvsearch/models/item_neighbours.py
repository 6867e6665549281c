"""Item neighbours: how much each item of a history speaks for an item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from qkvsearch._utils.callbacks import Callback
from qkvsearch._utils.threads import available_cores, run_in_threads
from qkvsearch._utils.validation import (
    check_fitted,
    check_positive,
    check_whole,
    is_finite,
    require,
)
from qkvsearch.models.base import CollaborativeModel, latest_of_each
from qkvsearch.models.recommend_head import HistoryScores
from qkvsearch.models.user_vectors import CONFIDENCES, check_values
from qkvsearch.tables.ids import row_numbers
from qkvsearch.tables.interactions import MAX_HISTORY

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from qkvsearch.models.neighbour_kernels import Regression, Solution
    from qkvsearch.models.pairs import Pairs

# The Gram matrix of at most this many items is stored whole: 256 MB.
MAX_DENSE_ITEMS = 1 << 13
# Of an item with more pairs of interactions with other items, a sample of the users is counted; so
# of more interactions with its neighbours.
MAX_PAIRS, MAX_ENTRIES = 1 << 22, 1 << 21
# Items that a thread takes at a time.
BATCH = 64


@dataclass(frozen=True)
class NeighbourWeights:
    """The weights B of a fitted `ItemNeighbours`: score(j) = Σ c_i·B_ij over a history's items i.

    >>> weights = NeighbourWeights(np.array([0, 1, 2]), np.array([1, 0]), np.array([0.5, 0.25]))
    >>> weights.scores([0]).tolist(), weights.addends([0], 1).tolist()
    ([0.0, 0.5], [0.5])
    """

    # int64 (n_items + 1,): where the weights of each item i begin.
    starts: np.ndarray
    # int32 (n_weights,): the items j that it speaks for, ascending.
    targets: np.ndarray
    # float32 (n_weights,): Bᵢⱼ.
    values: np.ndarray

    @property
    def n_items(self) -> int:
        return len(self.starts) - 1

    def scores(self, positions: Any, confidences: np.ndarray | None = None) -> np.ndarray:
        """Return the scores of all items, float32 (n_items,), for a history of distinct items.

        confidences (h,): from 0 to 1e12, 1 by default; `DataError` otherwise.
        """
        rows = np.asarray(positions, dtype=np.intp)
        counts = check_values(confidences, len(rows), CONFIDENCES)
        scores = np.zeros(self.n_items)
        for row, confidence in zip(rows.tolist(), counts.tolist(), strict=True):
            span = slice(self.starts[row], self.starts[row + 1])
            scores[self.targets[span]] += confidence * self.values[span]
        return scores.astype(np.float32)

    def addends(
        self, positions: Any, item: int, confidences: np.ndarray | None = None
    ) -> np.ndarray:
        """Return what each item of a history adds to the score of one item, float64 (h,)."""
        rows = np.asarray(positions, dtype=np.intp)
        addends = np.zeros(len(rows))
        for index, row in enumerate(rows.tolist()):
            start, end = self.starts[row], self.starts[row + 1]
            at = start + int(np.searchsorted(self.targets[start:end], item))
            if at < end and self.targets[at] == item:
                addends[index] = self.values[at]
        return addends * check_values(confidences, len(rows), CONFIDENCES)

    def score_history(self, positions: np.ndarray, confidences: np.ndarray) -> HistoryScores | None:
        """Score all items by how much each item of a history speaks for them; see `FittedHead`."""
        speaks_for_none = self.starts[positions] == self.starts[positions + 1]
        if speaks_for_none.all():  # of an empty history, too
            return None

        def addends(item: int) -> np.ndarray:
            return self.addends(positions, item, confidences)

        return HistoryScores(self.scores(positions, confidences), addends)

    def score_many(self, histories: csr_matrix) -> csr_matrix:
        """Return the scores of all items, sparse (n, n_items); see `FittedHead`."""
        return histories @ self.matrix()

    def matrix(self) -> csr_matrix:
        """Return B (n_items, n_items): histories (n, n_items) times B are their scores."""
        from scipy.sparse import csr_matrix

        shape = (self.n_items, self.n_items)
        return csr_matrix((self.values, self.targets, self.starts), shape=shape)


@dataclass(eq=False, repr=False)
class NeighbourRegression(CollaborativeModel):
    """The implementation of `ItemNeighbours` without scikit-learn."""

    n_neighbours: int = 100
    _: KW_ONLY
    reg: float = 40.0
    dropout: float = 1.0
    user_exponent: float = 0.5
    n_threads: int | None = None
    callback: Callback | None = None

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn from a sparse matrix (n_users, n_items) of confidences, or from `Interactions`.

        Raises `DataError` for a confidence below 0 or above 1e12, with its row and column.
        """
        check_whole("n_neighbours", self.n_neighbours)
        check_positive("reg", self.reg)
        is_valid = is_finite(self.dropout) and self.dropout >= 0
        require(is_valid, "dropout", self.dropout, "a finite number, 0 or above")
        is_valid = is_finite(self.user_exponent) and 0 <= self.user_exponent <= 1
        require(is_valid, "user_exponent", self.user_exponent, "a number from 0 to 1")
        if self.n_threads is not None:
            check_whole("n_threads", self.n_threads)
        observed = _without_unusual_users(self._read_confidences(X))
        squares = np.square(observed.data, dtype=np.float64)
        self.reg_ = self.reg * float(squares.mean())
        weighted = _weighted_by_user(observed, self.user_exponent)
        self.weights_ = _by_history_item(self._solve(weighted))
        return self

    def scores(self, history: Any, confidences: Any = None) -> np.ndarray:
        """Return the scores of all items, float32 (n_items,), for a history: row numbers after
        `fit(matrix)`, ids after `fit(Interactions)`; others raise `UnknownIdError`. confidences:
        one for each item, 1 by default. An item that is named several times counts once, with its
        last confidence.
        """
        check_fitted(self)
        rows = row_numbers(history, self.item_ids_, self.weights_.n_items, "item")
        return self.weights_.scores(*latest_of_each(rows, confidences, CONFIDENCES))

    def _solve(self, observed: csr_matrix) -> Solution:
        """Find the neighbours of each item, and solve for their weights."""
        from qkvsearch.models.neighbour_kernels import Regression, Solution
        from qkvsearch.models.pairs import by_user_and_by_item

        by_user, by_item = by_user_and_by_item(observed)
        by_user, by_item = by_user.with_each_confidence(), by_item.with_each_confidence()
        n_items = observed.shape[1]
        squares = np.square(by_user.confidences, dtype=np.float64)
        norms = np.sqrt(np.bincount(by_user.columns, squares, n_items)).astype(np.float32)
        regression = Regression(norms, self.reg_, float(self.dropout))
        k = min(self.n_neighbours, max(n_items - 1, 1))
        solution = Solution(
            neighbours=np.full((n_items, k), -1, np.int32),
            weights=np.zeros((n_items, k), np.float32),
        )
        # From the item with the most users to that with the fewest: batches take equal time.
        order = np.argsort(-by_item.lengths, kind="stable")
        n_batches = -(-n_items // BATCH)
        batches = [np.ascontiguousarray(order[first::n_batches]) for first in range(n_batches)]
        if n_items <= MAX_DENSE_ITEMS:
            self._solve_by_gram(batches, by_user, by_item, regression, solution)
        else:
            self._solve_by_pairs(batches, by_user, by_item, regression, solution)
        return solution

    def _solve_by_gram(
        self,
        batches: list[np.ndarray],
        by_user: Pairs,
        by_item: Pairs,
        regression: Regression,
        solution: Solution,
    ) -> None:
        """Count the Gram matrix of all items once, and solve for each item by it."""
        from qkvsearch.models.neighbour_kernels import add_gram_rows, solve_by_gram

        n_items = len(solution.neighbours)
        gram = np.zeros((n_items, n_items), np.float32)

        def count(rows: np.ndarray) -> None:
            add_gram_rows(rows, by_item, by_user, gram)

        report = self._reporter(n_items)

        def solve(rows: np.ndarray) -> None:
            solve_by_gram(rows, gram, regression, solution)
            report(len(rows))

        n_threads = self.n_threads or available_cores()
        run_in_threads(lambda: count, batches, n_threads)
        run_in_threads(lambda: solve, batches, n_threads)

    def _solve_by_pairs(
        self,
        batches: list[np.ndarray],
        by_user: Pairs,
        by_item: Pairs,
        regression: Regression,
        solution: Solution,
    ) -> None:
        """Count for each item what its equations need, in buffers that each thread has."""
        from qkvsearch.models.neighbour_kernels import CountBuffers, EntryBuffers, solve_by_pairs

        n_users, n_items = len(by_user.lengths), len(by_item.lengths)
        report = self._reporter(n_items)

        def worker() -> Callable[[np.ndarray], None]:
            counts = CountBuffers(
                sums=np.zeros(n_items, np.float32),
                touched=np.empty(n_items, np.int32),
                max_pairs=MAX_PAIRS,
            )
            entries = EntryBuffers(
                ends=np.zeros(n_users, np.int32),
                users=np.empty(MAX_ENTRIES, np.int32),
                rows=np.empty(MAX_ENTRIES, np.int32),
                values=np.empty(MAX_ENTRIES, np.float32),
            )

            def solve(rows: np.ndarray) -> None:
                solve_by_pairs(rows, by_item, by_user, counts, entries, regression, solution)
                report(len(rows))

            return solve

        run_in_threads(worker, batches, self.n_threads or available_cores())

    def _reporter(self, n_items: int) -> Callable[[int], None]:
        """Return a function that threads call with the number of items that they have solved."""
        solved = Counter[str]()

        def report(n: int) -> None:
            solved["items"] += n
            if self.callback is not None:
                self.callback(solved["items"], n_items)

        return report


def _without_unusual_users(observed: csr_matrix) -> csr_matrix:
    """Return the rows of users with at most `MAX_HISTORY` items; all rows where no user has so few.

    A history of h items has h² pairs, so that a few programs among the users would take most of the
    time, and tell least.
    """
    is_usual = np.diff(observed.indptr) <= MAX_HISTORY
    if is_usual.all() or not is_usual.any():
        return observed
    return observed[is_usual]


def _weighted_by_user(observed: csr_matrix, exponent: float) -> csr_matrix:
    """Return X whose rows are multiplied by √w, so that each user counts w in G = XᵀX.

    w is n⁻ᵉ for a user with n items, in a scale in which the mean over all interactions is 1.
    """
    lengths = np.diff(observed.indptr)
    weights = np.power(np.maximum(lengths, 1), -exponent, dtype=np.float64)
    weights *= observed.nnz / (weights * lengths).sum()
    weighted = observed.astype(np.float32)
    weighted.data *= np.repeat(np.sqrt(weights), lengths).astype(np.float32)
    return weighted


def _by_history_item(solution: Solution) -> NeighbourWeights:
    """Return the weights by the item of a history, from those by the item that is scored."""
    from scipy.sparse import csr_matrix

    exists, n_items = solution.neighbours >= 0, len(solution.neighbours)
    starts = np.concatenate([[0], np.cumsum(exists.sum(axis=1))])
    by_target = csr_matrix(
        (solution.weights[exists], solution.neighbours[exists], starts), shape=(n_items, n_items)
    )
    by_source = by_target.tocsc()  # the targets of each source ascend
    targets = by_source.indices.astype(np.int32, copy=False)
    return NeighbourWeights(by_source.indptr.astype(np.int64), targets, by_source.data)
