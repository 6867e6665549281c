"""A user's vector from a history: one exact linear solve, with the items' embeddings held fixed.

`ImplicitFactors` does it for `ImplicitALS`, `RatingFactors` for `BiasedMF`: what of a fitted model
is stored and answers queries.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

import numpy as np

from qkvsearch.errors import DataError, QkvError
from qkvsearch.threads import one_blas_thread, run_in_threads

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# `fold_in_many` solves matrices of at most this many numbers together: 8 MB.
AT_ONCE = 2**20


def solve_positive(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """matrix⁻¹ right in float64, for a symmetric positive definite matrix, by Cholesky.

    With NumPy alone: importing `scipy.linalg` for its triangular solve takes longer than a search.
    """
    try:
        lower = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise QkvError(
            "what was learned from interactions is damaged: a matrix of it has no solution; mend "
            "it with learn, or with repair"
        ) from None
    return np.linalg.solve(lower.T, np.linalg.solve(lower, right))


class StoredFields:
    """A dataclass of arrays and numbers that is stored under the names of its fields."""

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        """The arrays and the numbers, by name; `from_state` is the way back."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        arrays = {name: x for name, x in values.items() if isinstance(x, np.ndarray)}
        return arrays, {name: x for name, x in values.items() if name not in arrays}

    @classmethod
    def from_state(cls, arrays: dict[str, np.ndarray], numbers: dict[str, float]) -> Self:
        return cls(**arrays, **numbers)


@dataclass(frozen=True)
class ImplicitFactors(StoredFields):
    """The item side of a fitted `ImplicitALS`, which solves for the vector of any user.

    item_embeddings (n, d); gram (d, d) = Σ y yᵀ over all items; alpha0, reg, nu and n_items (items
    with interactions) as in the objective of `ImplicitALS`.

    >>> factors = ImplicitFactors(np.eye(2), np.eye(2), alpha0=0.5, reg=0.25, nu=1.0, n_items=2)
    >>> factors.fold_in([0])
    array([0.5, 0. ])
    """

    item_embeddings: np.ndarray
    gram: np.ndarray
    alpha0: float
    reg: float
    nu: float
    n_items: int

    def fold_in(self, positions: np.ndarray, confidences: np.ndarray | None = None) -> np.ndarray:
        """The embedding (d,) of a user with this history of distinct items; none gives zeros."""
        return self.history_vectors(positions, confidences).sum(axis=0)

    def history_vectors(
        self, positions: np.ndarray, confidences: np.ndarray | None = None
    ) -> np.ndarray:
        """What each item of a history (h,) adds to the embedding: rows cⱼ A⁻¹yⱼ (h, d), float64.

        A = α₀·gram + Σ cⱼ yⱼyⱼᵀ + reg·(h + α₀·n_items)^nu·I. Their sum is `fold_in`, so that
        score(i) = yᵢ·u = Σⱼ cⱼ yᵢᵀA⁻¹yⱼ: how much candidate i attends to each item j of the
        history.

        confidences (h,): finite, not negative, 1 by default; `DataError` otherwise.
        """
        with one_blas_thread():
            matrix, weighted = self._equations(positions, confidences)
            return solve_positive(matrix, weighted.T).T

    def fold_in_many(self, histories: csr_matrix) -> np.ndarray:
        """The embeddings (n, d), float64, of histories (n, n_items) of confidences.

        Solves the same equations as `fold_in`, exactly, but not for each item's part: several times
        faster, and in as many threads as BLAS has.
        """
        n, d = histories.shape[0], len(self.gram)
        embeddings = np.empty((n, d))
        size = max(AT_ONCE // d**2, 1)

        def solve(start: int) -> None:
            stop = min(start + size, n)
            matrices, targets = np.empty((stop - start, d, d)), np.empty((stop - start, d, 1))
            for row in range(start, stop):
                span = slice(*histories.indptr[row : row + 2])
                matrix, weighted = self._equations(histories.indices[span], histories.data[span])
                matrices[row - start], targets[row - start, :, 0] = matrix, weighted.sum(axis=0)
            embeddings[start:stop] = np.linalg.solve(matrices, targets)[..., 0]

        starts = range(0, n, size)
        if len(starts) > 1:
            run_in_threads(lambda: solve, starts)
        else:
            with one_blas_thread():
                for start in starts:
                    solve(start)
        return embeddings

    def _equations(
        self, positions: np.ndarray, confidences: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """A (d, d), and the rows cⱼyⱼ (h, d)."""
        history = rows(self.item_embeddings, positions)
        weights = check_values(confidences, len(history), lowest=0.0)
        n_observed = np.count_nonzero(weights)
        ridge = self.reg * (n_observed + self.alpha0 * self.n_items) ** self.nu
        weighted = history * weights[:, None]
        matrix = self.alpha0 * self.gram + history.T @ weighted + ridge * np.eye(len(self.gram))
        return matrix, weighted


@dataclass(frozen=True)
class RatingFactors(StoredFields):
    """The item side of a fitted `BiasedMF`, which solves for the bias and the vector of any user.

    mean: of all ratings; item_biases (n,), item_embeddings (n, d); lowest, highest: the scale that
    ratings and predictions are clipped to; reg, damping and bias_reg as in the objective of
    `BiasedMF`.

    >>> factors = RatingFactors(
    ...     np.zeros(2), np.eye(2), mean=3.0, lowest=1.0, highest=5.0,
    ...     reg=0.1, damping=4.0, bias_reg=0.5,
    ... )
    >>> bias, embedding = factors.fold_in([0], [5.0])
    >>> factors.predict(embedding, bias, [0, 1]).round(2)
    array([4.6, 3.8])
    """

    item_biases: np.ndarray
    item_embeddings: np.ndarray
    mean: float
    lowest: float
    highest: float
    reg: float
    damping: float
    bias_reg: float

    def predict(
        self, user_embedding: np.ndarray, user_bias: float | np.ndarray, positions: np.ndarray
    ) -> np.ndarray:
        """Ratings (n,) of the items at `positions` (n,), clipped to the scale.

        For one user, embedding (d,) and bias, or for a user each, (n, d) and (n,).
        """
        items = rows(self.item_embeddings, positions)
        affinity = np.einsum("nd,nd->n", items, np.broadcast_to(user_embedding, items.shape))
        ratings = self.mean + user_bias + rows(self.item_biases, positions) + affinity
        return np.clip(ratings, self.lowest, self.highest)

    def fold_in(self, positions: np.ndarray, ratings: np.ndarray) -> tuple[float, np.ndarray]:
        """The bias and the embedding (d,) of a user who rated these items (h,).

        Minimizes Σ (r − mean − bᵢ − b − p·qᵢ)² + reg·(h + damping)·|p|² + bias_reg·b², a ridge
        regression. Ratings outside the scale count as its ends, as in training. No ratings give
        zeros; ratings that are not finite raise `DataError`.
        """
        history = rows(self.item_embeddings, positions)
        values = np.clip(check_values(ratings, len(history)), self.lowest, self.highest)
        inputs = np.column_stack([np.ones(len(history)), history])
        if not len(inputs):
            return 0.0, np.zeros(history.shape[1])
        targets = values - self.mean - rows(self.item_biases, positions)
        penalties = np.full(inputs.shape[1], self.reg * (len(inputs) + self.damping))
        penalties[0] = self.bias_reg
        with one_blas_thread():
            matrix = inputs.T @ inputs + np.diag(penalties)
            solution = solve_positive(matrix, inputs.T @ targets)
        return float(solution[0]), solution[1:]


def rows(array: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The entries at `positions`, in float64; `positions` may be an empty list."""
    return np.asarray(array[np.asarray(positions, dtype=np.intp)], dtype=np.float64)


def check_values(values: np.ndarray | None, count: int, lowest: float = -np.inf) -> np.ndarray:
    """One number (float64) per item of a history; `DataError` names the first bad one."""
    if values is None:
        return np.ones(count)
    numbers = np.asarray(values, dtype=np.float64).reshape(-1)
    if len(numbers) != count:
        raise DataError(f"the history has {count} items and {len(numbers)} values: give one each")
    bad = ~(np.isfinite(numbers) & (numbers >= lowest))
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        wanted = "finite" if np.isinf(lowest) else f"finite and at least {lowest:g}"
        raise DataError(f"value {numbers[place]} of history item {place} must be {wanted}")
    return numbers
