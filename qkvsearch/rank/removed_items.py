"""What scores lose without items of a history: estimates, by which sets of items are proposed.

`rank/smallest.py` asks the recommender itself whether what is proposed holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qkvsearch._utils.query_lock import pause
from qkvsearch.models.recommend_heads import COLLABORATIVE, HEADS
from qkvsearch.models.user_history import History

if TYPE_CHECKING:
    from qkvsearch.models.preferences import Preferences
    from qkvsearch.models.user_vectors import Removals

# Of a longer history only so many items are proposed where each of them is tried one by one.
MAX_TRIED = 100


class Losses(NamedTuple):
    """What the scores of n items lose without some of the h items of a history, by one head.

    Without the items S they lose Σⱼ wⱼ · addends[j] over j in S. By neighbours every w is 1; by
    embeddings `Removals` has them.
    """

    # What each item of the history adds, (h, n).
    addends: np.ndarray
    # None where an item of the history adds the same whatever the others are.
    removals: Removals | None = None

    def of_each(self) -> np.ndarray:
        """Return what the scores lose without each item of the history alone, (h, n)."""
        if self.removals is None:
            return self.addends
        return self.addends * self.removals.weights_of_each()[:, None]

    def of_sets(self, sets: np.ndarray) -> np.ndarray:
        """Return what the scores lose without each of t sets, (t, n).

        sets: indices in the history, int (t, size).
        """
        addends = self.addends[sets]
        if self.removals is None:
            return np.asarray(addends.sum(axis=1))
        weights = self.removals.weights_of_sets(sets)
        return np.asarray((weights[:, None] @ addends)[:, 0])


def preference_losses(
    preferences: Preferences, multipliers: Mapping[str, float], liked: History, items: np.ndarray
) -> list[Losses]:
    """Return what the scores of some items lose by each head of preferences.

    multipliers: what the scores of each head are multiplied by. liked: the items of the history
    with a confidence above 0. items: rows of the catalog, int (n,).
    """
    losses = []
    for name, factor in multipliers.items():
        if not factor:
            continue
        if HEADS[name].holds_by_removal:
            losses.append(Losses(factor * _scores_of_each(preferences, name, liked, items)))
        elif name == COLLABORATIVE:
            removals = preferences.factors.removals(liked.positions, liked.confidences)
            keys = preferences.factors.item_embeddings[items].astype(np.float64)
            addends = factor * (removals.vectors @ keys.T)
            losses.append(Losses(addends, removals))
    return losses


def _scores_of_each(
    preferences: Preferences, name: str, liked: History, items: np.ndarray
) -> np.ndarray:
    """Return the scores of some items by each item of a history alone, float64 (h, n)."""
    from scipy.sparse import csr_matrix

    n_items = len(preferences.factors.item_embeddings)
    starts = np.arange(len(liked) + 1)
    alone = csr_matrix((liked.confidences, liked.positions, starts), (len(liked), n_items))
    scores = preferences.heads[name].score_many(alone)[:, items]
    dense = scores if isinstance(scores, np.ndarray) else scores.toarray()
    return np.asarray(dense, dtype=np.float64)


def tried_losses(
    scores_without: Callable[[int], np.ndarray | None],
    scores: np.ndarray,
    liked: History,
    items: np.ndarray,
) -> Losses:
    """Return what the scores of some items lose, by leaving out the items of a history one by one.

    scores_without: from a row of the catalog to the scores of all items without it in the history.
    scores: those of all items. Only the latest `MAX_TRIED` items of the history are tried; the
    others lose nothing.
    """
    addends = np.zeros((len(liked), len(items)))
    latest = np.argsort(-liked.times, kind="stable")[:MAX_TRIED]
    for index in latest.tolist():
        pause()
        without = scores_without(int(liked.positions[index]))
        if without is not None:
            addends[index] = scores[items].astype(np.float64) - without[items]
    return Losses(addends)
