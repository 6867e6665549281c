"""Reliability of recommendations: whether a history gives lower scores than most single likes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.models.user_history import History

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# The level is the 10 % quantile of the best scores of single likes; at most MAX_DRAWN are sampled.
SHARE_BELOW, MAX_DRAWN = 0.1, 1000
# Items liked by fewer users are weak evidence, whatever the scores.
MIN_USERS = 3
# No two scores need more.
MAX_DECIMALS = 12
# Scores computed at a time: 16 MB.
MAX_SCORES = 2**22


@dataclass(frozen=True)
class Strength:
    """The measure of a log by which histories are weak."""

    # The score that the best recommendation exceeds for nine of ten single likes.
    level: float
    # int32 (n_items,): how many users of the log like each item.
    n_liking: np.ndarray

    def is_weak(self, history: History, best: float) -> bool:
        """Return whether a history is weak evidence. best: the top score of items outside it."""
        return best < self.level or self.n_users(history) < MIN_USERS

    def n_users(self, history: History) -> int:
        """Return how many users like the most popular liked item of a history."""
        return int(self.n_liking[history.liked.positions].max(initial=0))

    def why_weak(self, history: History, best: float) -> str:
        """Return an explanation for people; empty for a history that is strong enough."""
        if not self.is_weak(history, best):
            return ""
        people = _people(self.n_users(history))
        n_items = len(history.liked)
        evidence = f"one item that {people} liked"
        if n_items > 1:
            evidence = f"{n_items:,} items, the best known of which {people} liked"
        scores = ""
        if not isfinite(best):
            scores = "; no other item has a score"
        elif best < self.level:
            shown, level = told_apart(best, self.level)
            scores = (
                f"; the best score is {shown}, where nine of ten single likes bring {level} or more"
            )
        advice = "More likes make them stronger; `similar` goes by texts, too."
        return f"Weak: these rest on {evidence}{scores}. {advice}"


def told_apart(smaller: float, larger: float) -> tuple[str, str]:
    """Return two numbers with three decimals, or with as many as tell them apart.

    >>> told_apart(0.018, 0.0241), told_apart(0.0000004, 0.0000021)
    (('0.018', '0.024'), ('0.000000', '0.000002'))
    """
    decimals = 3
    while decimals < MAX_DECIMALS and f"{smaller:.{decimals}f}" == f"{larger:.{decimals}f}":
        decimals += 1
    return f"{smaller:.{decimals}f}", f"{larger:.{decimals}f}"


def _people(n: int) -> str:
    if n == 0:
        return "nobody of the log"
    return f"{n:,} {'person' if n == 1 else 'people'} of the log"


def best_unseen(scores: np.ndarray, history: History) -> float:
    """Return the highest of the scores (n_items,) of items outside a history; −∞ for none."""
    others = scores.copy()
    others[history.positions] = -np.inf
    return float(others.max(initial=-np.inf))


def usual_level(
    score: Callable[[csr_matrix], np.ndarray], n_liking: np.ndarray, seed: int = 0
) -> float:
    """Return the score that the best recommendation exceeds for nine of ten single likes of a log.

    score: from histories (n, n_items) to new scores (n, n_items). n_liking (n_items,): the number
    of likes of each item. Of many likes a random sample is used, in which popular items occur as
    often as in the log.
    """
    items, counts = _drawn_likes(n_liking, seed)
    if not len(items):
        return 0.0
    best = _best_of_single_likes(score, items, len(n_liking))
    order = np.argsort(best, kind="stable")
    rank = np.searchsorted(np.cumsum(counts[order]), SHARE_BELOW * counts.sum(), side="right")
    return max(float(best[order[rank]]), 0.0)


def _drawn_likes(n_liking: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw likes without replacement; return the distinct items (n,), and how often each one was
    drawn (n,).
    """
    # The likes are numbered item by item.
    ends = np.cumsum(n_liking, dtype=np.int64)
    n_likes = int(ends[-1]) if len(ends) else 0
    n_drawn = min(n_likes, MAX_DRAWN)
    likes = np.random.default_rng(seed).choice(n_likes, n_drawn, replace=False)
    return np.unique(np.searchsorted(ends, likes, side="right"), return_counts=True)


def _best_of_single_likes(
    score: Callable[[csr_matrix], np.ndarray], items: np.ndarray, n_items: int
) -> np.ndarray:
    """Return the score of the best recommendation to someone who likes one item, for each of these
    items, float32 (n,).
    """
    from scipy.sparse import csr_matrix

    n = len(items)
    histories = csr_matrix((np.ones(n), items, np.arange(n + 1)), shape=(n, n_items))
    best = np.empty(n, dtype=np.float32)
    step = max(1, MAX_SCORES // n_items)
    for start in range(0, n, step):
        block = slice(start, start + step)
        scores = score(histories[block])
        scores[np.arange(len(scores)), items[block]] = -np.inf  # not recommended again
        best[block] = scores.max(axis=1)
    return best
