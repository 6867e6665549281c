"""Lesson on a recommender: embeddings of users and films, learned from ratings by descent."""

from collections import deque
from collections.abc import Iterator

import numpy as np

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
MIDDLE = 3.0  # of the scale
WIDTH = 2  # numbers of an embedding
PENALTY = 0.02  # of the squared numbers, in the loss
RATE = 0.3
STEPS = 300
NUDGE = 1e-5  # of a number, to find a gradient by trial
# `BiasedMF` for a table this small: its defaults are made for thousands of users.
BIASED_MF = {"n_components": WIDTH, "max_iter": 300, "damping": 1.0, "bias_reg": 1.0}


def start(shape: tuple[int, int], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return random embeddings of n users (n, d) and m films (m, d)."""
    rng = np.random.default_rng(seed)
    n, m = shape
    return rng.normal(scale=0.5, size=(n, WIDTH)), rng.normal(scale=0.5, size=(m, WIDTH))


def loss_and_gradients(
    users: np.ndarray, films: np.ndarray, ratings: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the loss and its gradients by users (…, n, d) and by films (…, m, d).

    ratings (n, m), NaN for a gap. Leading axes hold several models.
    """
    is_known = ~np.isnan(ratings)
    error = np.where(is_known, MIDDLE + users @ films.swapaxes(-1, -2) - ratings, 0)
    size = (users**2).sum(axis=(-1, -2)) + (films**2).sum(axis=(-1, -2))
    loss = (error**2).sum(axis=(-1, -2)) / is_known.sum() + PENALTY * size
    slope = 2 * error / is_known.sum()
    by_users = slope @ films + 2 * PENALTY * users
    by_films = slope.swapaxes(-1, -2) @ users + 2 * PENALTY * films
    return loss, by_users, by_films


def nudged_gradient(users: np.ndarray, films: np.ndarray, ratings: np.ndarray) -> np.ndarray:
    """Return the gradients (n + m, d) by trial: each number is nudged up and down."""
    numbers = np.vstack([users, films])
    n = len(users)
    gradient = np.zeros_like(numbers)
    for index in np.ndindex(numbers.shape):
        losses = []
        for nudge in (NUDGE, -NUDGE):
            moved = numbers.copy()
            moved[index] += nudge
            losses.append(loss_and_gradients(moved[:n], moved[n:], ratings)[0])
        gradient[index] = (losses[0] - losses[1]) / (2 * NUDGE)
    return gradient


def walk(
    users: np.ndarray, films: np.ndarray, ratings: np.ndarray, rate: float, steps: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield users, films and the loss: at the start, and after each step of gradient descent."""
    for step in range(steps + 1):
        loss, by_users, by_films = loss_and_gradients(users, films, ratings)
        yield users, films, loss
        if step < steps:
            users, films = users - rate * by_users, films - rate * by_films


def descend(
    ratings: np.ndarray, rate: float = RATE, steps: int = STEPS, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return users (n, d), films (m, d) and the loss at the start and after each step (steps + 1).

    The embeddings are those after the last step.
    """
    path = list(walk(*start(ratings.shape, seed), ratings, rate, steps))
    users, films, _ = path[-1]
    return users, films, np.array([loss for _, _, loss in path])


def last_losses(ratings: np.ndarray, n_starts: int, steps: int) -> np.ndarray:
    """Return the losses (n_starts,) that descent from several random starts ends with."""
    starts = [start(ratings.shape, seed) for seed in range(n_starts)]
    users, films = (np.stack(side) for side in zip(*starts, strict=True))
    ((_, _, losses),) = deque(walk(users, films, ratings, RATE, steps), maxlen=1)
    return losses


def unrated(ratings: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the numbers of a film without ratings, before and after descent, and its predictions.

    The film is one more column of the table, with gaps only.
    """
    wider = np.column_stack([ratings, np.full(len(ratings), np.nan)])
    drawn = start(wider.shape)
    ((users, films, _),) = deque(walk(*drawn, wider, RATE, STEPS), maxlen=1)
    return drawn[1][-1], films[-1], MIDDLE + users @ films[-1]
