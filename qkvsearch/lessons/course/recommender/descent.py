"""Of lesson 3: ratings with gaps, and embeddings fitted to them by gradient descent."""

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention.training import mean_squared_error
from qkvsearch.lessons.cells import Cell, ran

GAP = np.nan
RATINGS = np.array(
    [
        [5, 4, GAP, 1, GAP],
        [GAP, GAP, 5, 1, 1],
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


def start(shape: tuple[int, ...], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of users and of films before anything is known: small random numbers."""
    rng, (n, m) = np.random.default_rng(0), shape
    return rng.normal(scale=0.5, size=(n, width)), rng.normal(scale=0.5, size=(m, width))


def loss_and_gradients(users: Array, films: Array, ratings: Array) -> tuple[float, Array, Array]:
    """How far predictions are from the known ratings, and its gradient by each embedding.

    users (n, d), films (m, d), ratings (n, m), NaN for a gap -> the mean squared error and a
    penalty on long embeddings, (n, d), (m, d).
    """
    known = ~np.isnan(ratings)
    error, by_known = mean_squared_error(MIDDLE + (users @ films.T)[known], ratings[known])
    by_scores = np.zeros(ratings.shape)
    by_scores[known] = by_known
    loss = error + PENALTY * ((users**2).sum() + (films**2).sum())
    # The square of x has the slope 2x.
    by_users = by_scores @ films + 2 * PENALTY * users
    by_films = by_scores.T @ users + 2 * PENALTY * films
    return loss, by_users, by_films


def by_nudging(users: Array, films: Array, ratings: Array) -> tuple[Array, Array]:
    """The same gradients by trial: nudge one number up and down, and see what the loss does."""
    gradients = np.zeros_like(users), np.zeros_like(films)
    for side, gradient in enumerate(gradients):
        for place in np.ndindex(gradient.shape):
            losses = []
            for nudge in (NUDGE, -NUDGE):
                moved = users.copy(), films.copy()
                moved[side][place] += nudge
                losses.append(loss_and_gradients(*moved, ratings)[0])
            gradient[place] = (losses[0] - losses[1]) / (2 * NUDGE)
    return gradients


def fit(table: np.ndarray = RATINGS) -> Cell:
    """The `users` (n, d) and `films` (m, d) that descent leaves, and its `losses` (steps + 1,)."""
    return ran(descend, ratings=table, width=WIDTH, rate=RATE, steps=STEPS)[0]


def walked(ratings: Array, width: int, rate: float, steps: int, every: int) -> tuple[Array, Array]:
    """Where `descend` has the users (k, n, d) and films (k, m, d) after each `every`-th step, from
    before the first one to after the last.
    """
    users, films = start(ratings.shape, width)
    ways = [(users, films)]
    for step in range(1, steps + 1):
        _, by_users, by_films = loss_and_gradients(users, films, ratings)
        users, films = users - rate * by_users, films - rate * by_films
        if step % every == 0 or step == steps:
            ways.append((users, films))
    by_side = zip(*ways, strict=True)
    all_users, all_films = (np.stack(side) for side in by_side)
    return all_users, all_films


def descend(ratings: Array, width: int, rate: float, steps: int) -> tuple[Array, Array, Array]:
    users, films = start(ratings.shape, width)
    losses = []
    for _ in range(steps):
        loss, by_users, by_films = loss_and_gradients(users, films, ratings)
        losses.append(loss)
        users, films = users - rate * by_users, films - rate * by_films
    losses.append(loss_and_gradients(users, films, ratings)[0])
    return users, films, np.array(losses)
