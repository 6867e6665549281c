"""The recommenders that are evaluated: our models, and baselines such as item-kNN and EASE^R."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
from scipy.linalg.lapack import spotrf, spotri
from scipy.sparse import csr_matrix, vstack

from qkvsearch._utils.callbacks import Callback
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch._utils.validation import random_seed
from qkvsearch.errors import DataError, QkvError, quantity
from qkvsearch.models.cold_start import fit_text_map, place_cold_items
from qkvsearch.models.next_item import NextItem
from qkvsearch.models.preferences import (
    COLLABORATIVE,
    Preferences,
    learn_preferences,
    learners,
)
from qkvsearch.tables.ids import Ids
from qkvsearch.tables.interactions import Interactions

# The size of a block of an items × items matrix: 16 million numbers, 64 MB.
MAX_BLOCK = 1 << 24
# EASE^R stores a number for each pair of items, 400 MB for 10,000, and takes n³ steps.
MAX_EASE_ITEMS = 10_000
# Neighbours as near as the last one all count up to this total, 270 MB.
MAX_NEIGHBORS = 1 << 25

NEXT_ITEM = "next-item"
# Under the other protocols, held-out items may precede the history.
NEXT_ITEM_PROTOCOLS = ("leave-last-out", "time")


class System(Protocol):
    """A recommender that learns from a matrix of interactions and scores items for histories.

    The matrix (n_users, n_items) contains confidences, for `NextItems` ranks in time. left_out_:
    a phrase for people about what was too large for the method, or empty.
    """

    left_out_: str

    def fit(self, X: csr_matrix) -> Self:
        """Learn within bounded memory, however large the matrix."""

    def scores(self, histories: csr_matrix) -> np.ndarray:
        """Return a new array (n, n_items), float32, for histories (n, n_items).

        Items with −∞ are never recommended; these are all items for an empty history, except with
        `Popularity`.
        """


class Fused:
    """All heads of `recommend` in the shares that they learn.

    keys: text vectors (n_items, t), which place cold items. placing(done, total): progress of that.
    callback(done, total): progress of each head. settings: of all heads, as `settings_by_head`
    reads them.
    """

    left_out_ = ""

    def __init__(
        self,
        keys: np.ndarray | None = None,
        placing: Callback | None = None,
        *,
        random_state: Any = 0,
        callback: Callback | None = None,
        **settings: Any,
    ) -> None:
        self.keys, self.placing = keys, placing
        self.random_state = random_seed(random_state)

        def progress(stage: str, done: int, total: int) -> None:
            if callback is not None:
                callback(done, total)

        self.learners = learners(settings, self.random_state, progress)

    def fit(self, X: csr_matrix) -> Self:
        return self.using(learn_preferences(X, self.learners, self.random_state), X)

    def using(self, preferences: Preferences, X: csr_matrix) -> Self:
        """Score by these preferences, with the items that X has no interactions with placed by
        their texts.
        """
        self.preferences_ = preferences
        if self.keys is None:
            return self
        if self.placing is not None:
            self.placing(0, 1)
        items = preferences.factors.item_embeddings
        text_map = fit_text_map(self.keys, items)
        if text_map is not None:
            items = place_cold_items(items, self.keys, text_map, X.getnnz(axis=0) == 0)
        if self.placing is not None:
            self.placing(1, 1)
        factors = replace(preferences.factors, item_embeddings=items)
        self.preferences_ = preferences.with_head(COLLABORATIVE, factors)
        return self

    def scores(self, histories: csr_matrix) -> np.ndarray:
        return _unless_empty(self.preferences_.scores(histories), histories)


@dataclass
class Stored:
    """The heads of `recommend` as a build stores them. Nothing is learned."""

    preferences_: Preferences
    left_out_: str = ""

    def fit(self, X: csr_matrix) -> Self:
        return self

    def scores(self, histories: csr_matrix) -> np.ndarray:
        return _unless_empty(self.preferences_.scores(histories), histories)


@dataclass
class HeadAlone:
    """One head of a fitted `Fused`, or of what is stored."""

    fused: Fused | Stored
    name: str
    left_out_: str = ""

    def fit(self, X: csr_matrix) -> Self:
        return self

    def scores(self, histories: csr_matrix) -> np.ndarray:
        scores = self.fused.preferences_.head_scores(self.name, histories)
        return _unless_empty(scores, histories)


class NextItems:
    """`NextItem` with any settings, used as in `recommend(model="next-item")`: with all liked items
    of a history, oldest first. Matrices contain each item's rank in time, from 1.
    """

    left_out_ = ""

    def __init__(self, **settings: Any) -> None:
        self.model = NextItem(**settings)

    @staticmethod
    def check(log: Interactions, protocol: str) -> None:
        """Raise `QkvError` if nothing can be learned or evaluated, before any work."""
        if protocol not in NEXT_ITEM_PROTOCOLS:
            raise QkvError(
                f"`next_item` predicts what comes last, but `protocol` {protocol} holds out "
                f"interactions of any time: use {' or '.join(NEXT_ITEM_PROTOCOLS)}"
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


class Baseline:
    """Base class of the baselines. callback(done, total): progress of `fit`."""

    left_out_ = ""

    def __init__(self, callback: Callback | None = None) -> None:
        self.callback = callback

    def _report(self, done: int, total: int) -> None:
        if self.callback is not None:
            self.callback(done, total)


class Popularity(Baseline):
    """The most popular items: score(i) = Σ_users c_ui.

    >>> Popularity().fit(csr_matrix([[1, 0], [1, 1]])).scores(csr_matrix([[0, 1]])).tolist()
    [[2.0, 1.0]]
    """

    def fit(self, X: csr_matrix) -> Self:
        self.counts_ = np.asarray(X.sum(axis=0), dtype=np.float32).ravel()
        return self

    def scores(self, histories: csr_matrix) -> np.ndarray:
        return np.tile(self.counts_, (histories.shape[0], 1))


class ItemKNN(Baseline):
    """Item-based nearest neighbours: score(u, i) = Σ_j c_uj·s_ij over i's nearest items j.

    s_ij = x_i·x_j / (|x_i|·|x_j| + shrinkage·c̄) between the columns of the matrix, with c̄ the mean
    confidence: few users in common count less. Deshpande and Karypis 2004, "Item-based top-N
    recommendation algorithms", section 4.1, with the shrinkage of Bell and Koren 2007.

    Products are computed for pairs with a common user, in blocks of rows. Neighbours as near as the
    last of the n_neighbors all count, up to 33 million neighbours in all.

    >>> X = csr_matrix([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    >>> ItemKNN(shrinkage=2).fit(X).scores(csr_matrix([[1, 0, 0]])).tolist()
    [[0.0, 0.5, 0.0]]
    """

    def __init__(
        self, n_neighbors: int = 100, shrinkage: float = 20.0, callback: Callback | None = None
    ) -> None:
        super().__init__(callback)
        self.n_neighbors = n_neighbors
        self.shrinkage = shrinkage

    def fit(self, X: csr_matrix) -> Self:
        X = X.astype(np.float32)
        shrinkage, n_items = np.float32(self.shrinkage * X.data.mean()), X.shape[1]
        X.eliminate_zeros()
        columns = X.T.tocsr()
        norms = np.sqrt(np.asarray(columns.multiply(columns).sum(axis=1)).ravel())
        limit = max(self.n_neighbors, MAX_NEIGHBORS // max(1, n_items))
        blocks, n_dropped = [], 0
        for span in spans(n_items):
            cosines = columns[span] @ X
            rows = np.repeat(np.arange(span.start, span.stop), np.diff(cosines.indptr))
            cosines.data /= (norms[rows] * norms[cosines.indices]).astype(np.float32) + shrinkage
            cosines.data[cosines.indices == rows] = 0
            n_dropped += _keep_largest(cosines, self.n_neighbors, limit)
            blocks.append(cosines)
            self._report(span.stop, n_items)
        # Rows are liked items, columns candidates.
        self.similarities_ = vstack(blocks).T.tocsr()
        if n_dropped:
            self.left_out_ = f"{quantity(n_dropped, 'neighbour')} as near as others that are kept"
        return self

    def scores(self, histories: csr_matrix) -> np.ndarray:
        return _unless_empty((histories @ self.similarities_).toarray(), histories)


class EASE(Baseline):
    """Linear regression of each item on all others: score(u, i) = Σ_j c_uj·B_ji.

    With P = (XᵀX + λI)⁻¹, B_ij = −P_ij / P_jj and B_jj = 0: the minimum of |X − XB|² + λ|B|² among
    matrices with a zero diagonal. λ = reg·c̄, with c̄ the mean confidence. Steck 2019,
    "Embarrassingly shallow autoencoders for sparse data", equations 6 to 8.

    At most the 10,000 items with the most users are used; the others score 0, like cold items.

    >>> X = csr_matrix([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    >>> EASE(reg=2).fit(X).scores(csr_matrix([[1, 0, 0]])).tolist()
    [[0.0, 0.5, 0.0]]
    """

    def __init__(self, reg: float = 400.0, callback: Callback | None = None) -> None:
        super().__init__(callback)
        self.reg = reg

    def fit(self, X: csr_matrix) -> Self:
        X = X.astype(np.float32, copy=False)
        self.n_items_ = X.shape[1]
        self.items_ = self._select_items(X.getnnz(axis=0))
        selected, n = X[:, self.items_], len(self.items_)
        columns = selected.T.tocsr()
        weights = np.empty((n, n), dtype=np.float32)
        # The inverse takes far longer than the products.
        blocks = spans(n)
        total = 4 * len(blocks)
        for done, span in enumerate(blocks):
            self._report(done, total)
            weights[span] = (columns[span] @ selected).toarray()
        self._report(len(blocks), total)
        weights[np.diag_indices(n)] += np.float32(self.reg * X.data.mean())
        _invert(weights)
        weights /= -np.diag(weights).copy()
        weights[np.diag_indices(n)] = 0
        self.weights_ = weights
        self._report(total, total)
        return self

    def _select_items(self, n_users: np.ndarray) -> np.ndarray:
        """Return the columns of the items that are not cold, or of those with the most users."""
        items = np.flatnonzero(n_users)
        if len(items) <= MAX_EASE_ITEMS:
            return items
        self.left_out_ = (
            f"{len(items) - MAX_EASE_ITEMS:,} of {len(items):,} items, all but the "
            f"{MAX_EASE_ITEMS:,} that most users met: it holds a number for every pair of items"
        )
        return np.sort(np.argsort(-n_users, kind="stable")[:MAX_EASE_ITEMS])

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
    """Return blocks of rows of an n_items × n_items matrix, of at most 64 MB each."""
    step = max(1, MAX_BLOCK // max(1, n_items))
    return [slice(i, min(i + step, n_items)) for i in range(0, n_items, step)]


def _keep_largest(rows: csr_matrix, k: int, limit: int) -> int:
    """Remove all but the k largest numbers of each row, in place; return how many ties are removed.

    Numbers equal to the k-th stay while a row has at most `limit`, then those of the first columns.
    """
    n_dropped = 0
    for start, end in pairwise(rows.indptr.tolist()):
        if end - start <= k:
            continue
        values = rows.data[start:end]
        kth_largest = np.partition(values, -k)[-k]
        values[values < kth_largest] = 0
        excess = int(np.count_nonzero(values)) - limit
        if excess > 0:
            ties = np.flatnonzero(values == kth_largest)
            last = np.argsort(-rows.indices[start:end][ties], kind="stable")[:excess]
            values[ties[last]] = 0
            n_dropped += excess
    rows.eliminate_zeros()
    return n_dropped


def _invert(matrix: np.ndarray) -> None:
    """Invert a symmetric positive definite matrix in place, by Cholesky decomposition."""
    # LAPACK stores matrices by column, so that `.T` costs no copy. With one BLAS thread, the last
    # bits do not depend on the number of threads.
    with one_blas_thread():
        factor, failed = spotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        if not failed:
            inverse, failed = spotri(factor, lower=1, overwrite_c=1)
    if failed:
        raise DataError("EASE^R cannot be solved: the confidences are too far apart")
    if not np.shares_memory(inverse, matrix):
        matrix[...] = inverse.T
    for row in range(1, len(matrix)):  # copy the upper triangle to the lower one
        matrix[row, :row] = matrix[:row, row]


def _unless_empty(scores: np.ndarray, histories: csr_matrix) -> np.ndarray:
    """Set the scores of empty histories to −∞, in place."""
    liked = np.asarray(histories.sum(axis=1)).ravel() > 0
    scores[~liked] = -np.inf
    return scores
