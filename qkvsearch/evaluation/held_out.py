"""The users on whom a recommender is evaluated: their histories, relevant items and rankings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix

from qkvsearch._utils.threads import run_in_threads
from qkvsearch._utils.validation import random_generator
from qkvsearch.errors import DataError
from qkvsearch.evaluation.splits import Split, ranks_within_users
from qkvsearch.evaluation.systems import System
from qkvsearch.models.confidences import Feedback
from qkvsearch.scores.topk import top_k
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.ratings import Scale

# The size of a block of users × items: 4 million scores, 16 MB.
MAX_SCORES = 1 << 22


@dataclass(frozen=True)
class HeldOutUsers:
    """The users with relevant held-out items, or a random sample of them."""

    # Their rows, (n,).
    users: np.ndarray
    # For each user, the held-out items that count as hits, with grade 1.
    relevant: list[dict[int, int]]
    # Confidences (n_users, n_items) to learn from.
    train: csr_matrix
    # The users' histories (n, n_items), as confidences and as ones.
    liked: csr_matrix
    seen: csr_matrix
    # The number of users sampled from.
    n_eligible: int

    @classmethod
    def of(
        cls, parts: Split, scale: Scale, max_users: int | None = None, random_state: Any = 0
    ) -> Self:
        """Collect the users of a split.

        scale: of the whole log's ratings; held-out ratings in its upper half are relevant.
        Confidences are computed as in a build, from the train part alone. max_users: the size of
        the sample, which depends on `random_state` alone. Raises `DataError` if nobody is left.
        """
        relevant = relevant_items(parts.test, scale)
        if not relevant:
            raise DataError(
                "nothing to judge by: no rating held out is in the upper half of the scale"
            )
        users = eligible = np.array([*relevant])
        if max_users is not None and len(eligible) > max_users:
            rng = random_generator(random_state)
            users = eligible[np.sort(rng.choice(len(eligible), max_users, replace=False))]
        feedback = Feedback.of(parts.train)

        def confidences(log: Interactions) -> csr_matrix:
            return log.matrix(feedback.confidences(log.items, log.ratings, log.weights))

        train, history = _matrices(parts, confidences)
        seen = parts.history.matrix()[users]
        relevant_to = [relevant[user] for user in users.tolist()]
        return cls(users, relevant_to, train, history[users], seen, len(eligible))

    def in_order(self, parts: Split) -> HeldOutUsers:
        """Return the same users with each liked item's rank in time, from 1, as its confidence.
        The train part has the ranks of all items.
        """
        train, history = _matrices(parts, _order)
        liked = history[self.users].multiply(self.liked > 0).tocsr()
        return replace(self, train=train, liked=liked)

    def rankings(
        self, system: System, k: int, callback: Callable[[int], None] = lambda n: None
    ) -> list[list[int]]:
        """Return each user's k best items of the whole catalog without their history. Of equal
        items, those with smaller row numbers come first. `callback` is called with the number of
        users done.
        """
        n, n_items = self.seen.shape
        # At least two blocks, so that BLAS has one thread in each case.
        step = max(1, min(MAX_SCORES // n_items, -(-n // 2)))
        rankings: list[list[int]] = [[] for _ in range(n)]
        done, lock = 0, Lock()

        def rank(start: int) -> None:
            nonlocal done
            span = slice(start, min(start + step, n))
            scores = system.scores(self.liked[span])
            scores[self.seen[span].nonzero()] = -np.inf
            for row, user_scores in enumerate(scores, start):
                rankings[row] = top_k(user_scores, k, user_scores > -np.inf).tolist()
            with lock:
                done += span.stop - start
                callback(done)

        run_in_threads(lambda: rank, range(0, n, step))
        return rankings


def relevant_items(test: Interactions, scale: Scale) -> dict[int, dict[int, int]]:
    """Return for each user the held-out items that count as hits, with grade 1: those neither
    refunded nor rated in the lower half of the scale.
    """
    counts = np.ones(len(test), dtype=bool) if test.weights is None else test.weights > 0
    # If all ratings are equal, they do not distinguish likes from dislikes.
    if test.ratings is not None and scale is not None and scale[0] < scale[1]:
        counts &= ~(test.ratings <= sum(scale) / 2)  # unrated items count
    relevant: dict[int, dict[int, int]] = {}
    for user, item in zip(test.users[counts].tolist(), test.items[counts].tolist(), strict=True):
        relevant.setdefault(user, {})[item] = 1
    return relevant


def _order(log: Interactions) -> csr_matrix:
    assert log.times is not None
    return log.matrix(ranks_within_users(log, log.times)[0] + 1)


def _matrices(
    parts: Split, matrix: Callable[[Interactions], csr_matrix]
) -> tuple[csr_matrix, csr_matrix]:
    """Apply a function to the train part and to the histories, once if they are the same."""
    train = matrix(parts.train)
    return train, train if parts.history is parts.train else matrix(parts.history)
