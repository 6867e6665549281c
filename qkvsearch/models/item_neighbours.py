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
from qkvsearch.models.user_vectors import CONFIDENCES, check_values
from qkvsearch.tables.ids import row_numbers
from qkvsearch.tables.interactions import MAX_HISTORY

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

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

    starts int64 (n_items + 1,): where the weights of each item i begin; targets int32 (n_weights,):
    the items j that it speaks for, ascending; values float32 (n_weights,): Bᵢⱼ.

    >>> weights = NeighbourWeights(np.array([0, 1, 2]), np.array([1, 0]), np.array([0.5, 0.25]))
    >>> weights.scores([0]).tolist(), weights.addends([0], 1).tolist()
    ([0.0, 0.5], [0.5])
    """

    starts: np.ndarray
    targets: np.ndarray
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
    reg: float = 20.0
    dropout: float = 1.0
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
        if self.n_threads is not None:
            check_whole("n_threads", self.n_threads)
        observed = self._read_confidences(X)
        squares = np.square(observed.data, dtype=np.float64)
        self.reg_ = self.reg * float(squares.mean())
        self.weights_ = _by_history_item(*self._solve(observed))
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

    def _solve(self, observed: csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        """Return the neighbours of each item, int32 (n_items, k), −1 for none, and their weights,
        float32.
        """
        from qkvsearch.models.implicit_als import by_user_and_by_item
        from qkvsearch.models.neighbour_kernels import cooccurrence_rows, solve_items

        n_users, n_items = observed.shape
        is_usual = np.diff(observed.indptr) <= MAX_HISTORY
        if is_usual.any() and not is_usual.all():
            observed, n_users = observed[is_usual], int(is_usual.sum())
        by_user, by_item = (
            (starts, others, np.ascontiguousarray(np.broadcast_to(values, len(others))))
            for starts, others, values in by_user_and_by_item(observed)
        )
        norms = np.sqrt(
            np.bincount(by_user[1], np.square(by_user[2], dtype=np.float64), n_items)
        ).astype(np.float32)
        k = min(self.n_neighbours, max(n_items - 1, 1))
        neighbours = np.full((n_items, k), -1, np.int32)
        weights = np.zeros((n_items, k), np.float32)
        is_dense = n_items <= MAX_DENSE_ITEMS
        gram = np.zeros((n_items, n_items) if is_dense else (0, 0), np.float32)
        # From the item with the most users to that with the fewest: batches take equal time.
        order = np.argsort(-np.diff(by_item[0]), kind="stable")
        n_batches = -(-n_items // BATCH)
        batches = [np.ascontiguousarray(order[first::n_batches]) for first in range(n_batches)]
        n_threads = self.n_threads or available_cores()

        def count(rows: np.ndarray) -> None:
            cooccurrence_rows(rows, *by_item, *by_user, gram)

        if is_dense:
            run_in_threads(lambda: count, batches, n_threads)
        solved = Counter[str]()

        def worker() -> Callable[[np.ndarray], None]:
            buffers = _buffers(*((0, 0, 0) if is_dense else (n_users, n_items, MAX_ENTRIES)))

            def solve(rows: np.ndarray) -> None:
                solve_items(
                    rows, *by_item, *by_user, norms, self.reg_, self.dropout, MAX_PAIRS,
                    MAX_ENTRIES, gram, *buffers, neighbours, weights,
                )  # fmt: skip
                solved["items"] += len(rows)
                if self.callback is not None:
                    self.callback(solved["items"], n_items)

            return solve

        run_in_threads(worker, batches, n_threads)
        return neighbours, weights


def _buffers(n_users: int, n_items: int, n_entries: int) -> tuple[np.ndarray, ...]:
    """Return the buffers of one thread, as `solve_items` has them."""
    return (
        np.zeros(n_items, np.float32),
        np.empty(n_items, np.int32),
        np.zeros(n_users, np.int32),
        np.empty((2, n_entries), np.int32),
        np.empty(n_entries, np.float32),
    )


def _by_history_item(neighbours: np.ndarray, weights: np.ndarray) -> NeighbourWeights:
    """Return the weights by the item of a history, of the neighbours (n_items, k) of each item."""
    from scipy.sparse import csr_matrix

    exists, n_items = neighbours >= 0, len(neighbours)
    starts = np.concatenate([[0], np.cumsum(exists.sum(axis=1))])
    by_target = csr_matrix((weights[exists], neighbours[exists], starts), shape=(n_items, n_items))
    by_source = by_target.tocsc()  # targets ascend
    targets = by_source.indices.astype(np.int32, copy=False)
    return NeighbourWeights(by_source.indptr.astype(np.int64), targets, by_source.data)
