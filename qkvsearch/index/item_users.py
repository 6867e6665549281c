"""Who has and who likes a few items, by the log and by what was recorded since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.collaborative.user_history import UNKNOWN_TIME, Interaction, latest_records
from qkvsearch.index.interaction_log import LogComponent, UsersOfItem
from qkvsearch.storage import StoredCatalog

if TYPE_CHECKING:
    from qkvsearch.index import StoredModels

NOBODY = UsersOfItem(np.zeros(0, dtype=np.int64))


class Likers(NamedTuple):
    """The users who like an item. rows: those of the build, ascending. names: those that are only
    recorded.
    """

    rows: np.ndarray
    names: frozenset[str]

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.rows) + len(self.names)

    def number_shared(self, other: Likers) -> int:
        """Return how many of them like another item, too."""
        both = np.intersect1d(self.rows, other.rows, assume_unique=True)
        return len(both) + len(self.names & other.names)


@dataclass(frozen=True)
class ItemUsers:
    """Who has and who likes each of a few items, at one moment.

    recorded: the new interactions by item and by user, as `BuildRecords.by_item` returns them. They
    are copies, so that what is recorded or undone later changes no answer. The log never changes.

    Of each user only the records of the item itself matter: no other item changes how much the user
    likes it. So the work is that of the users of these items, not of all users.
    """

    models: StoredModels
    catalog: StoredCatalog
    recorded: Mapping[int, Mapping[str, list[Interaction]]]

    def liking(self, item: int) -> Likers:
        """Return the users who like one of the items."""
        in_log = self._in_log[item]
        feedback = self.models.feedback
        items = np.full(len(in_log.users), item, dtype=np.int64)
        confidences = feedback.confidences(items, in_log.ratings, in_log.weights)
        likes = confidences > 0

        users, latest = [], []
        for user, interactions in self.recorded[item].items():
            past = self._past(item, user)
            for interaction in latest_records({} if past is None else {item: past}, interactions):
                users.append(user)
                latest.append(interaction)
        ratings = np.array([np.nan if x.rating is None else x.rating for x in latest], np.float32)
        weights = np.array([np.nan if x.weight is None else x.weight for x in latest], np.float32)
        new_items = np.full(len(latest), item, dtype=np.int64)
        likes_now = feedback.confidences(new_items, ratings, weights) > 0

        added: list[int] = []
        names: list[str] = []
        for user, likes_it in zip(users, likes_now.tolist(), strict=True):
            row = self._rows.get(user)
            place = None if row is None else self._place(item, row)
            if place is not None:
                likes[place] = likes_it
            elif likes_it and row is not None:
                added.append(row)
            elif likes_it:
                names.append(user)
        rows = np.union1d(in_log.users[likes], np.array(added, dtype=np.int64))
        return Likers(rows, frozenset(names))

    def n_new(self, item: int) -> int:
        """Return how many users have one of the items by the records alone, and not by the log."""
        recorded = self.recorded[item]
        return sum(self._past(item, user) is None for user in recorded)

    def _past(self, item: int, user: str) -> Interaction | None:
        """Return what the log has of a recorded user and an item, None for nothing."""
        row = self._rows.get(user)
        place = None if row is None else self._place(item, row)
        if place is None:
            return None
        _, ratings, times, weights = self._in_log[item]
        return Interaction(
            item,
            _number(ratings, place),
            UNKNOWN_TIME if times is None else int(times[place]),
            _number(weights, place),
        )

    def _place(self, item: int, row: int) -> int | None:
        """Return where the user in this row is among the users of an item in the log."""
        users = self._in_log[item].users
        place = int(np.searchsorted(users, row))
        return place if place < len(users) and users[place] == row else None

    @cached_property
    def _rows(self) -> dict[str, int]:
        """The rows of the recorded users that are in the build."""
        return self.catalog.find_users({user for users in self.recorded.values() for user in users})

    @cached_property
    def _in_log(self) -> Mapping[int, UsersOfItem]:
        """The users of the items in the log."""
        log = self.models.find(LogComponent())
        items = list(self.recorded)
        return dict.fromkeys(items, NOBODY) if log is None else log.users_of(items)


def _number(values: np.ndarray | None, place: int) -> float | None:
    """Return a rating or a weight, None where it is unknown."""
    if values is None or np.isnan(values[place]):
        return None
    return float(values[place])
