"""How much recommendations rest on: whether a history tells less than single likes mostly do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.collaborative.factors import ImplicitFactors
from qkvsearch.collaborative.user_history import History

# The level is what nine of ten single likes come above, of so many that are drawn from the log.
SHARE_BELOW, MAX_DRAWN = 0.1, 1000
# What fewer people than these liked tells little, whatever the scores.
FEWEST_PEOPLE = 3
# Scores that are computed at a time: 16 MB.
MOST_SCORES = 2**22


@dataclass(frozen=True)
class Strength:
    """level: the best score that nine of ten single likes come above. n_liking: int32 (n_items,),
    how many people of the log liked each item.
    """

    level: float
    n_liking: np.ndarray

    def is_weak(self, history: History, best: float) -> bool:
        """Whether a history rests on too little. best: the highest score of what is not in it."""
        return best < self.level or self.n_people(history) < FEWEST_PEOPLE

    def n_people(self, history: History) -> int:
        """How many liked the item of a history that most people liked."""
        return int(self.n_liking[history.liked.positions].max(initial=0))

    def why_weak(self, history: History, best: float) -> str:
        """For a person, in numbers; "" where a history rests on enough."""
        if not self.is_weak(history, best):
            return ""
        n, n_items = self.n_people(history), len(history.liked)
        people = (
            f"{n:,} {'person' if n == 1 else 'people'} of the log" if n else "nobody of the log"
        )
        told = f"one item that {people} liked"
        if n_items > 1:
            told = f"{n_items:,} items, the best known of which {people} liked"
        scores = ""
        if best < self.level:
            scores = (
                f"; the best score is {best:.3f}, where nine of ten single likes bring "
                f"{self.level:.3f} or more"
            )
        advice = "More likes make them stronger; `similar` goes by texts, too."
        return f"Weak: these rest on {told}{scores}. {advice}"


def best_unseen(scores: np.ndarray, history: History) -> float:
    """The highest of all scores (n_items,) but those of the history's own items; −∞ for none."""
    others = scores.copy()
    others[history.positions] = -np.inf
    return float(others.max(initial=-np.inf))


def usual_level(factors: ImplicitFactors, n_liking: np.ndarray, seed: int = 0) -> float:
    """Return the best score that nine of ten single likes of a log come above, each alone a
    history.

    n_liking (n_items,): how many likes each item has. Some are drawn where there are many, as they
    come, so that what many like counts as often.
    """
    from scipy.sparse import csr_matrix

    ends = np.cumsum(n_liking, dtype=np.int64)
    n_likes = int(ends[-1]) if len(ends) else 0
    n_drawn = min(n_likes, MAX_DRAWN)
    likes = np.random.default_rng(seed).choice(n_likes, n_drawn, replace=False)
    drawn, times = np.unique(np.searchsorted(ends, likes, side="right"), return_counts=True)
    if not len(drawn):
        return 0.0
    ones, n_items = np.ones(len(drawn)), len(factors.item_embeddings)
    alone = csr_matrix((ones, drawn, np.arange(len(drawn) + 1)), shape=(len(drawn), n_items))
    embeddings = factors.fold_in_many(alone).astype(np.float32)
    best = np.empty(len(drawn), dtype=np.float32)
    step = max(1, MOST_SCORES // n_items)
    with one_blas_thread():
        for start in range(0, len(drawn), step):
            some = slice(start, start + step)
            scores = embeddings[some] @ factors.item_embeddings.T.astype(np.float32, copy=False)
            scores[np.arange(len(scores)), drawn[some]] = -np.inf
            best[some] = scores.max(axis=1)
    order = np.argsort(best, kind="stable")
    place = np.searchsorted(np.cumsum(times[order]), SHARE_BELOW * times.sum(), side="right")
    return max(float(best[order[place]]), 0.0)
