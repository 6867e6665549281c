"""A user's history: items with confidences, ratings, weights and times, and later records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from qkvsearch.errors import QkvError
from qkvsearch.models.confidences import Feedback
from qkvsearch.tables.times import UNKNOWN_TIME

NO_TIMES = (
    "the interactions here have no times, so none is recent (`recent`): build from a log with a "
    "time column"
)
# The time of likes named in a query, after all others.
NOW = int(np.iinfo(np.int64).max)
# Numbers between are seconds since 1970, from 1980 to 2286; others may be ranks.
SECONDS_SINCE_1970 = range(315_532_800, 10**10)


class PastInteraction(NamedTuple):
    """An interaction with the item in row `position`.

    Without a rating it counts fully, and without a weight as much as is usual for the item; a
    negative weight is a refund. Without a time, it has `UNKNOWN_TIME`.
    """

    position: int
    rating: float | None
    time: int
    weight: float | None = None


@dataclass(frozen=True)
class History:
    """The h items of one user, each once. All arrays are (h,)."""

    # The row of each item in the catalog.
    positions: np.ndarray
    # 0 for disliked and refunded items, which are never recommended again and explain nothing.
    confidences: np.ndarray
    # NaN where unknown.
    ratings: np.ndarray
    # `UNKNOWN_TIME` where unknown.
    times: np.ndarray
    # NaN where unknown; None in a log without weights.
    weights: np.ndarray | None = None
    # Whether each confidence depends on the other items, as `recent` makes it.
    is_recent: bool = False

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def liked(self) -> History:
        """The items with a confidence above 0."""
        return self._take(self.confidences > 0)

    def without(self, items: Sequence[int]) -> History:
        """Return the history without the items in these rows.

        >>> two = History(np.array([4, 7]), np.ones(2), np.full(2, np.nan), np.array([10, 20]))
        >>> two.without([4, 5]).positions.tolist()
        [7]
        """
        return self._take(~np.isin(self.positions, items))

    def _take(self, rows: np.ndarray) -> History:
        weights = None if self.weights is None else self.weights[rows]
        return History(
            self.positions[rows],
            self.confidences[rows],
            self.ratings[rows],
            self.times[rows],
            weights,
            self.is_recent,
        )

    def recorded_later(self, records: Iterable[PastInteraction]) -> list[PastInteraction]:
        """Return the last record of each item that is new to this history, oldest first.

        A record with a time is not new if the history has the item at that time or later, since a
        log built after recording may contain it. A record without a rating or a time keeps the
        item's last one. Weights are added up, but not below 0; a record without a weight restores
        the usual weight of a fully refunded item. Records of the same second keep their order: each
        gets a later time than the one before.

        >>> past = History(np.array([4]), np.ones(1), np.array([2.0]), np.array([10]))
        >>> past.recorded_later([PastInteraction(4, 5.0, 9), PastInteraction(7, None, 20)])
        [PastInteraction(position=7, rating=None, time=20, weight=None)]
        """
        return latest_records(self._by_position(), records)

    def _by_position(self) -> dict[int, PastInteraction]:
        """Return the items as interactions, by their rows."""
        weights: list[float | None] = [None] * len(self)
        if self.weights is not None:
            weights = _numbers(self.weights)
        fields = (self.positions.tolist(), _numbers(self.ratings), self.times.tolist(), weights)
        interactions = map(PastInteraction, *fields)
        return {interaction.position: interaction for interaction in interactions}

    def then(self, later: Iterable[PastInteraction], feedback: Feedback) -> History:
        """Return the history with later interactions, which replace those with the same items."""
        latest = {interaction.position: interaction for interaction in later}
        if not latest:
            return self
        unchanged = self.without(list(latest))
        positions = np.array(list(latest), dtype=np.int64)
        ratings = _array_of([each.rating for each in latest.values()])
        weights = _array_of([each.weight for each in latest.values()])
        times = np.array([each.time for each in latest.values()], dtype=np.int64)
        new = feedback.confidences(positions, ratings, weights)
        return History(
            np.concatenate([unchanged.positions, positions]),
            np.concatenate([unchanged.confidences, new]),
            np.concatenate([unchanged.ratings, ratings]),
            np.concatenate([unchanged.times, times]),
            None if unchanged.weights is None else np.concatenate([unchanged.weights, weights]),
        )

    def recent(self, half_life: float) -> History:
        """Halve the confidences for every `half_life` later interactions: c·2^(−age/half_life).

        Interactions of the same time have the same age, and those without one the greatest. Raises
        `QkvError` if none has a time.

        >>> three = History(np.arange(3), np.ones(3), np.full(3, np.nan), np.array([30, 10, 20]))
        >>> three.recent(1).confidences.tolist()
        [1.0, 0.25, 0.5]
        """
        if len(self) and (self.times == UNKNOWN_TIME).all():
            raise QkvError(NO_TIMES)
        age = len(self) - np.searchsorted(np.sort(self.times), self.times, side="right")
        halved = self.confidences * 2.0 ** (-age / half_life)
        return replace(self, confidences=halved, is_recent=True)


def latest_records(
    past: Mapping[int, PastInteraction], records: Iterable[PastInteraction]
) -> list[PastInteraction]:
    """Return the last record of each item that is new to `past`, oldest first, as
    `History.recorded_later` describes.
    """
    latest: dict[int, PastInteraction] = {}
    last_time = UNKNOWN_TIME
    for position, rating, time, weight in records:
        before = past.get(position)
        if before is not None and UNKNOWN_TIME != time <= before.time:
            continue
        current = latest.get(position, before)
        if current is None:
            current = PastInteraction(position, None, UNKNOWN_TIME)
        if time == UNKNOWN_TIME:
            time = current.time
        else:
            time = last_time = max(time, last_time + 1)
        if rating is None:
            rating = current.rating
        if weight is not None:
            weight = max((current.weight or 0.0) + weight, 0.0)
        elif current.weight != 0:  # 0: bought again after a full refund
            weight = current.weight
        latest.pop(position, None)  # the last interaction determines the order
        latest[position] = PastInteraction(position, rating, time, weight)
    return list(latest.values())


def _numbers(values: np.ndarray) -> list[float | None]:
    """Return numbers, None for NaN."""
    return [value if value == value else None for value in values.tolist()]


def _array_of(values: Sequence[float | None]) -> np.ndarray:
    """Return numbers as float32, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], np.float32)


def readable_time(time: int) -> int | str | None:
    """Return seconds since 1970 as date and time in UTC, a rank unchanged, None for no time.

    >>> readable_time(1_700_000_000), readable_time(7)
    ('2023-11-14 22:13:20', 7)
    """
    if time not in SECONDS_SINCE_1970:
        return None if time == UNKNOWN_TIME else time
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


EMPTY_HISTORY = History(
    np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64)
)
