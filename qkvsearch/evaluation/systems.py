"""What is judged: our models, and what any recommender must beat, item-kNN and EASE^R for one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
from scipy.linalg.lapack import spotrf, spotri
from scipy.sparse import csr_matrix, vstack

from qkvsearch.collaborative.als import ImplicitALS
from qkvsearch.collaborative.cold_start import fit_text_map, place_cold_items
from qkvsearch.data.ids import Ids
from qkvsearch.data.interactions import Interactions
from qkvsearch.errors import DataError, QkvError
from qkvsearch.sequences.next_item import NextItem
from qkvsearch.threads import one_blas_thread

# Products of items with items are made at most 16 million at a time, 64 MB.
PRODUCTS_AT_ONCE = 1 << 24
# EASE^R holds a number for every pair of items: 1.6 GB for 20,000 items, and takes minutes.
MOST_ITEMS_OF_EASE = 20_000

NEXT_ITEM = "next-item"
# Under the others what is held out comes before what is known.
NEXT_ITEM_PROTOCOLS = ("leave-last-out", "time")


class TooLargeError(DataError):
    """There is too much data for this method; the message says how much it takes."""


class System(Protocol):
    """Learns from a matrix (n_users, n_items) of interactions; scores items for anyone by theirs.
    The numbers are confidences, for `NextItems` places in time.
    """

    def fit(self, X: csr_matrix) -> Self:
        """Raises `TooLargeError` where that would not fit into memory."""

    def scores(self, histories: csr_matrix) -> np.ndarray:
        """A new array (n, n_items), float32, for histories (n, n_items). −∞ is never recommended:
        all but `Popularity`, which needs no history, give it to who likes nothing.
        """


class Preferences:
    """`ImplicitALS` with any settings, asked as `recommend` asks it: by the exact solve on a
    user's history, whether or not training saw them, with cold items placed by text vectors `keys`
    (n_items, t), where there are any.
    """

    def __init__(self, keys: np.ndarray | None = None, **settings: Any) -> None:
        self.keys = keys
        self.model = ImplicitALS(**settings)

    def fit(self, X: csr_matrix) -> Self:
        self.factors_ = self.model.fit(X).factors_
        items = self.model.item_embeddings_
        text_map = None if self.keys is None else fit_text_map(self.keys, items)
        if self.keys is not None and text_map is not None:
            items = place_cold_items(items, self.keys, text_map, X.getnnz(axis=0) == 0)
            self.factors_ = replace(self.factors_, item_embeddings=items)
        return self

    def scores(self, histories: csr_matrix) -> np.ndarray:
        embeddings = self.factors_.fold_in_many(histories).astype(np.float32)
        scores: np.ndarray = embeddings @ self.factors_.item_embeddings.T
        scores[~embeddings.any(axis=1)] = -np.inf
        return scores


class NextItems:
    """`NextItem` with any settings, asked as `recommend(model="next-item")` asks it: by all that is
    liked of a history, oldest first. Matrices hold each item's place in time, from 1 on.
    """

    def __init__(self, **settings: Any) -> None:
        self.model = NextItem(**settings)

    @staticmethod
    def check(log: Interactions, protocol: str) -> None:
        """Raise `QkvError` where nothing can be learned or judged, before any work."""
        if protocol not in NEXT_ITEM_PROTOCOLS:
            raise QkvError(
                f"`next_item` foresees what comes last, and `protocol` {protocol} holds out what "
                f"came at any time: use {' or '.join(NEXT_ITEM_PROTOCOLS)}"
            )
        NextItem().check(log)

    def fit(self, X: csr_matrix) -> Self:
        users = np.repeat(np.arange(X.shape[0], dtype=np.int32), np.diff(X.indptr))
        user_ids, item_ids = (Ids(map(str, range(n))) for n in X.shape)
        times = X.data.astype(np.int64)
        self.model.fit(Interactions(users, X.indices, user_ids, item_ids, times=times))
        return self

    def scores(self, histories: csr_matrix) -> np.ndarray:
        fitted = self.model.model_
        rows = [slice(*ends) for ends in pairwise(histories.indptr)]
        oldest_first = [histories.indices[row][np.argsort(histories.data[row])] for row in rows]
        embeddings = fitted.fold_in_many(oldest_first)
        scores: np.ndarray = embeddings @ fitted.items.weight.T
        scores[:, ~fitted.known] = -np.inf
        scores[~embeddings.any(axis=1)] = -np.inf
        return scores


class Popularity:
    """The same for everyone: score(i) = Σ_users c_ui.

    >>> Popularity().fit(csr_matrix([[1, 0], [1, 1]])).scores(csr_matrix([[0, 1]])).tolist()
    [[2.0, 1.0]]
    """

    def fit(self, X: csr_matrix) -> Self:
        self.counts_ = np.asarray(X.sum(axis=0), dtype=np.float32).ravel()
        return self

    def scores(self, histories: csr_matrix) -> np.ndarray:
        return np.tile(self.counts_, (histories.shape[0], 1))


class ItemKNN:
    """The neighbours of what someone likes: score(u, i) = Σ_j c_uj·s_ij over i's nearest items j.

    s_ij = x_i·x_j / (|x_i|·|x_j| + shrinkage·c̄) between the columns of the matrix, with c̄ the mean
    confidence: few users in common count less. Deshpande and Karypis 2004, "Item-based top-N
    recommendation algorithms", section 4.1, with the shrinkage of Bell and Koren 2007.

    >>> X = csr_matrix([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    >>> ItemKNN(shrinkage=2).fit(X).scores(csr_matrix([[1, 0, 0]])).tolist()
    [[0.0, 0.5, 0.0]]
    """

    def __init__(self, n_neighbors: int = 100, shrinkage: float = 20.0) -> None:
        self.n_neighbors = n_neighbors
        self.shrinkage = shrinkage

    def fit(self, X: csr_matrix) -> Self:
        X = X.astype(np.float32, copy=False)
        columns = X.T.tocsr()
        norms = np.sqrt(np.asarray(columns.multiply(columns).sum(axis=1)).ravel())
        shrinkage = np.float32(self.shrinkage * X.data.mean())
        blocks = []
        for span in spans(X.shape[1]):
            cosines = (columns[span] @ X).toarray()
            cosines /= np.outer(norms[span], norms).astype(np.float32) + shrinkage
            cosines[np.arange(len(cosines)), np.arange(span.start, span.stop)] = 0
            blocks.append(csr_matrix(_largest(cosines, self.n_neighbors)))
        # Rows of the liked, columns of the candidates.
        self.similarities_ = vstack(blocks).T.tocsr()
        return self

    def scores(self, histories: csr_matrix) -> np.ndarray:
        return _unless_empty((histories @ self.similarities_).toarray(), histories)


class EASE:
    """Linear regression of every item on all others: score(u, i) = Σ_j c_uj·B_ji.

    With P = (XᵀX + λI)⁻¹, B_ij = −P_ij / P_jj and B_jj = 0: the minimum of |X − XB|² + λ|B|² among
    matrices with a zero diagonal. λ = reg·c̄, with c̄ the mean confidence. Steck 2019,
    "Embarrassingly shallow autoencoders for sparse data", equations 6 to 8.

    Raises `TooLargeError` for more than 20,000 items that are not cold.

    >>> X = csr_matrix([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    >>> EASE(reg=2).fit(X).scores(csr_matrix([[1, 0, 0]])).tolist()
    [[0.0, 0.5, 0.0]]
    """

    def __init__(self, reg: float = 400.0) -> None:
        self.reg = reg

    def fit(self, X: csr_matrix) -> Self:
        X = X.astype(np.float32, copy=False)
        self.n_items_ = X.shape[1]
        self.items_ = np.flatnonzero(X.getnnz(axis=0))
        n = len(self.items_)
        if n > MOST_ITEMS_OF_EASE:
            raise TooLargeError(
                f"{n:,} items have interactions, and its matrix of all pairs is made for "
                f"{MOST_ITEMS_OF_EASE:,} at most ({n * n * 4 / 1e9:.0f} GB)"
            )
        known = X[:, self.items_]
        columns = known.T.tocsr()
        weights = np.empty((n, n), dtype=np.float32)
        for span in spans(n):
            weights[span] = (columns[span] @ known).toarray()
        weights[np.diag_indices(n)] += np.float32(self.reg * X.data.mean())
        _invert(weights)
        weights /= -np.diag(weights).copy()
        weights[np.diag_indices(n)] = 0
        self.weights_ = weights
        return self

    def scores(self, histories: csr_matrix) -> np.ndarray:
        scores = np.zeros((histories.shape[0], self.n_items_), dtype=np.float32)
        scores[:, self.items_] = histories[:, self.items_] @ self.weights_
        return _unless_empty(scores, histories)


BASELINES: dict[str, type[Popularity] | type[ItemKNN] | type[EASE]] = {
    "popularity": Popularity,
    "item-knn": ItemKNN,
    "ease": EASE,
}


def spans(n_items: int) -> list[slice]:
    """Blocks of rows of an n_items × n_items matrix, of at most 64 MB each."""
    step = max(1, PRODUCTS_AT_ONCE // max(1, n_items))
    return [slice(i, min(i + step, n_items)) for i in range(0, n_items, step)]


def _largest(rows: np.ndarray, k: int) -> np.ndarray:
    """All but the k largest numbers of each row made zero, in place; of equal ones all stay."""
    if k < rows.shape[1]:
        least = np.partition(rows, -k, axis=1)[:, -k]
        rows[rows < least[:, None]] = 0
    return rows


def _invert(matrix: np.ndarray) -> None:
    """A symmetric positive definite matrix by its inverse, in place, by Cholesky."""
    # LAPACK counts rows and columns the other way round, so that `.T` costs no copy. One BLAS
    # thread: the last bits must not depend on how many there are.
    with one_blas_thread():
        factor, failed = spotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        if not failed:
            inverse, failed = spotri(factor, lower=1, overwrite_c=1)
    if failed:
        raise DataError("EASE^R cannot be solved: the confidences are too far apart")
    if not np.shares_memory(inverse, matrix):
        matrix[...] = inverse.T
    for span in spans(len(matrix)):  # the upper triangle is the answer, the lower one its mirror
        rest = slice(span.stop, None)
        matrix[rest, span] = matrix[span, rest].T
        square = np.triu(matrix[span, span])
        matrix[span, span] = square + np.triu(square, 1).T


def _unless_empty(scores: np.ndarray, histories: csr_matrix) -> np.ndarray:
    """−∞ for who likes nothing; in place."""
    liked = np.asarray(histories.sum(axis=1)).ravel() > 0
    scores[~liked] = -np.inf
    return scores
