"""Implicit alternating least squares: embeddings of users and items from their interactions."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse

from qkvsearch._utils.callbacks import Callback
from qkvsearch._utils.scratch import counts_of, pieces_of, scratch_array
from qkvsearch._utils.threads import available_cores, thread_pool
from qkvsearch._utils.validation import (
    check_fitted,
    check_positive,
    check_whole,
    is_finite,
    model_generator,
    require,
)
from qkvsearch.errors import DataError
from qkvsearch.models.als_training import LANES, Equations, solve_rows, width_of
from qkvsearch.models.base import CollaborativeModel, latest_of_each, one_entry_per_pair
from qkvsearch.models.pairs import Pairs, by_user_and_by_item
from qkvsearch.models.user_vectors import CONFIDENCES, ImplicitFactors

# The constants of "auto", as the docstring of `ImplicitALS` explains.
AUTO_ALPHA0 = 10.0
AUTO_REG = 0.2
MAX_ALPHA0 = 1.0
MIN_MEAN_LENGTH = 10.0

CHUNKS_PER_THREAD = 8
# Embeddings of more bytes are stored in a file. Smaller ones are faster in memory, since all
# are read in any order and written in each iteration.
LARGE_EMBEDDINGS = 1 << 30
# The number of rows rotated at a time; each batch is copied.
ROTATION_BATCH = 1024


@dataclass(eq=False, repr=False)
class AlternatingLeastSquares(CollaborativeModel):
    """The implementation of `ImplicitALS` without scikit-learn."""

    n_components: int = 64
    _: KW_ONLY
    max_iter: int = 10
    alpha0: float | Literal["auto"] = "auto"
    reg: float | Literal["auto"] = "auto"
    nu: float = 1.0
    cg_steps: int = 2
    init_scale: float = 0.1
    n_threads: int | None = None
    random_state: Any = None
    callback: Callback | None = None

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn from a sparse matrix (n_users, n_items) or from `Interactions`.

        A matrix contains confidences c; a stored zero is no interaction. The ratings and weights of
        `Interactions` become confidences as in a build (`Feedback`). Raises `DataError` for a
        confidence below 0 or above 1e12, with its row and column.
        """
        self._check_parameters()
        observed = self._read_confidences(X)
        n_active = self._alternate(observed)
        gram = finite_gram(self.item_embeddings_.astype(np.float64))
        self.factors_ = ImplicitFactors(
            self.item_embeddings_, gram, self.alpha0_, self.reg_, self.nu, n_active
        )
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return the scores (n,) of the pairs users (n,), items (n,); one of them may be a scalar.

        They are row numbers after `fit(matrix)`, ids after `fit(Interactions)`; others raise
        `UnknownIdError`.
        """
        check_fitted(self)
        u, i = self._pairs(users, items)
        return np.einsum("nd,nd->n", self.user_embeddings_[u], self.item_embeddings_[i])

    def fold_in(self, history: Any, confidences: Any = None) -> np.ndarray:
        """Solve exactly for the embedding (d,) of a user who was not in the training data.

        history: their items, given as in `predict`. An item that is named several times counts
        once, with its last confidence. A sparse matrix (n, n_items) of confidences describes n
        users and gives (n, d); there, repeated entries add up.
        """
        check_fitted(self)
        if not issparse(history):
            rows = self._item_positions(history)
            positions, numbers = latest_of_each(rows, confidences, CONFIDENCES)
            return self.factors_.fold_in(positions, numbers).astype(np.float32)
        if confidences is not None:
            raise DataError("a sparse history contains its confidences: pass no `confidences`")
        histories = one_entry_per_pair(history)
        if histories.shape[1] != len(self.item_embeddings_):
            raise DataError(
                f"histories have {histories.shape[1]} columns, the model "
                f"{len(self.item_embeddings_)} items: give one column per item"
            )
        return self.factors_.fold_in_many(histories).astype(np.float32)

    def strengths(self, X: csr_matrix) -> tuple[float, float]:
        """Return α₀ and reg of a fit to a sparse matrix (n_users, n_items) of confidences, without
        the fit. Raises `DataError` as `fit` does.
        """
        return self._strengths(self._read_confidences(X))

    def _strengths(self, observed: csr_matrix) -> tuple[float, float]:
        n_users = np.count_nonzero(np.diff(observed.indptr))
        n_items = np.count_nonzero(counts_of(observed.indices, observed.shape[1]))
        mean_confidence = float(observed.data.mean(dtype=np.float64))
        alpha0, reg = auto_strengths(observed.nnz / n_users, mean_confidence, int(n_items))
        if self.alpha0 != "auto":
            alpha0 = float(self.alpha0)
        if self.reg != "auto":
            reg = float(self.reg)
        return alpha0, reg

    def _check_parameters(self) -> None:
        for name in ("n_components", "max_iter", "cg_steps"):
            check_whole(name, getattr(self, name))
        if self.n_threads is not None:
            check_whole("n_threads", self.n_threads)
        check_positive("alpha0", self.alpha0, "auto")
        check_positive("reg", self.reg, "auto")
        check_positive("init_scale", self.init_scale)
        nu_valid = is_finite(self.nu) and self.nu >= 0
        require(nu_valid, "nu", self.nu, "a finite number, 0 or above")

    def _alternate(self, observed: csr_matrix) -> int:
        """Solve for the users with the items fixed, then for the items, `max_iter` times.

        Return the number of items that have a history.
        """
        n_threads = self.n_threads or available_cores()
        rng = model_generator(self.random_state)
        by_user, by_item = by_user_and_by_item(observed)
        users = FactorSide.start(by_user, self.n_components, self.init_scale, rng, n_threads)
        items = FactorSide.start(by_item, self.n_components, self.init_scale, rng, n_threads)
        self.alpha0_, self.reg_ = self._strengths(observed)
        d, rotation = self.n_components, np.eye(self.n_components)
        with thread_pool(n_threads) as pool:
            for iteration in range(1, self.max_iter + 1):
                rotation = rotation @ self._improve(users, items, pool)
                rotation = rotation @ self._improve(items, users, pool)
                if self.callback is not None:
                    self.callback(iteration, self.max_iter)
            # Rotate back to the initial axes, so that small changes of the data change little.
            for side in (users, items):
                side.rotate(rotation.T, pool)
        self.user_embeddings_ = np.ascontiguousarray(users.embeddings[:, :d])
        self.item_embeddings_ = np.ascontiguousarray(items.embeddings[:, :d])
        return items.n_active

    def _improve(self, side: FactorSide, others: FactorSide, pool: Executor) -> np.ndarray:
        """Take a few conjugate gradient steps for each row of one side, shared among the threads.

        First the embeddings of both sides are rotated to the principal axes (d, d) of the other
        side, which are returned. Dot products stay the same. But the term over all pairs becomes
        diagonal, and that of a history, a sample of the same embeddings, nearly so: with the
        diagonal as preconditioner, the first step does most of the work.
        """
        d, width = self.n_components, width_of(self.n_components)
        values, axes = principal_axes(others.embeddings[:, :d])
        side.rotate(axes, pool)
        others.rotate(axes, pool)
        spectrum = np.zeros(others.embeddings.shape[1], np.float32)
        with np.errstate(over="ignore"):
            spectrum[:d] = self.alpha0_ * values
            strength = side.lengths + self.alpha0_ * others.n_active
            ridges = (self.reg_ * strength**self.nu).astype(np.float32)
        require_finite(spectrum)
        require_finite(ridges)

        equations = Equations(spectrum, ridges, others.embeddings)

        def solve(rows: np.ndarray) -> None:
            solve_rows(rows, side.pairs, equations, side.embeddings, self.cg_steps, width)

        list(pool.map(solve, side.chunks))
        return axes


def auto_strengths(mean_length: float, mean_confidence: float, n_items: int) -> tuple[float, float]:
    """Return α₀ and reg by the formulas of `ImplicitALS`."""
    m = min(AUTO_ALPHA0, MAX_ALPHA0 * n_items / mean_length)
    alpha0 = m * mean_confidence * mean_length / n_items
    # The penalty of a mean user, reg·(n̄ + α₀·n_items), is reg·n̄·(1 + m·c̄); this factor makes it
    # proportional to (1 + m)·c̄.
    factor = (1 + m) * mean_confidence / (1 + m * mean_confidence)
    return alpha0, AUTO_REG / max(mean_length, MIN_MEAN_LENGTH) ** (2 / 3) * factor


@dataclass(frozen=True)
class FactorSide:
    """Users or items: their histories, and the embeddings that are solved for."""

    pairs: Pairs
    # (n,): of the histories.
    lengths: np.ndarray
    # The rows that have a history, divided for the threads.
    chunks: list[np.ndarray]
    # float32 (n, d): d is n_components rounded up for the solver; the added components stay zero.
    embeddings: np.ndarray

    @classmethod
    def start(
        cls,
        pairs: Pairs,
        n_components: int,
        scale: float,
        rng: np.random.Generator,
        n_threads: int,
    ) -> FactorSide:
        """Create random embeddings for the rows with a history, and zeros for the others."""
        lengths = pairs.lengths
        wide = LANES * len(width_of(n_components))
        embeddings = scratch_array((len(lengths), wide), np.float32, LARGE_EMBEDDINGS)
        for rows in pieces_of(len(lengths)):
            shape = (rows.stop - rows.start, n_components)
            start = rng.standard_normal(shape, dtype=np.float32)
            start *= np.float32(scale / np.sqrt(n_components))
            start[lengths[rows] == 0] = 0
            embeddings[rows, :n_components] = start
        # Deal out the rows from the longest history to the shortest: chunks take equal time.
        order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
        n_chunks = CHUNKS_PER_THREAD * n_threads
        return cls(
            pairs=pairs,
            lengths=lengths,
            chunks=[np.ascontiguousarray(order[first::n_chunks]) for first in range(n_chunks)],
            embeddings=embeddings,
        )

    @property
    def n_active(self) -> int:
        """The number of rows that have a history."""
        return sum(map(len, self.chunks))

    def rotate(self, by: np.ndarray, pool: Executor) -> None:
        """Multiply the embeddings in place by an orthogonal matrix, square in n_components."""
        by = by.astype(np.float32)

        def apply(rows: np.ndarray) -> None:
            rows[:] = rows @ by

        used = self.embeddings[:, : len(by)]
        list(pool.map(apply, np.array_split(used, -(-len(used) // ROTATION_BATCH))))


def principal_axes(embeddings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues (d,), at least 0, and the eigenvectors (d, d) of YᵀY, for Y (n, d).

    Raises `DataError` if YᵀY is not finite.
    """
    values, vectors = np.linalg.eigh(finite_gram(embeddings).astype(np.float64))
    return values.clip(min=0), vectors


def finite_gram(embeddings: np.ndarray) -> np.ndarray:
    """Return YᵀY (d, d) of Y (n, d). Raises `DataError` if it is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        gram: np.ndarray = embeddings.T @ embeddings
    require_finite(gram)
    return gram


def require_finite(numbers: np.ndarray) -> None:
    """Raise `DataError` for infinite numbers and NaNs."""
    if not np.isfinite(numbers).all():
        raise DataError(
            "the embeddings cannot be solved for in 32 bits: use smaller confidences, or less "
            "extreme settings of alpha0, reg, nu and init_scale"
        )
