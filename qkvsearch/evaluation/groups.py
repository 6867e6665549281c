"""Quality by the length of a history, by the popularity of an item, and by the grade of a hit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Figures of several systems, by their names.
BySystem = dict[str, float]
Interval = tuple[float, float]

# A number is split into at most this many groups, none of them made for fewer users than this.
MAX_GROUPS = 5
MIN_COUNT = 10


@dataclass(frozen=True)
class HistoryGroup:
    """Users whose histories are of similar lengths, and the quality of their rankings."""

    # The fewest and the most items of their histories.
    low: int
    high: int
    # The number of users.
    users: int
    # The mean of `metric`, by system, and the 95% interval of ours.
    metric: str
    values: BySystem
    interval: Interval

    def to_dict(self) -> dict[str, Any]:
        return {
            "items": [self.low, self.high],
            "users": self.users,
            self.metric: self.values,
            "interval": list(self.interval),
        }


@dataclass(frozen=True)
class PopularityGroup:
    """Items that similar numbers of users met, how often they are found, and recommended."""

    # The fewest and the most users of an item, in the part to learn from.
    low: int
    high: int
    # The number of items.
    items: int
    # Their share of the interactions to learn from.
    interactions: float
    # How many held-out interactions are with them, and `metric`: the share of these that is among
    # the k hits of their user, by system. Without any, `values` is empty and `interval` None.
    held_out: int
    metric: str
    values: BySystem
    interval: Interval | None
    # Their share of all recommendations, by system.
    recommended: BySystem

    def to_dict(self) -> dict[str, Any]:
        return {
            "users": [self.low, self.high],
            "items": self.items,
            "interactions": self.interactions,
            "held_out": self.held_out,
            self.metric: self.values,
            "interval": None if self.interval is None else list(self.interval),
            "recommended": self.recommended,
        }


@dataclass(frozen=True)
class GradeGroup:
    """Hits of one match grade, and how many of them are right."""

    hits: int
    # The share of them that is judged right, and its 95% interval; None without hits.
    right: float | None
    interval: Interval | None

    def to_dict(self) -> dict[str, Any]:
        interval = None if self.interval is None else list(self.interval)
        return {"hits": self.hits, "right": self.right, "interval": interval}


def n_groups(count: int) -> int:
    """Return into how many groups so many users or interactions can be split.

    >>> n_groups(3), n_groups(25), n_groups(2000)
    (1, 2, 5)
    """
    return min(MAX_GROUPS, max(1, count // MIN_COUNT))


def groups_of(numbers: np.ndarray, masses: np.ndarray, n_groups: int) -> np.ndarray:
    """Split numbers into at most `n_groups` groups of about equal mass; return those of each, (n,).

    Groups are numbered from 0, in ascending order. Equal numbers are in the same group.

    >>> groups_of(np.array([1, 1, 2, 9, 5]), np.ones(5), 2)
    array([0, 0, 1, 1, 1])
    """
    distinct_numbers, rows = np.unique(numbers, return_inverse=True)
    if not len(distinct_numbers):
        return rows
    mass = np.bincount(rows, weights=masses)
    # A number belongs to the group in which the middle of its mass lies.
    middles = (np.cumsum(mass) - mass / 2) / mass.sum()
    groups = np.minimum((n_groups * middles).astype(np.int64), n_groups - 1)
    # A number with a large mass can leave a group empty.
    _, groups = np.unique(groups, return_inverse=True)
    return groups[rows]
