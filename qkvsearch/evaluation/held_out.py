"""The users who are judged: what they are known by, what they like, what is recommended to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Self

import numpy as np
from scipy.sparse import csr_matrix

from qkvsearch._utils.threads import run_in_threads
from qkvsearch.collaborative.confidences import Feedback
from qkvsearch.data.interactions import Interactions
from qkvsearch.data.ratings import Scale
from qkvsearch.errors import DataError
from qkvsearch.evaluation.splits import Split, places
from qkvsearch.evaluation.systems import System
from qkvsearch.retrieval import top_k

# Users are ranked for in blocks of at most 4 million scores, 16 MB.
SCORES_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class HeldOutUsers:
    """users: rows (n,) of those judged. relevant: for each, the held-out items that count as a
    hit, of grade 1. train: confidences (n_users, n_items) to learn from. liked, known: the users'
    histories (n, n_items), by confidence and as ones. n_eligible: of how many users those are a
    random sample, n where they are all.
    """

    users: np.ndarray
    relevant: list[dict[int, int]]
    train: csr_matrix
    liked: csr_matrix
    known: csr_matrix
    n_eligible: int

    @classmethod
    def of(cls, parts: Split, scale: Scale, most: int | None = None, random_state: int = 0) -> Self:
        """scale: of the whole log's ratings, whose upper half is relevant. Confidences are made as
        a build makes them, from the train part alone. most: of more users so many are drawn, the
        same for the same `random_state`. Raises `DataError` where nobody is left.
        """
        relevant = relevant_items(parts.test, scale)
        if not relevant:
            raise DataError(
                "nothing to judge by: no rating held out is in the upper half of the scale"
            )
        users = eligible = np.array([*relevant])
        if most is not None and len(eligible) > most:
            drawn = np.random.default_rng(random_state).choice(len(eligible), most, replace=False)
            users = eligible[np.sort(drawn)]
        feedback = Feedback.of(parts.train)
        train, history = _matrices(
            parts,
            lambda log: log.matrix(feedback.confidences(log.items, log.ratings, log.weights)),
        )
        known = parts.history.matrix()[users]
        chosen = [relevant[user] for user in users.tolist()]
        return cls(users, chosen, train, history[users], known, len(eligible))

    def in_order(self, parts: Split) -> HeldOutUsers:
        """The same users, with each liked item's place in time, from 1 on, instead of a confidence.
        The train part has all items in their order.
        """
        train, history = _matrices(parts, _order)
        liked = history[self.users].multiply(self.liked > 0).tocsr()
        return replace(self, train=train, liked=liked)

    def rankings(
        self, system: System, k: int, callback: Callable[[int], None] = lambda n: None
    ) -> list[list[int]]:
        """Each user's k best items without their history, of the whole catalog; ties go to the
        smaller row number. `callback` is called with the number of users done.
        """
        n, n_items = self.known.shape
        # At least two blocks, so that BLAS has one thread in each case.
        step = max(1, min(SCORES_AT_ONCE // n_items, -(-n // 2)))
        found: list[list[int]] = [[] for _ in range(n)]
        done, lock = 0, Lock()

        def rank(start: int) -> None:
            nonlocal done
            span = slice(start, min(start + step, n))
            scores = system.scores(self.liked[span])
            scores[self.known[span].nonzero()] = -np.inf
            for row, of_user in enumerate(scores, start):
                found[row] = top_k(of_user, k, of_user > -np.inf).tolist()
            with lock:
                done += span.stop - start
                callback(done)

        run_in_threads(lambda: rank, range(0, n, step))
        return found


def relevant_items(test: Interactions, scale: Scale) -> dict[int, dict[int, int]]:
    """Users to the held-out items that count as a hit, each of grade 1: what was neither taken back
    nor rated in the lower half of the scale.
    """
    counts = np.ones(len(test), dtype=bool) if test.weights is None else test.weights > 0
    # One rating for everything cannot tell likes from dislikes.
    if test.ratings is not None and scale is not None and scale[0] < scale[1]:
        counts &= ~(test.ratings <= sum(scale) / 2)  # what was not rated counts
    relevant: dict[int, dict[int, int]] = {}
    for user, item in zip(test.users[counts].tolist(), test.items[counts].tolist(), strict=True):
        relevant.setdefault(user, {})[item] = 1
    return relevant


def _order(log: Interactions) -> csr_matrix:
    assert log.times is not None
    return log.matrix(places(log, log.times)[0] + 1)


def _matrices(
    parts: Split, matrix: Callable[[Interactions], csr_matrix]
) -> tuple[csr_matrix, csr_matrix]:
    """Of the train part, and of the histories, which may be the same."""
    train = matrix(parts.train)
    return train, train if parts.history is parts.train else matrix(parts.history)
