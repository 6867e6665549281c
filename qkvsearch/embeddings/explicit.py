"""Embeddings from ratings: matrix factorisation with biases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from qkvsearch.data.interactions import Interactions
from qkvsearch.embeddings._base import (
    CollaborativeModel,
    Progress,
    check_positive,
    check_whole,
    random_generator,
)
from qkvsearch.embeddings._kernels import descend
from qkvsearch.embeddings.factors import RatingFactors
from qkvsearch.embeddings.feedback import rating_scale
from qkvsearch.errors import DataError

# In standard deviations. A one among fives lies within; the top of a heavy tail does not, and
# would pull everything towards itself.
FURTHEST_TARGET = 10.0
DIVERGED = 100.0
# From a learning rate of 1 down to one that suits most data.
MAX_RESTARTS = 6

# User biases (n_users,), item biases (n_items,), user and item embeddings.
Learnt = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class BiasedMF(CollaborativeModel):
    """Ratings as r̂ = μ + b_u + b_i + p_u·q_i: a mean, two biases, and a meeting of tastes.

    Minimises Σ_observed (r − r̂)² + reg·(b_u² + b_i² + |p_u|² + |q_i|²), with r in standard
    deviations from the mean, by stochastic gradient descent (Koren, Bell and Volinsky 2009, "Matrix
    Factorization Techniques for Recommender Systems", equations 4 and 5). The learning rate falls
    linearly to zero over the epochs, which settles the embeddings without a held-out part to stop
    by. Users come in a new random order each epoch, the ratings of one in the order of the items.

    Ratings far outside the others (`feedback.rating_scale`) count as the end of the scale, and none
    counts as more than 10 deviations from the mean. A descent that diverges all the same starts
    again with half the learning rate, up to six times; then `fit` raises `DataError`.

    Parameters: n_components, the embedding size d; max_iter, the epochs; learning_rate of the
    first; reg > 0, the penalty per rating; init_scale, the standard deviation that embeddings start
    with; random_state; callback(iteration, max_iter), called after each epoch, from 1 again after a
    restart. The work is sequential, so the result never depends on threads.
    `benchmarks/collaborative_defaults.py` chose the defaults.

    Fitted: mean_; user_biases_ (n_users,), item_biases_ (n_items,); user_embeddings_ (n_users, d),
    item_embeddings_ (n_items, d), float32, zero for who has no ratings; rating_range_, the scale
    that predictions stay within; learning_rate_ as used; user_ids_ and item_ids_, None after a
    matrix; factors_, all that answering needs.

    >>> ratings = csr_matrix([[5, 5, 1], [4, 5, 2], [1, 2, 5]])
    >>> model = BiasedMF(n_components=2, random_state=0).fit(ratings)
    >>> bool(model.predict(0, 0)[0] > model.predict(0, 2)[0])
    True
    """

    def __init__(
        self,
        n_components: int = 64,
        *,
        max_iter: int = 40,
        learning_rate: float = 0.02,
        reg: float = 0.055,
        init_scale: float = 0.02,
        random_state: Any = None,
        callback: Progress | None = None,
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.reg = reg
        self.init_scale = init_scale
        self.random_state = random_state
        self.callback = callback

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn from a sparse matrix (n_users, n_items) of ratings or from rated `Interactions`.

        Every stored value is a rating, a stored zero too; pairs of `Interactions` that met without
        a rating (NaN) are left out. Raises `DataError` for ratings that are not finite, NaN in a
        matrix too, naming the pair, and for `Interactions` without ratings.
        """
        self._check_parameters()
        ratings = self._read(_rated(X) if isinstance(X, Interactions) else X)
        if not ratings.nnz:
            raise DataError("there is nothing to learn from: no user has rated an item")
        bad = ~np.isfinite(ratings.data)
        self._refuse(ratings, bad, "is no rating: leave the pair out or use a finite number")
        self._learn(ratings)
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Ratings (n,) of the pairs users (n,), items (n,), within the scale seen in training.

        Row numbers after `fit(matrix)`, own ids after `fit(Interactions)`; others raise
        `UnknownIdError`. One of the two may be single.
        """
        check_is_fitted(self)
        u, i = self._pairs(users, items)
        return self.factors_.predict(self.user_embeddings_[u], self.user_biases_[u], i)

    def fold_in(self, items: Any, ratings: Any) -> tuple[float, np.ndarray]:
        """The bias and the embedding (d,) of someone who rated these items (h,), solved exactly.

        Items are named as in `predict`. `factors_.predict` turns the two into ratings.
        """
        check_is_fitted(self)
        bias, embedding = self.factors_.fold_in(self._item_positions(items), ratings)
        return bias, embedding.astype(np.float32)

    def _values(self, interactions: Interactions) -> np.ndarray:
        if interactions.ratings is None:
            raise DataError(
                "BiasedMF learns from ratings and these interactions have none: "
                "name their rating column, or use ImplicitALS, which needs none"
            )
        return interactions.ratings

    def _check_parameters(self) -> None:
        for name in ("n_components", "max_iter"):
            check_whole(name, getattr(self, name))
        for name in ("learning_rate", "reg", "init_scale"):
            check_positive(name, getattr(self, name))

    def _learn(self, ratings: csr_matrix) -> None:
        scale = rating_scale(ratings.data)
        assert scale is not None, "all ratings are finite here"
        values = np.clip(ratings.data.astype(np.float64), *scale)
        mean, deviation = values.mean(), values.std() or 1.0
        # In standard deviations, so that one learning rate serves stars and percentages.
        targets = np.clip((values - mean) / deviation, -FURTHEST_TARGET, FURTHEST_TARGET)
        standard = csr_matrix(
            (targets.astype(np.float32), ratings.indices, ratings.indptr), shape=ratings.shape
        )
        user_biases, item_biases, users, items = self._descend_or_restart(standard)
        self.mean_ = float(mean)
        self.rating_range_ = scale
        unit = np.float32(deviation)
        self.user_biases_, self.item_biases_ = user_biases * unit, item_biases * unit
        self.user_embeddings_, self.item_embeddings_ = users * unit, items
        self.factors_ = RatingFactors(
            self.item_biases_, items, self.mean_, *self.rating_range_, reg=self.reg
        )

    def _descend_or_restart(self, ratings: csr_matrix) -> Learnt:
        """The descent at the first of the rates, each half of the one before, that converges."""
        rng = random_generator(self.random_state)
        self.learning_rate_ = float(self.learning_rate)
        for _ in range(1 + MAX_RESTARTS):
            learnt = self._descend(ratings, rng)
            if learnt is not None:
                return learnt
            self.learning_rate_ /= 2
        raise DataError(
            f"the descent diverges, at a learning_rate of {2 * self.learning_rate_:g} too: lower "
            f"learning_rate (here {self.learning_rate!r}) or init_scale ({self.init_scale!r})"
        )

    def _descend(self, ratings: csr_matrix, rng: np.random.Generator) -> Learnt | None:
        """All epochs over standardised ratings; None as soon as they diverge."""
        n_users, n_items = ratings.shape
        user_biases, item_biases = np.zeros(n_users, np.float32), np.zeros(n_items, np.float32)
        users, items = self._start(rng, n_users), self._start(rng, n_items)
        unrated = np.bincount(ratings.indices, minlength=n_items) == 0
        users[np.diff(ratings.indptr) == 0] = 0
        items[unrated] = 0
        learnt = user_biases, item_biases, users, items
        indptr = ratings.indptr.astype(np.int64)
        columns = ratings.indices.astype(np.int32, copy=False)
        for iteration in range(1, self.max_iter + 1):
            rate = self.learning_rate_ * (1 - (iteration - 1) / self.max_iter)
            descend(
                rng.permutation(n_users), indptr, columns, ratings.data, *learnt,
                np.float32(rate), np.float32(self.reg),
            )  # fmt: skip
            # Written so that NaN, which compares as neither, counts as diverged.
            if not all(np.abs(part).max() < DIVERGED for part in learnt):
                return None
            if self.callback is not None:
                self.callback(iteration, self.max_iter)
        return learnt

    def _start(self, rng: np.random.Generator, n_rows: int) -> np.ndarray:
        noise = rng.standard_normal((n_rows, self.n_components), dtype=np.float32)
        return noise * np.float32(self.init_scale)


def _rated(log: Interactions) -> Interactions:
    """The log without the pairs that met but were not rated; users and items keep their rows."""
    if log.ratings is None or not np.isnan(log.ratings).any():
        return log
    rated = ~np.isnan(log.ratings)
    return replace(
        log,
        users=log.users[rated],
        items=log.items[rated],
        ratings=log.ratings[rated],
        times=None if log.times is None else log.times[rated],
    )
