"""A user's history: items, confidences, ratings and times, joined with later interactions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from qkvsearch.collaborative.confidences import confidences
from qkvsearch.errors import QkvError

NO_TIMES = (
    "the interactions here have no times, so none is recent (`recent`): build from a log with a "
    "time column"
)
# An item's row number, the rating and the time. Without a rating (None) the confidence is 1.
Interaction = tuple[int, float | None, int]

# Before all times: of a log without times. After all times: of what a query says the user likes.
UNKNOWN_TIME = int(np.iinfo(np.int64).min)
NOW = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class History:
    """One user's items: row numbers (h,), confidences (h,) to recommend by, ratings (h,), NaN where
    unknown, and times (h,), `UNKNOWN_TIME` where the log has none.
    """

    positions: np.ndarray
    confidences: np.ndarray
    ratings: np.ndarray
    times: np.ndarray

    def __len__(self) -> int:
        return len(self.positions)

    def recorded_later(self, records: Iterable[Interaction]) -> list[Interaction]:
        """The records, oldest first, that are new to this history: the last of each item.

        An item that the history has at a later time is left out. A record without a rating keeps
        the item's last rating. Records of the same second stay in order: each gets a time after the
        one before.

        >>> past = History(np.array([4]), np.ones(1), np.array([2.0]), np.array([10]))
        >>> past.recorded_later([(4, 5.0, 9), (4, None, 20), (7, None, 20)])
        [(4, 2.0, 20), (7, None, 21)]
        """
        times = dict(zip(self.positions.tolist(), self.times.tolist(), strict=True))
        ratings: dict[int, float | None] = {
            position: rating
            for position, rating in zip(self.positions.tolist(), self.ratings.tolist(), strict=True)
            if np.isfinite(rating)
        }
        latest: dict[int, Interaction] = {}
        before = UNKNOWN_TIME
        for position, rating, time in records:
            if time < times.get(position, time):
                continue
            before = max(time, before + 1)
            if rating is not None:
                ratings[position] = rating
            latest.pop(position, None)  # the last interaction decides the place in the order
            latest[position] = (position, ratings.get(position), before)
        return list(latest.values())

    def then(self, later: Iterable[Interaction], scale: tuple[float, float] | None) -> History:
        """This history with later interactions, which replace earlier ones with the same items."""
        latest = {interaction[0]: interaction for interaction in later}
        if not latest:
            return self
        stays = ~np.isin(self.positions, list(latest))
        ratings = np.array(
            [np.nan if rating is None else rating for _, rating, _ in latest.values()], np.float32
        )
        times = np.array([time for *_, time in latest.values()], dtype=np.int64)
        counts = np.where(np.isnan(ratings), 1, confidences(ratings, len(ratings), scale))
        return History(
            np.concatenate([self.positions[stays], np.array(list(latest), dtype=np.int64)]),
            np.concatenate([self.confidences[stays], counts.astype(np.float32)]),
            np.concatenate([self.ratings[stays], ratings]),
            np.concatenate([self.times[stays], times]),
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
