"""A user's history: items with confidences, ratings, weights and times, joined with later ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from qkvsearch.collaborative.confidences import Feedback
from qkvsearch.errors import QkvError

NO_TIMES = (
    "the interactions here have no times, so none is recent (`recent`): build from a log with a "
    "time column"
)
# Before all times: of a log without times. After all times: of what a query says the user likes.
UNKNOWN_TIME = int(np.iinfo(np.int64).min)
NOW = int(np.iinfo(np.int64).max)


class Interaction(NamedTuple):
    """One with the item in this row. Without a rating it counts in full, without a weight as much
    as the item usually does; a negative weight takes back what it refunds.
    """

    position: int
    rating: float | None
    time: int
    weight: float | None = None


@dataclass(frozen=True)
class History:
    """One user's items: row numbers (h,), confidences (h,) to recommend by, ratings (h,), NaN where
    unknown, times (h,), `UNKNOWN_TIME` where the log has none, and weights (h,), NaN where unknown,
    None in a log without any.

    An item of confidence 0 is disliked or was taken back: it is known, and no reason for anything.
    """

    positions: np.ndarray
    confidences: np.ndarray
    ratings: np.ndarray
    times: np.ndarray
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def liked(self) -> History:
        """The items that count for anything."""
        return self._take(self.confidences > 0)

    def without(self, items: Sequence[int]) -> History:
        """As if the interactions with the items in these rows had never happened.

        >>> two = History(np.array([4, 7]), np.ones(2), np.full(2, np.nan), np.array([10, 20]))
        >>> two.without([4, 5]).positions.tolist()
        [7]
        """
        return self._take(~np.isin(self.positions, items))

    def _take(self, rows: np.ndarray) -> History:
        weights = None if self.weights is None else self.weights[rows]
        return History(
            self.positions[rows], self.confidences[rows], self.ratings[rows], self.times[rows],
            weights,
        )  # fmt: skip

    def recorded_later(self, records: Iterable[Interaction]) -> list[Interaction]:
        """The records, oldest first, that are new to this history: the last of each item.

        An item that the history has at that time or later is left out: a log that was built after
        it was recorded may have it as well. A record without a rating keeps the item's last rating;
        weights are added to what there was, down to 0, and one without a weight makes it the usual
        one where nothing was left. Records of the same second stay in order: each gets a time after
        the one before.

        >>> past = History(np.array([4]), np.ones(1), np.array([2.0]), np.array([10]))
        >>> past.recorded_later([Interaction(4, 5.0, 9), Interaction(7, None, 20)])
        [Interaction(position=7, rating=None, time=20, weight=None)]
        """
        known = {position: row for row, position in enumerate(self.positions.tolist())}
        times = {position: int(self.times[row]) for position, row in known.items()}
        ratings: dict[int, float | None] = {
            position: float(self.ratings[row])
            for position, row in known.items()
            if np.isfinite(self.ratings[row])
        }
        weights: dict[int, float | None] = {
            position: float(self.weights[row])
            for position, row in known.items()
            if self.weights is not None and np.isfinite(self.weights[row])
        }
        latest: dict[int, Interaction] = {}
        before = UNKNOWN_TIME
        for position, rating, time, weight in records:
            if position in times and time <= times[position] != UNKNOWN_TIME:
                continue
            before = max(time, before + 1)
            if rating is not None:
                ratings[position] = rating
            if weight is not None:
                weights[position] = max((weights.get(position) or 0.0) + weight, 0.0)
            elif weights.get(position) == 0:  # met again after all was taken back
                weights[position] = None
            latest.pop(position, None)  # the last interaction decides the place in the order
            latest[position] = Interaction(
                position, ratings.get(position), before, weights.get(position)
            )
        return list(latest.values())

    def then(self, later: Iterable[Interaction], feedback: Feedback) -> History:
        """This history with later interactions, which replace earlier ones with the same items."""
        latest = {interaction.position: interaction for interaction in later}
        if not latest:
            return self
        stays = self.without(list(latest))
        positions = np.array(list(latest), dtype=np.int64)
        ratings, weights = (
            np.array([np.nan if x is None else x for x in column], np.float32)
            for column in (
                [one.rating for one in latest.values()], [one.weight for one in latest.values()]
            )
        )  # fmt: skip
        times = np.array([one.time for one in latest.values()], dtype=np.int64)
        new = feedback.confidences(positions, ratings, weights)
        return History(
            np.concatenate([stays.positions, positions]),
            np.concatenate([stays.confidences, new]),
            np.concatenate([stays.ratings, ratings]),
            np.concatenate([stays.times, times]),
            None if stays.weights is None else np.concatenate([stays.weights, weights]),
        )

    def recent(self, half_life: int) -> History:
        """Confidences halved for every `half_life` later interactions: c·2^(−age/half_life).

        Interactions of the same time have the same age. Raises `QkvError` where the log has no
        times.

        >>> three = History(np.arange(3), np.ones(3), np.full(3, np.nan), np.array([30, 10, 20]))
        >>> three.recent(1).confidences.tolist()
        [1.0, 0.25, 0.5]
        """
        if (self.times == UNKNOWN_TIME).any():
            raise QkvError(NO_TIMES)
        age = len(self) - np.searchsorted(np.sort(self.times), self.times, side="right")
        return replace(self, confidences=self.confidences * 2.0 ** (-age / half_life))


NOTHING = History(
    np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64)
)
