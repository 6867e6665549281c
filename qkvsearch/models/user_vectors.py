"""A user's vector from a history: one exact linear solve with fixed item embeddings.

`ImplicitFactors` is the part of a fitted `ImplicitALS` that is stored and answers queries,
`RatingFactors` that of a fitted `BiasedMF`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from qkvsearch._utils.threads import one_blas_thread, run_in_threads
from qkvsearch._utils.validation import FLOAT32_MAX, displayed
from qkvsearch.errors import DataError, QkvError, quantity
from qkvsearch.models.recommend_head import HistoryScores
from qkvsearch.tables.ratings import LARGEST

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# The lowest and the highest rating and confidence. A rating is a float32; confidences are added up
# and solved for, where one beyond this would leave nothing of the others.
RATINGS = (-FLOAT32_MAX, FLOAT32_MAX)
CONFIDENCES = (0.0, LARGEST)
# `fold_in_many` solves matrices of at most this many numbers together: 8 MB.
MAX_NUMBERS = 2**20


def solve_positive(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return matrix⁻¹ right in float64, for a symmetric positive definite matrix, by Cholesky.

    This needs only NumPy: importing `scipy.linalg` takes longer than a search.
    """
    with _refuse_unsolvable():
        lower = np.linalg.cholesky(matrix)
        return np.linalg.solve(lower.T, np.linalg.solve(lower, right))


@contextmanager
def _refuse_unsolvable() -> Iterator[None]:
    """Raise `QkvError` for a matrix without a solution: only damaged files give one."""
    try:
        yield
    except np.linalg.LinAlgError:
        raise QkvError(
            "what was learned from interactions is damaged: a matrix of it has no solution; run "
            "qkvsearch learn or qkvsearch repair"
        ) from None


class StoredFields:
    """A dataclass of arrays and numbers that is stored under the names of its fields."""

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        """Return the arrays and the numbers by name, for `from_state`."""
        arrays, numbers = {}, {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                arrays[field.name] = value
            else:
                numbers[field.name] = value
        return arrays, numbers

    @classmethod
    def from_state(cls, arrays: dict[str, np.ndarray], numbers: dict[str, float]) -> Self:
        """Return the object that `state` was of."""
        return cls(**arrays, **numbers)


class Removals(NamedTuple):
    """What a user's embedding loses without some items S of a history, without another solve.

    By the matrix inversion lemma it is Σⱼ wⱼ · cⱼA⁻¹yⱼ over j in S, with (I − L_SS) w = 1 − Y_S u
    and L = Y(cA⁻¹Y)ᵀ, so that items that say the same count more when they go together. The ridge
    is taken to stay as it is; it depends on the number of items, so this is a close estimate.
    """

    # What each item adds to the embedding, cⱼA⁻¹yⱼ, (h, d).
    vectors: np.ndarray
    # The embeddings of the items, yⱼ, (h, d).
    history: np.ndarray
    # 1 − yⱼ·u, (h,): how far the prediction for each item is from 1.
    misses: np.ndarray

    def weights_of_each(self) -> np.ndarray:
        """Return w for each item alone, (h,)."""
        leverages = np.einsum("hd,hd->h", self.history, self.vectors)
        return np.asarray(self.misses / (1 - leverages))

    def weights_of_sets(self, sets: np.ndarray) -> np.ndarray:
        """Return w for sets of items, (t, size). sets: indices in the history, int (t, size)."""
        leverages = self.history[sets] @ self.vectors[sets].swapaxes(1, 2)
        kept = np.eye(sets.shape[1]) - leverages
        return np.asarray(np.linalg.solve(kept, self.misses[sets][..., None])[..., 0])


@dataclass(frozen=True)
class ImplicitFactors(StoredFields):
    """The item side of a fitted `ImplicitALS`, which solves for the vector of any user.

    >>> factors = ImplicitFactors(np.eye(2), np.eye(2), alpha0=0.5, reg=0.25, nu=1.0, n_items=2)
    >>> factors.fold_in([0])
    array([0.5, 0. ])
    """

    # (n, d)
    item_embeddings: np.ndarray
    # (d, d): Σ y yᵀ over all items.
    gram: np.ndarray
    # As in the objective of `ImplicitALS`; n_items is the number of items with interactions.
    alpha0: float
    reg: float
    nu: float
    n_items: int

    def fold_in(self, positions: np.ndarray, confidences: np.ndarray | None = None) -> np.ndarray:
        """Return the embedding (d,) of a user with a history of distinct items; zeros for none."""
        return self.history_vectors(positions, confidences).sum(axis=0)

    def history_vectors(
        self, positions: np.ndarray, confidences: np.ndarray | None = None
    ) -> np.ndarray:
        """Return what each item of a history (h,) adds to the embedding: cⱼ A⁻¹yⱼ, (h, d), float64.

        A = α₀·gram + Σ cⱼ yⱼyⱼᵀ + reg·(h + α₀·n_items)^nu·I. Their sum is `fold_in`, so that
        score(i) = yᵢ·u = Σⱼ cⱼ yᵢᵀA⁻¹yⱼ: how much candidate i attends to each item j of the
        history.

        confidences (h,): from 0 to 1e12, 1 by default; `DataError` otherwise.
        """
        with one_blas_thread():
            matrix, weighted = self._equations(positions, confidences)
            return solve_positive(matrix, weighted.T).T

    def removals(self, positions: np.ndarray, confidences: np.ndarray) -> Removals:
        """Return what the embedding loses without items of a history; see `Removals`."""
        vectors = self.history_vectors(positions, confidences)
        history = rows(self.item_embeddings, positions)
        misses = 1 - history @ vectors.sum(axis=0)
        return Removals(vectors, history, misses)

    def score_history(self, positions: np.ndarray, confidences: np.ndarray) -> HistoryScores | None:
        """Score all items by the embedding of a user with this history; see `FittedHead`."""
        vectors = self.history_vectors(positions, confidences)
        if not vectors.any():  # nothing liked, or cold items alone
            return None
        embedding = vectors.sum(axis=0).astype(self.item_embeddings.dtype)

        def addends(item: int) -> np.ndarray:
            return np.asarray((vectors @ self.item_embeddings[[item]].T)[:, 0])

        return HistoryScores(self.item_embeddings @ embedding, addends)

    def score_many(self, histories: csr_matrix) -> np.ndarray:
        """Return the scores of all items, float32 (n, n_items); see `FittedHead`."""
        embeddings = self.fold_in_many(histories).astype(np.float32)
        with one_blas_thread():
            return embeddings @ self.item_embeddings.T.astype(np.float32, copy=False)

    def fold_in_many(self, histories: csr_matrix) -> np.ndarray:
        """Return the embeddings (n, d), float64, of histories (n, n_items) of confidences.

        It solves the same equations as `fold_in`, exactly, but not for each item separately. If a
        history is shorter than d, it solves for as many unknowns as there are items. This is many
        times faster, and uses as many threads as BLAS. Raises `DataError` as `fold_in` does.
        """
        n, d = histories.shape[0], len(self.gram)
        _check_rows(histories)
        embeddings = np.zeros((n, d))
        with one_blas_thread(), _refuse_unsolvable():
            spectrum, axes = np.linalg.eigh(self.gram)
        short = _ShortHistories(self, histories, self.alpha0 * spectrum, axes)

        def solve(task: tuple[int, np.ndarray]) -> None:
            width, users = task
            with _refuse_unsolvable():
                if width < d:
                    embeddings[users] = short.solved(users, width)
                else:
                    embeddings[users] = self._solved(histories, users)

        tasks = list(_by_length(np.diff(histories.indptr), d))
        if len(tasks) > 1:
            run_in_threads(lambda: solve, tasks)
        else:
            with one_blas_thread():
                for task in tasks:
                    solve(task)
        return embeddings

    def _solved(self, histories: csr_matrix, users: np.ndarray) -> np.ndarray:
        """Return the embeddings (n, d) of these rows, solving a matrix (d, d) for each."""
        d = len(self.gram)
        matrices, targets = np.empty((len(users), d, d)), np.empty((len(users), d, 1))
        for row, user in enumerate(users):
            span = slice(*histories.indptr[user : user + 2])
            matrices[row], weighted = self._equations(histories.indices[span], histories.data[span])
            targets[row, :, 0] = weighted.sum(axis=0)
        return np.asarray(np.linalg.solve(matrices, targets)[..., 0])

    def _equations(
        self, positions: np.ndarray, confidences: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return A (d, d), and the rows cⱼyⱼ (h, d)."""
        history = rows(self.item_embeddings, positions)
        weights = check_values(confidences, len(history), CONFIDENCES)
        ridge = self.ridges(int(np.count_nonzero(weights)))
        weighted = history * weights[:, None]
        matrix = self.alpha0 * self.gram + history.T @ weighted + ridge * np.eye(len(self.gram))
        return matrix, weighted

    def ridges(self, lengths: int | np.ndarray) -> Any:
        """Return reg·(h + α₀·n_items)^nu for histories of h items with a confidence above 0."""
        return self.reg * (lengths + self.alpha0 * self.n_items) ** self.nu


@dataclass(frozen=True)
class _ShortHistories:
    """The solution of A u = Yᵀc for h items, h < d, by the matrix inversion lemma.

    With D the part of A that does not depend on the history, diagonal in the principal axes of the
    Gram matrix, and Z = C^½Y,

        u = D⁻¹Zᵀ(I + ZD⁻¹Zᵀ)⁻¹ C^½1.

    Hager 1989, "Updating the inverse of a matrix". Rows of Z that are zero change nothing, so that
    histories of several lengths are solved as one array.
    """

    factors: ImplicitFactors
    # Confidences (n, n_items).
    histories: csr_matrix
    # (d,) and (d, d): α₀ times the eigenvalues of the Gram matrix, and its eigenvectors.
    spectrum: np.ndarray
    axes: np.ndarray

    def solved(self, users: np.ndarray, width: int) -> np.ndarray:
        """Return the embeddings (n, d) of these rows, none of which has more than `width` items."""
        indptr = self.histories.indptr
        starts, lengths = indptr[users, None], np.diff(indptr)[users, None]
        is_filled = np.arange(width) < lengths
        indices = np.where(is_filled, starts + np.arange(width), 0)
        weights = np.where(is_filled, rows(self.histories.data, indices), 0.0)
        ridges = self.factors.ridges(np.count_nonzero(weights, axis=1))
        scales = (self.spectrum + ridges[:, None])[:, None]
        roots = np.sqrt(weights)[..., None]
        history = rows(self.factors.item_embeddings, self.histories.indices[indices])
        weighted = roots * (history @ self.axes)
        matrices = (weighted / scales) @ weighted.swapaxes(1, 2)
        matrices[:, range(width), range(width)] += 1
        shares = np.linalg.solve(matrices, roots)
        return np.asarray(((shares.swapaxes(1, 2) @ weighted / scales) @ self.axes.T)[:, 0])


def _by_length(lengths: np.ndarray, d: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield rows (n,) of histories that are solved together, and their width, d at most.

    The width depends on the length alone, so that bits do not depend on the other histories.
    """
    # Four widths for each power of two below d, and d.
    widths = np.unique((2 ** (np.arange(4 * d.bit_length() + 1) / 4)).astype(int))
    widths = np.append(widths[widths < d], d)
    index = np.minimum(np.searchsorted(widths, lengths), len(widths) - 1)
    for i, width in enumerate(widths.tolist()):
        users = np.flatnonzero((index == i) & (lengths > 0))
        size = max(MAX_NUMBERS // (width * d), 1)
        for start in range(0, len(users), size):
            yield width, users[start : start + size]


def _check_rows(histories: csr_matrix) -> None:
    """Raise `DataError` for the first history with a bad confidence."""
    lowest, highest = CONFIDENCES
    if not ((histories.data >= lowest) & (histories.data <= highest)).all():
        for start, end in pairwise(histories.indptr):
            check_values(histories.data[start:end], end - start, CONFIDENCES)


@dataclass(frozen=True)
class RatingFactors(StoredFields):
    """The item side of a fitted `BiasedMF`, which solves for the bias and the vector of any user.

    >>> factors = RatingFactors(
    ...     np.zeros(2), np.eye(2), mean=3.0, lowest=1.0, highest=5.0,
    ...     reg=0.1, damping=4.0, bias_reg=0.5,
    ... )
    >>> bias, embedding = factors.fold_in([0], [5.0])
    >>> factors.predict(embedding, bias, [0, 1]).round(2)
    array([4.6, 3.8])
    """

    # (n,) and (n, d)
    item_biases: np.ndarray
    item_embeddings: np.ndarray
    # Of all ratings.
    mean: float
    # The scale that ratings and predictions are clipped to.
    lowest: float
    highest: float
    # As in the objective of `BiasedMF`.
    reg: float
    damping: float
    bias_reg: float

    def predict(
        self, user_embedding: np.ndarray, user_bias: float | np.ndarray, positions: np.ndarray
    ) -> np.ndarray:
        """Return the ratings (n,) of the items at `positions` (n,), clipped to the scale.

        For one user: embedding (d,) and bias; for a user of each item: (n, d) and (n,).
        """
        items = rows(self.item_embeddings, positions)
        affinity = np.einsum("nd,nd->n", items, np.broadcast_to(user_embedding, items.shape))
        ratings = self.mean + user_bias + rows(self.item_biases, positions) + affinity
        return np.clip(ratings, self.lowest, self.highest)

    def fold_in(self, positions: np.ndarray, ratings: np.ndarray) -> tuple[float, np.ndarray]:
        """Solve for the bias and the embedding (d,) of a user who rated these items (h,).

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
    """Return the entries at `positions`, which may be an empty list, in float64."""
    return np.asarray(array[np.asarray(positions, dtype=np.intp)], dtype=np.float64)


def check_values(
    values: np.ndarray | None, count: int, limits: tuple[float, float] = RATINGS
) -> np.ndarray:
    """Return one number for each item of a history. Raises `DataError` for the first one that is
    not within the limits, lowest and highest.
    """
    if values is None:
        return np.ones(count)
    try:
        numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"the values of a history must be numbers, not {displayed(values)}"
        ) from None
    if numbers.ndim > 1:
        raise DataError(f"the values of a history have one axis, not shape {numbers.shape}")
    if len(numbers) != count:
        items, given = quantity(count, "item"), quantity(len(numbers), "value")
        raise DataError(f"the history has {items} and {given}: give one each")
    lowest, highest = limits
    bad = ~((numbers >= lowest) & (numbers <= highest))  # a NaN is bad too
    if bad.any():
        index = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"value {numbers[index]} of history item {index} must be finite and at least "
            f"{lowest:g}, and at most {highest:g}"
        )
    return numbers
