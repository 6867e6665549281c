"""What would have to be gone: the fewest items of a history without which a hit would not be there.

A hit is there if it is among the first k. The items of a set are left out of the history, and are
no candidates either: an item that is no longer in the history could be recommended itself, and push
the hit out for another reason. Sets are proposed by estimates (`rank/removed_items.py`). Whether a
hit is gone is decided by asking the recommender again without the set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.query_lock import pause
from qkvsearch.rank.removed_items import Losses

if TYPE_CHECKING:
    from collections.abc import Callable

# A set has at most so many items.
MAX_ITEMS = 10
# The best candidates that are looked at, beside three times as many as hits are asked for. A hit
# is gone when enough of them have passed it.
N_RIVALS = 300
# For so many of them, a set of each size is estimated that lets them pass.
N_TARGETS = 64
# So many sets of each size are asked for again.
MAX_ASKED = 3


class SmallestSets:
    """The smallest sets of one answer, found when asked for.

    Neighbours are additive, and a set for the first hit alone (k = 1) is then the smallest that
    lets any of the rivals pass. With embeddings, or where several others have to pass the hit, a
    smaller set may be missed. A set is always minimal: the hit is there again if any one of its
    items stays.
    """

    def __init__(
        self,
        positions: np.ndarray,
        first: Callable[[Sequence[int]], np.ndarray],
        losses: Callable[[np.ndarray], list[Losses]],
        rivals: np.ndarray,
        scores: np.ndarray,
        k: int,
    ) -> None:
        """positions: the rows of the items of the history that may go, (h,). first: from the rows
        of items to the rows of the first k hits without them. losses: from the rows of items to
        what their scores lose. rivals: the rows of the best candidates, best first. scores: of all
        items.
        """
        self.positions, self.first, self.rivals, self.k = positions, first, rivals, k
        self.rival_scores = scores[rivals].astype(np.float64)
        self._losses_of = losses

    @cached_property
    def _losses(self) -> list[Losses]:
        return self._losses_of(self.rivals)

    @cached_property
    def _of_each(self) -> np.ndarray:
        """What the score of each rival loses without each item of the history, (h, n_rivals)."""
        return np.sum([losses.of_each() for losses in self._losses], axis=0)

    def of(self, hit: int) -> list[int]:
        """Return the rows of the items of the set of a hit; none where none is found.

        hit: its row.
        """
        members = np.flatnonzero(self.positions != hit)
        places = np.flatnonzero(self.rivals == hit)
        if not len(places) or not len(members):
            return []
        for set_ in self._proposals(int(places[0]), members):
            rows = self.positions[set_].tolist()
            if self._is_gone(hit, rows):
                return self._minimal(hit, rows)
        return []

    def _proposals(self, place: int, members: np.ndarray) -> Iterator[np.ndarray]:
        """Yield sets of items of the history without which the hit may be gone, the smaller ones
        first, each with the items that matter most first.

        place: of the hit among the rivals. members: the items that may go.
        """
        orders = self._orders(place, members)
        for size in range(1, min(MAX_ITEMS, len(members)) + 1):
            sets = np.unique(np.sort(orders[:, :size], axis=1), axis=0)
            leads = self._leads(place, sets)
            best = np.argsort(-leads, kind="stable")[:MAX_ASKED]
            for index in best[leads[best] > 0].tolist():
                lost = self._of_each[sets[index], place]
                yield sets[index][np.argsort(-lost, kind="stable")]
        if len(members) <= MAX_ITEMS:  # without a history nothing is recommended
            yield members

    def _orders(self, place: int, members: np.ndarray) -> np.ndarray:
        """Return orders in which items may be left out, indices in the history (n, at most
        `MAX_ITEMS`).

        In each order the items come first whose removal lets one rival gain most on the hit. The
        rivals are those that pass it without the fewest items. The last orders go by what the hit
        loses, and by what it loses more than its next rivals do.
        """
        lost = self._of_each[members].T  # (n_rivals, n_members)
        gains = lost[place] - lost
        following = gains[place + 1 : place + 1 + self.k]
        mean_gain = following.mean(axis=0) if len(following) else lost[place]
        orders = _largest_first(np.vstack([gains, mean_gain, lost[place]]), MAX_ITEMS)

        n_rivals, size = len(gains), orders.shape[1]
        gained = np.cumsum(np.take_along_axis(gains, orders[:n_rivals], axis=1), axis=1)
        margins = self.rival_scores[place] - self.rival_scores
        n_needed = (gained <= margins[:, None]).sum(axis=1)
        n_needed[: place + 1] = size + 1  # the hit itself, and what is above it already
        targets = np.argsort(n_needed, kind="stable")[:N_TARGETS]
        return np.asarray(members[orders[[*targets.tolist(), n_rivals, n_rivals + 1]]])

    def _leads(self, place: int, sets: np.ndarray) -> np.ndarray:
        """Return by how much the hit is behind the k-th of its rivals without each set, (n,); below
        0 where it is still ahead, −∞ where there are fewer rivals.
        """
        lost = np.sum([losses.of_sets(sets) for losses in self._losses], axis=0)
        left = self.rival_scores - lost
        leads = np.delete(left - left[:, [place]], place, axis=1)
        n_others = leads.shape[1]
        if n_others < self.k:
            return np.full(len(sets), -np.inf)
        return np.asarray(np.partition(leads, n_others - self.k, axis=1)[:, n_others - self.k])

    def _is_gone(self, hit: int, rows: Sequence[int]) -> bool:
        pause()
        return hit not in self.first(rows)

    def _minimal(self, hit: int, rows: list[int]) -> list[int]:
        """Return the set without what it does not need, those that matter least tried first."""
        left = rows
        for row in reversed(rows):
            fewer = [other for other in left if other != row]
            if fewer and self._is_gone(hit, fewer):
                return self._minimal(hit, fewer)
        return left


def _largest_first(values: np.ndarray, n: int) -> np.ndarray:
    """Return the places of the n largest values of each row, the largest first, (n_rows, n)."""
    if n < values.shape[1]:
        places = np.argpartition(-values, n - 1, axis=1)[:, :n]
    else:
        places = np.broadcast_to(np.arange(values.shape[1]), values.shape)
    order = np.argsort(-np.take_along_axis(values, places, axis=1), axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)
