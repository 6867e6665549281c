"""Embeddings from ratings: matrix factorisation with biases."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from qkvsearch.data.interactions import Interactions
from qkvsearch.embeddings._base import (
    CollaborativeModel,
    Progress,
    is_positive,
    random_generator,
    require,
)
from qkvsearch.embeddings._kernels import descend
from qkvsearch.embeddings.factors import RatingFactors
from qkvsearch.errors import DataError


class BiasedMF(CollaborativeModel):
    """Ratings as r̂ = μ + b_u + b_i + p_u·q_i: a mean, two biases, and a meeting of tastes.

    Minimises Σ_observed (r − r̂)² + reg·(b_u² + b_i² + |p_u|² + |q_i|²), with r in standard
    deviations from the mean, by stochastic gradient descent (Koren, Bell and Volinsky 2009, "Matrix
    Factorization Techniques for Recommender Systems", equations 4 and 5). The learning rate falls
    linearly to zero over the epochs, which settles the embeddings without a held-out part to stop
    by. Users come in a new random order each epoch, the ratings of one in the order of the items.

    Parameters: n_components, the embedding size d; max_iter, the epochs; learning_rate of the
    first; reg > 0, the penalty per rating; init_scale, the standard deviation that embeddings start
    with; random_state; callback(iteration, max_iter), called after each epoch. The work is
    sequential, so the result never depends on threads. `benchmarks/collaborative_defaults.py` chose
    the defaults.

    Fitted: mean_; user_biases_ (n_users,), item_biases_ (n_items,); user_embeddings_ (n_users, d),
    item_embeddings_ (n_items, d), float32, zero for who has no ratings; rating_range_, the lowest
    and the highest rating; user_ids_ and item_ids_, None after a matrix; factors_, all that
    answering needs.

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

        Every stored value is a rating, a stored zero too. Raises `DataError` for ratings that are
        not finite, naming the pair, and for `Interactions` without ratings.
        """
        self._check_parameters()
        ratings = self._read(X)
        if not ratings.nnz:
            raise DataError("there is nothing to learn from: no user has rated an item")
        bad = ~np.isfinite(ratings.data)
        self._refuse(ratings, bad, "is no rating: leave the pair out or use a finite number")
        self._descend(ratings)
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
            value = getattr(self, name)
            require(value >= 1, name, value, "at least 1")
        for name in ("learning_rate", "init_scale"):
            value = getattr(self, name)
            require(is_positive(value), name, value, "above 0")
        require(is_positive(self.reg), "reg", self.reg, "above 0")

    def _descend(self, ratings: csr_matrix) -> None:
        rng = random_generator(self.random_state)
        n_users, n_items = ratings.shape
        mean, scale = ratings.data.mean(dtype=float), ratings.data.std(dtype=float) or 1.0
        # In standard deviations, so that one learning rate serves stars and percentages.
        targets = ((ratings.data - mean) / scale).astype(np.float32)
        user_biases, item_biases = np.zeros(n_users, np.float32), np.zeros(n_items, np.float32)
        users, items = self._start(rng, n_users), self._start(rng, n_items)
        unrated = np.bincount(ratings.indices, minlength=n_items) == 0
        users[np.diff(ratings.indptr) == 0] = 0
        items[unrated] = 0
        indptr = ratings.indptr.astype(np.int64)
        columns = ratings.indices.astype(np.int32, copy=False)
        for iteration in range(1, self.max_iter + 1):
            rate = self.learning_rate * (1 - (iteration - 1) / self.max_iter)
            descend(
                rng.permutation(n_users), indptr, columns, targets, user_biases, item_biases,
                users, items, np.float32(rate), np.float32(self.reg),
            )  # fmt: skip
            if self.callback is not None:
                self.callback(iteration, self.max_iter)
        self.mean_ = float(mean)
        self.rating_range_ = float(ratings.data.min()), float(ratings.data.max())
        scale = np.float32(scale)
        self.user_biases_, self.item_biases_ = user_biases * scale, item_biases * scale
        self.user_embeddings_, self.item_embeddings_ = users * scale, items
        self.factors_ = RatingFactors(
            self.item_biases_, items, self.mean_, *self.rating_range_, reg=self.reg
        )

    def _start(self, rng: np.random.Generator, n_rows: int) -> np.ndarray:
        noise = rng.standard_normal((n_rows, self.n_components), dtype=np.float32)
        return noise * np.float32(self.init_scale)
