"""Matrix factorization with biases: embeddings from ratings."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix

from qkvsearch._utils.callbacks import Callback
from qkvsearch._utils.threads import thread_pool
from qkvsearch._utils.validation import check_fitted, check_positive, check_whole, model_generator
from qkvsearch.errors import DataError
from qkvsearch.models.base import CollaborativeModel, latest_of_each
from qkvsearch.models.sgd import Grid, LearnedParameters, Penalties, group_count
from qkvsearch.models.user_vectors import RatingFactors
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.ratings import Scale, ends_of

# In standard deviations. A rating of 1 among fives is nearer than this; the end of a heavy tail is
# further away, and would dominate the gradient.
FURTHEST_TARGET = 10.0
DIVERGED = 100.0
# Each halves the learning rate: enough from 1 down to a rate that suits most data.
MAX_RESTARTS = 6


@dataclass(eq=False, repr=False)
class BiasedFactorization(CollaborativeModel):
    """The implementation of `BiasedMF` without scikit-learn."""

    n_components: int = 64
    _: KW_ONLY
    max_iter: int = 20
    learning_rate: float = 0.045
    reg: float = 0.04
    damping: float = 50.0
    bias_reg: float = 3.0
    init_scale: float = 0.01
    n_threads: int | None = None
    random_state: Any = None
    callback: Callback | None = None

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn from a sparse matrix (n_users, n_items) of ratings or from rated `Interactions`.

        Every stored value is a rating, a stored zero too; pairs of `Interactions` without a rating
        (NaN) are left out. Raises `DataError` for ratings that are not finite, NaN in a
        matrix too, naming the pair, and for `Interactions` without ratings.
        """
        self._check_parameters()
        if isinstance(X, Interactions) and X.ratings is not None:
            X = X.take(~np.isnan(X.ratings))
        ratings = self._read(X)
        if not ratings.nnz:
            raise DataError("there is nothing to learn from: no user has rated an item")
        bad = ~np.isfinite(ratings.data)
        self._refuse(ratings, bad, "is no rating: leave the pair out or use a finite number")
        self._learn(ratings, X.scale if isinstance(X, Interactions) else None)
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return the ratings (n,) of the pairs users (n,), items (n,), clipped to the scale.

        They are row numbers after `fit(matrix)`, ids after `fit(Interactions)`; others raise
        `UnknownIdError`. One of them may be a scalar.
        """
        check_fitted(self)
        u, i = self._pairs(users, items)
        return self.factors_.predict(self.user_embeddings_[u], self.user_biases_[u], i)

    def fold_in(self, items: Any, ratings: Any) -> tuple[float, np.ndarray]:
        """Solve exactly for the bias and the embedding (d,) of a user who rated these items (h,).

        Items are named as in `predict`; one that is named several times has its last rating.
        `factors_.predict` turns the two into ratings.
        """
        check_fitted(self)
        if ratings is None:
            raise DataError("`ratings` has one rating for each item: a user is known by them")
        positions, numbers = latest_of_each(self._item_positions(items), ratings)
        bias, embedding = self.factors_.fold_in(positions, numbers)
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
        if self.n_threads is not None:
            check_whole("n_threads", self.n_threads)
        for name in ("learning_rate", "reg", "damping", "bias_reg", "init_scale"):
            check_positive(name, getattr(self, name))

    def _learn(self, ratings: csr_matrix, declared_scale: Scale) -> None:
        scale = declared_scale or ends_of(ratings.data)
        values = np.clip(ratings.data.astype(np.float64), *scale)
        mean, deviation = values.mean(), values.std() or 1.0
        # In standard deviations, so that one learning rate serves stars and percentages.
        targets = np.clip((values - mean) / deviation, -FURTHEST_TARGET, FURTHEST_TARGET)
        standard = csr_matrix(
            (targets.astype(np.float32), ratings.indices, ratings.indptr), shape=ratings.shape
        )
        learned = self._descend_or_restart(standard)
        self.mean_ = float(mean)
        self.rating_range_ = scale
        # Back from standard deviations. An affinity is a product of two embeddings: one is scaled.
        unit = np.float32(deviation)
        self.user_biases_ = learned.user_biases * unit
        self.item_biases_ = learned.item_biases * unit
        self.user_embeddings_ = learned.user_embeddings * unit
        self.item_embeddings_ = learned.item_embeddings
        self.factors_ = RatingFactors(
            self.item_biases_,
            self.item_embeddings_,
            self.mean_,
            *self.rating_range_,
            reg=float(self.reg),
            damping=float(self.damping),
            bias_reg=float(self.bias_reg),
        )

    def _descend_or_restart(self, ratings: csr_matrix) -> LearnedParameters:
        """Return the result of the first learning rate that converges, halving it each time."""
        rng = model_generator(self.random_state)
        penalties = Penalties(self.reg, self.damping, self.bias_reg)
        grid = Grid.of(ratings, penalties, group_count(ratings.nnz))
        self.learning_rate_ = float(self.learning_rate)
        with thread_pool(self.n_threads) as pool:
            for _ in range(1 + MAX_RESTARTS):
                learned = self._start(ratings, rng)
                if self._descend(learned, grid, rng, pool):
                    return learned
                self.learning_rate_ /= 2
        raise DataError(
            f"the descent diverges, at a learning_rate of {2 * self.learning_rate_:g} too: lower "
            f"learning_rate (here {self.learning_rate!r}) or init_scale ({self.init_scale!r})"
        )

    def _descend(
        self, learned: LearnedParameters, grid: Grid, rng: np.random.Generator, pool: Executor
    ) -> bool:
        """Run all epochs over standardized ratings in place; return False when they diverge."""
        for iteration in range(1, self.max_iter + 1):
            rate = self.learning_rate_ * (1 - (iteration - 1) / self.max_iter)
            grid.descend(learned, rate, rng, pool)
            # `not <` and not `>=`: a NaN counts as diverged.
            if not all(np.abs(array).max() < DIVERGED for array in learned):
                return False
            if self.callback is not None:
                self.callback(iteration, self.max_iter)
        return True

    def _start(self, ratings: csr_matrix, rng: np.random.Generator) -> LearnedParameters:
        """Return zero biases, and random embeddings, zero for users and items without ratings."""
        user_counts, item_counts = ratings.getnnz(axis=1), ratings.getnnz(axis=0)
        learned = LearnedParameters(
            user_biases=np.zeros(len(user_counts), np.float32),
            item_biases=np.zeros(len(item_counts), np.float32),
            user_embeddings=self._random_rows(len(user_counts), rng),
            item_embeddings=self._random_rows(len(item_counts), rng),
        )
        learned.user_embeddings[user_counts == 0] = 0
        learned.item_embeddings[item_counts == 0] = 0
        return learned

    def _random_rows(self, n: int, rng: np.random.Generator) -> np.ndarray:
        rows = rng.standard_normal((n, self.n_components), dtype=np.float32)
        return rows * np.float32(self.init_scale)
