"""What the collaborative models share: reading interactions, naming rows, checking parameters."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from qkvsearch.data.ids import Ids
from qkvsearch.data.interactions import Interactions
from qkvsearch.errors import DataError, UnknownIdError

Progress = Callable[[int, int], None]


def require(valid: bool, name: str, value: object, wanted: str) -> None:
    """Raise `DataError` for a parameter that cannot work."""
    if not valid:
        raise DataError(f"{name} must be {wanted}, got {value!r}")


def is_finite(value: object) -> bool:
    """True for a number that is finite, also in the float32 that the models compute in."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    return abs(float(value)) <= float(np.finfo(np.float32).max)


def check_positive(name: str, value: Any, or_word: str = "") -> None:
    """Raise `DataError` unless `value` is a finite number above 0, or the word `or_word`."""
    if not (or_word and isinstance(value, str) and value == or_word):
        # Below the smallest float32, the number would be computed with as 0.
        valid = is_finite(value) and value >= float(np.finfo(np.float32).tiny)
        require(valid, name, value, f"{or_word!r} or " * bool(or_word) + "a finite number above 0")


def check_whole(name: str, value: Any) -> None:
    """Raise `DataError` unless `value` is a whole number from 1 up, which True is not."""
    valid = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
    require(valid, name, value, "a whole number, at least 1")


def available_cores() -> int:
    """The cores that this process may use, which in a container are fewer than the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def random_generator(random_state: Any) -> np.random.Generator:
    """A NumPy generator from what scikit-learn takes as `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


class CollaborativeModel(BaseEstimator, ABC):
    """Users and items in, by row number or by their owner's ids; a score for each pair out."""

    user_ids_: Ids | None
    item_ids_: Ids | None
    user_embeddings_: np.ndarray
    item_embeddings_: np.ndarray

    def _read(self, X: Any) -> csr_matrix:
        """Users × items, float32, one entry a pair; remembers the ids. Never writes to X."""
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

    @abstractmethod
    def _values(self, interactions: Interactions) -> np.ndarray | None:
        """What each pair is worth to this model; None is 1."""

    def _refuse(self, matrix: csr_matrix, bad: np.ndarray, advice: str) -> None:
        """Raise `DataError` that names the first pair whose value is `bad` (bool, nnz)."""
        if not bad.any():
            return
        place = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
        column = int(matrix.indices[place])
        where = f"row {row}, column {column}"
        if self.user_ids_ is not None and self.item_ids_ is not None:
            where = f"user {self.user_ids_[row]!r}, item {self.item_ids_[column]!r}"
        raise DataError(f"{where}: {matrix.data[place]} {advice}")

    def _pairs(self, users: Any, items: Any) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers of users and of items, brought to one length."""
        u = positions(users, self.user_ids_, len(self.user_embeddings_), "user")
        i = positions(items, self.item_ids_, len(self.item_embeddings_), "item")
        if len(u) != len(i) and 1 not in (len(u), len(i)):
            raise DataError(f"predict scores pairs: got {len(u)} users and {len(i)} items")
        u, i = np.broadcast_arrays(u, i)
        return u, i

    def _item_positions(self, items: Any) -> np.ndarray:
        return positions(items, self.item_ids_, len(self.item_embeddings_), "item")


def one_entry_per_pair(X: Any) -> csr_matrix:
    """Any sparse matrix as compressed rows of float32, repeated pairs summed; X stays as it is."""
    matrix = csr_matrix(X, dtype=np.float32)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def positions(names: Any, ids: Ids | None, count: int, kind: str) -> np.ndarray:
    """Row numbers (n,) of ids, or of row numbers themselves where the model knows no ids.

    >>> positions([2, 0], None, 3, "item").tolist(), positions("b", Ids("abc"), 3, "item").tolist()
    ([2, 0], [1])
    """
    names = [names] if np.ndim(names) == 0 else names
    if ids is not None:
        return ids.positions(names, kind)
    rows = np.asarray(names)
    if rows.size and rows.dtype.kind not in "iu":
        raise UnknownIdError(
            f"no {kind} {names[0]!r}: the model was fitted on a matrix and knows row numbers only; "
            f"fit it on Interactions to use your own ids"
        )
    outside = (rows < 0) | (rows >= count)
    if outside.any():
        raise UnknownIdError(
            f"no {kind} in row {rows[outside][0]}: the model was fitted on {count} {kind}s, "
            f"rows 0 to {count - 1}"
        )
    return rows.astype(np.int64)
