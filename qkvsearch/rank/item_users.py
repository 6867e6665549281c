"""Who has and who likes a few items, by the log and by what was recorded since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.heads.histories import Histories
from qkvsearch.heads.stored_log import LogComponent, UsersOfItem
from qkvsearch.models.user_history import PastInteraction, latest_records
from qkvsearch.store import StoredCatalog
from qkvsearch.store.records.build_records import StoredRow
from qkvsearch.tables.times import UNKNOWN_TIME

if TYPE_CHECKING:
    from qkvsearch.heads.stored_models import StoredModels

NOBODY = UsersOfItem(np.zeros(0, dtype=np.int64))


class Likers(NamedTuple):
    """The users who like an item."""

    # The rows of those in the build, ascending.
    rows: np.ndarray
    # The names of those that are only recorded, each in one spelling.
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

    Of each user only the records of the item itself matter: no other item changes how much the user
    likes it. So the work is that of the users of these items, not of all users.
    """

    models: StoredModels
    catalog: StoredCatalog
    # The rows of the items.
    items: Sequence[int]
    # The new records of each of them, as `BuildRecords.of_items` returns them. They are copies, so
    # that what is recorded or undone later changes no answer. The log never changes.
    rows: Sequence[Sequence[StoredRow]]

    @classmethod
    def of(cls, histories: Histories, items: Sequence[int]) -> Self:
        """Read the records of these items."""
        rows = histories.records.of_items(items)
        return cls(histories.models, histories.catalog, items, rows)

    def liking(self, item: int) -> Likers:
        """Return the users who like one of the items."""
        in_log = self._in_log[item]
        likes = self._are_liked(item, in_log.ratings, in_log.weights, len(in_log.users))
        added: list[int] = []
        names: list[str] = []
        for user, likes_it in self._recorded_likes(item).items():
            row = self._built.get(user)
            place = None if row is None else self._place(item, row)
            if place is not None:
                # In the log, too: the record is newer.
                likes[place] = likes_it
            elif likes_it and row is not None:
                added.append(row)
            elif likes_it:
                names.append(user)
        rows = np.union1d(in_log.users[likes], np.array(added, dtype=np.int64))
        return Likers(rows, frozenset(names))

    def _recorded_likes(self, item: int) -> dict[str, bool]:
        """Return whether each user with a newer record of the item than the log has likes it."""
        users: list[str] = []
        ratings: list[float | None] = []
        weights: list[float | None] = []
        for user, interactions in self._recorded[item].items():
            past = self._past(item, user)
            known = {} if past is None else {item: past}
            for latest in latest_records(known, interactions):
                users.append(user)
                ratings.append(latest.rating)
                weights.append(latest.weight)
        likes = self._are_liked(item, _array(ratings), _array(weights), len(users))
        return dict(zip(users, likes.tolist(), strict=True))

    def _are_liked(
        self, item: int, ratings: np.ndarray | None, weights: np.ndarray | None, n: int
    ) -> np.ndarray:
        """Return whether an item is liked with these ratings and weights, bool (n,)."""
        items = np.full(n, item, dtype=np.int64)
        return self.models.feedback.confidences(items, ratings, weights) > 0

    def n_having(self, item: int) -> int:
        """Return how many users interacted with one of the items."""
        in_log = 0 if self.models.implicit is None else int(self.models.item_counts[item])
        only_recorded = [user for user in self._recorded[item] if self._past(item, user) is None]
        return in_log + len(only_recorded)

    def _past(self, item: int, user: str) -> PastInteraction | None:
        """Return what the log has of a recorded user and an item, None for nothing."""
        row = self._built.get(user)
        place = None if row is None else self._place(item, row)
        if place is None:
            return None
        _, ratings, times, weights = self._in_log[item]
        return PastInteraction(
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
    def _recorded(self) -> dict[int, dict[str, list[PastInteraction]]]:
        """The new interactions by item and by user, oldest first."""
        records = self.models.snapshot.records
        pairs = zip(self.items, self.rows, strict=True)
        return {item: records.by_user_of(item, rows) for item, rows in pairs}

    @cached_property
    def _built(self) -> dict[str, int]:
        """The rows of the recorded users that are in the build."""
        recorded = self._recorded.values()
        return self.catalog.users.find({user for users in recorded for user in users})

    @cached_property
    def _in_log(self) -> Mapping[int, UsersOfItem]:
        """The users of the items in the log."""
        log = self.models.find(LogComponent())
        if log is None:
            return dict.fromkeys(self.items, NOBODY)
        return log.users_of(self.items)


def _array(numbers: Sequence[float | None]) -> np.ndarray:
    """Return numbers, float32 (n,), NaN for None."""
    return np.array([np.nan if number is None else number for number in numbers], np.float32)


def _number(values: np.ndarray | None, place: int) -> float | None:
    """Return a rating or a weight, None where it is unknown."""
    if values is None or np.isnan(values[place]):
        return None
    return float(values[place])
