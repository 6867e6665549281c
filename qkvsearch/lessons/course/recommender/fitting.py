"""Of lesson 3: ratings with gaps, embeddings fitted to them, and the package's own models."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qkvsearch.attention.gradients import dot_score_vjp, mean_squared_error

GAP = np.nan
RATINGS = np.array(
    [
        [5, 4, GAP, 1, GAP],
        [4, GAP, 5, 1, 1],
        [GAP, 5, 4, GAP, 2],
        [1, 2, GAP, 5, 4],
        [2, GAP, 1, 4, GAP],
    ]
)
MIDDLE = 3.0
WIDTH = 2
# Of the loss: how much long embeddings cost, so that few ratings do not make extreme ones.
PENALTY = 0.02
RATE, STEPS = 0.3, 300
NUDGE = 1e-5


class Fit(NamedTuple):
    """users (n, d), films (m, d); losses (steps + 1,), from before the first step."""

    users: np.ndarray
    films: np.ndarray
    losses: np.ndarray


def start(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of users and of films before anything is known: small random numbers."""
    rng = np.random.default_rng(seed)
    n, m = RATINGS.shape
    return rng.normal(scale=0.5, size=(n, WIDTH)), rng.normal(scale=0.5, size=(m, WIDTH))


def loss_and_gradients(
    users: np.ndarray, films: np.ndarray, table: np.ndarray = RATINGS
) -> tuple[float, np.ndarray, np.ndarray]:
    """How far predictions are from the known ratings, and its gradient by each embedding.

    users (n, d), films (m, d), table (n, m), NaN for a gap -> the mean squared error and a penalty
    on long embeddings, (n, d), (m, d).
    """
    known = ~np.isnan(table)
    scores, pull = dot_score_vjp(users, films, scale=1)
    error, by_known = mean_squared_error(MIDDLE + scores[known], table[known])
    by_scores = np.zeros(table.shape)
    by_scores[known] = by_known
    by_users, by_films, _ = pull(by_scores)
    size = float(np.square(users).sum() + np.square(films).sum())
    penalised = by_users + 2 * PENALTY * users, by_films + 2 * PENALTY * films
    return error + PENALTY * size, *penalised


def by_nudging(
    users: np.ndarray, films: np.ndarray, table: np.ndarray = RATINGS
) -> tuple[np.ndarray, np.ndarray]:
    """The same gradients by trial: nudge one number up and down, and see what the loss does."""
    gradients = np.zeros_like(users), np.zeros_like(films)
    for side, gradient in enumerate(gradients):
        for place in np.ndindex(gradient.shape):
            losses = []
            for nudge in (NUDGE, -NUDGE):
                moved = users.copy(), films.copy()
                moved[side][place] += nudge
                losses.append(loss_and_gradients(*moved, table)[0])
            gradient[place] = (losses[0] - losses[1]) / (2 * NUDGE)
    return gradients


def fit(table: np.ndarray = RATINGS, steps: int = STEPS, rate: float = RATE) -> Fit:
    """Gradient descent: every number a little against its gradient, again and again."""
    users, films = start()
    losses = []
    for _ in range(steps):
        loss, by_users, by_films = loss_and_gradients(users, films, table)
        losses.append(loss)
        users, films = users - rate * by_users, films - rate * by_films
    losses.append(loss_and_gradients(users, films, table)[0])
    return Fit(users, films, np.array(losses))


# The same in the reader's hands, who has `ratings` and where they are `known`.
LOSS_CODE = f"""from qkvsearch.attention.gradients import mean_squared_error
def loss_and_gradients(users, films):
    error, by_known = mean_squared_error({MIDDLE} + (users @ films.T)[known], ratings[known])
    by_scores = np.zeros(ratings.shape)
    by_scores[known] = by_known
    loss = error + {PENALTY} * ((users**2).sum() + (films**2).sum())
    by_users = by_scores @ films + 2 * {PENALTY} * users
    return loss, by_users, by_scores.T @ users + 2 * {PENALTY} * films

rng = np.random.default_rng(0)
users = rng.normal(scale=0.5, size=(ratings.shape[0], {WIDTH}))
films = rng.normal(scale=0.5, size=(ratings.shape[1], {WIDTH}))
loss, by_users, by_films = loss_and_gradients(users, films)
np.vstack([by_users, by_films])"""


# --- the package's own models ---


def settings() -> dict[str, Any]:
    """Of `BiasedMF`, for a table this small: its defaults are made for thousands of users."""
    return {"n_components": WIDTH, "max_iter": 300, "damping": 1.0, "bias_reg": 1.0}


def predicted_by_product(table: np.ndarray = RATINGS) -> tuple[np.ndarray, float]:
    """Every pair's rating (n, m) by `BiasedMF`, and the mean of the known ones."""
    from scipy.sparse import csr_matrix

    from qkvsearch.embeddings import BiasedMF

    known = ~np.isnan(table)
    given = csr_matrix((table[known], known.nonzero()), shape=table.shape)
    model = BiasedMF(**settings(), random_state=0).fit(given)
    users, films = np.indices(table.shape)
    return model.predict(users.ravel(), films.ravel()).reshape(table.shape), model.mean_


def by_history(user: int, table: np.ndarray = RATINGS) -> tuple[list[int], np.ndarray, np.ndarray]:
    """The films that a user liked (h,), what each adds to every film's score (h, m), and the
    scores (m,)."""
    from scipy.sparse import csr_matrix

    from qkvsearch.embeddings import ImplicitALS

    liked = csr_matrix(np.nan_to_num(table) > MIDDLE, dtype=np.float32)
    model = ImplicitALS(n_components=WIDTH, random_state=0).fit(liked)
    history = liked[user].indices
    pieces = model.factors_.history_vectors(history)
    scores = model.fold_in(history) @ model.item_embeddings_.T
    return history.tolist(), pieces @ model.item_embeddings_.T, scores


# Again in the reader's hands, for a {user}.
HISTORY_CODE = f"""from qkvsearch import ImplicitALS
liked = csr_matrix(np.nan_to_num(ratings) > {MIDDLE}, dtype=float)
tastes = ImplicitALS(n_components={WIDTH}, random_state=0).fit(liked)
pieces = tastes.factors_.history_vectors(liked[{{user}}].indices)
contributions = pieces @ tastes.item_embeddings_.T
contributions"""
