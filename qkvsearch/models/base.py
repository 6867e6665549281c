"""The base class of collaborative models: read interactions, and find rows by id."""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from qkvsearch.errors import DataError
from qkvsearch.models.confidences import Feedback
from qkvsearch.models.user_vectors import CONFIDENCES, RATINGS, check_values
from qkvsearch.tables.ids import Ids, row_numbers
from qkvsearch.tables.interactions import Interactions


class CollaborativeModel:
    """A model of users and items, which are named by row number or by the caller's ids."""

    user_ids_: Ids | None
    item_ids_: Ids | None
    user_embeddings_: np.ndarray
    item_embeddings_: np.ndarray

    def _read(self, X: Any) -> csr_matrix:
        """Return users × items, float32, one entry for each pair, and store the ids; keep X."""
        if isinstance(X, Interactions):
            self.user_ids_, self.item_ids_ = X.user_ids, X.item_ids
            matrix = X.matrix(self._values(X))
        elif issparse(X):
            self.user_ids_ = self.item_ids_ = None
            matrix = one_entry_per_pair(X)
        else:
            raise DataError(
                f"fit takes a scipy sparse matrix (users × items) or Interactions, "
                f"not {type(X).__name__}; for an array, pass scipy.sparse.csr_matrix(array)"
            )
        self.n_features_in_ = matrix.shape[1]
        return matrix

    def _read_confidences(self, X: Any) -> csr_matrix:
        """Return the confidences that are above 0. Raises `DataError` for one below 0 or above
        1e12, and where there is none.
        """
        observed = self._read(X)
        lowest, highest = CONFIDENCES
        is_confidence = np.isfinite(observed.data) & (observed.data >= lowest)
        self._refuse(observed, ~is_confidence, "is no confidence: use a finite number, 0 or more")
        too_large = observed.data > highest
        self._refuse(
            observed, too_large, f"is too large: use smaller confidences, at most {highest:g}"
        )
        if not observed.data.all():
            observed = observed.copy()
            observed.eliminate_zeros()
        if not observed.nnz:
            raise DataError("there is nothing to learn from: no user has interacted with an item")
        return observed

    def _values(self, interactions: Interactions) -> np.ndarray:
        """Return the value of each pair for this model, (n,): by default its confidence."""
        log = interactions
        return Feedback.of(log).confidences(log.items, log.ratings, log.weights)

    def _refuse(self, matrix: csr_matrix, bad: np.ndarray, advice: str) -> None:
        """Raise `DataError` that names the first pair whose value is `bad` (bool, nnz)."""
        if not bad.any():
            return
        index = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(matrix.indptr, index, side="right")) - 1
        column = int(matrix.indices[index])
        where = f"row {row}, column {column}"
        if self.user_ids_ is not None and self.item_ids_ is not None:
            where = f"user {self.user_ids_[row]!r}, item {self.item_ids_[column]!r}"
        raise DataError(f"{where}: {matrix.data[index]} {advice}")

    def _pairs(self, users: Any, items: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return row numbers of users and of items, broadcast to one length."""
        u = row_numbers(users, self.user_ids_, len(self.user_embeddings_), "user")
        i = row_numbers(items, self.item_ids_, len(self.item_embeddings_), "item")
        if len(u) != len(i) and 1 not in (len(u), len(i)):
            raise DataError(f"predict scores pairs: got {len(u)} users and {len(i)} items")
        u, i = np.broadcast_arrays(u, i)
        return u, i

    def _item_positions(self, items: Any) -> np.ndarray:
        return row_numbers(items, self.item_ids_, len(self.item_embeddings_), "item")


def one_entry_per_pair(X: Any) -> csr_matrix:
    """Return a sparse matrix as float32 CSR with repeated pairs summed; X is not changed. Raises
    `DataError` for a matrix that is not of real numbers, or not of two axes, or damaged.
    """
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DataError(f"a matrix has two axes and real numbers, not {X.ndim} and {X.dtype}")
    # Other formats are summed as they are converted: 8 bits, say, would be too few for a sum.
    matrix = csr_matrix(X if X.format == "csr" else X.astype(np.float64, copy=False))
    try:
        matrix.check_format()
    except ValueError as error:
        raise DataError(f"the matrix is damaged: {error}") from None
    if not matrix.has_canonical_format:
        matrix = matrix.astype(np.float64)
        matrix.sum_duplicates()
    with np.errstate(over="ignore"):  # an infinite number is refused with its row and column
        return matrix.astype(np.float32, copy=False)


def latest_of_each(
    positions: np.ndarray, values: Any = None, limits: tuple[float, float] = RATINGS
) -> tuple[np.ndarray, Any]:
    """Return a history of distinct items, and their values: an item that is there several times
    counts once, with its last value and in its last place, as a repeated pair of a log does. Raises
    `DataError` for values that are not within the limits.

    >>> latest_of_each(np.array([2, 5, 2]), [1.0, 2.0, 3.0])
    (array([5, 2]), array([2., 3.]))
    """
    numbers = None if values is None else check_values(values, len(positions), limits)
    _, from_the_end = np.unique(positions[::-1], return_index=True)
    kept = np.sort(len(positions) - 1 - from_the_end)
    return positions[kept], None if numbers is None else numbers[kept]
