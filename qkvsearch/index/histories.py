"""A user's history: the log of the build, what was recorded since, and what they say they like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.collaborative.history import NOW, History, Interaction
from qkvsearch.data.ids import Ids, are_integers
from qkvsearch.errors import QkvError
from qkvsearch.index import StoredModels
from qkvsearch.index.log import LogComponent
from qkvsearch.storage import Tables

# Histories and embeddings are held of at most 2,048 users at a time, but for the vectors of
# `similar_users`, and at most 200,000 rows of a table of what to recommend to them.
BLOCK, ROWS = 2048, 200_000


@dataclass(frozen=True)
class Histories:
    """The users of a build in its order, then those recorded since, and what each did."""

    models: StoredModels
    tables: Tables

    @cached_property
    def _built(self) -> Ids:
        return self.tables.ids("users")

    @cached_property
    def _recorded(self) -> dict[str, list[Interaction]]:
        return self.tables.records.by_user()

    @cached_property
    def ids(self) -> Ids:
        """Whole numbers stay numbers where those of the build are, whoever was recorded since."""
        newcomers = [user for user in self._recorded if user not in self._built]
        return JoinedIds(self._built, newcomers) if newcomers else self._built

    @property
    def mixed(self) -> bool:
        """Whether some ids are numbers and some are text."""
        return self._built.integer and not self.ids.integer and len(self._built) > 0

    def __len__(self) -> int:
        return len(self.ids)

    def blocks(self, k: int = 1) -> list[tuple[int, int]]:
        """First row and last + 1 of each, where a table has k rows for every user."""
        size = min(BLOCK, max(1, ROWS // max(k, 1)))
        return [(start, min(start + size, len(self))) for start in range(0, len(self), size)]

    def at(self, row: int, recent: int | None = None) -> History:
        """The history of the user in this row of `ids`."""
        built = row if row < len(self._built) else None
        history = self._of_row(built, self._recorded.get(self.ids.texts[row], []))
        return history if recent is None else history.recent(recent)

    @property
    def recorded_rows(self) -> np.ndarray:
        """Rows of `ids`, int64 (n,), of the users of whom anything was recorded."""
        return np.array([self.ids.find(user) for user in self._recorded], dtype=np.int64)

    def n_recorded(self, row: int) -> int:
        """How much was recorded of the user in this row of `ids`."""
        return len(self._recorded.get(self.ids.texts[row], []))

    def n_users(self, item: int) -> int:
        """How many interacted with the item in this row, those recorded since included."""
        known = 0 if self.models.implicit is None else int(self.models.item_counts[item])
        since = (self.tables.user_position(user) for user in self.tables.records.users_of(item))
        return known + sum(
            row is None or item not in self.models.history(row).positions for row in since
        )

    @property
    def user_counts(self) -> np.ndarray:
        """`n_users` of every item, int64 (n_items,)."""
        counts = np.zeros(self.models.n_items, dtype=np.int64)
        if self.models.implicit is not None:
            counts += self.models.item_counts.astype(np.int64)
        for user, interactions in self._recorded.items():
            row = self._built.find(user)
            known = self.models.history(row if row >= 0 else None).positions
            counts[np.setdiff1d([one.position for one in interactions], known)] += 1
        return counts

    def liking(self, item: int) -> set[int]:
        """Rows of `ids`: the users who like the item in this row, those recorded since included."""
        log = self.models.find(LogComponent())
        found = set() if log is None else set(log.liking(item).tolist())
        for name in self.tables.records.users_of(item):
            row = self.ids.find(name)
            found.discard(row)
            if item in self.at(row).liked.positions:
                found.add(row)
        return found

    def of(
        self,
        user: Any,
        likes: Sequence[int] = (),
        recent: int | None = None,
        rated: Sequence[Interaction] = (),
    ) -> History:
        """What a user interacted with, what was recorded since, what they rate now, and the items
        they say they like.

        likes: row numbers. recent: with each interaction counting half for every `recent` later
        ones. Raises `UnknownIdError` for a user who is not there, `QkvError` for nobody.
        """
        if user is None and not likes and not rated:
            raise QkvError("nobody to recommend to: name a user, or something they like")
        row = None if user is None else self.tables.user_position(user)
        recorded = [] if user is None else self.tables.records.of(user)
        is_new = user is not None and row is None and not recorded
        if is_new and not self.tables.records.has(user):
            raise self.tables.unknown_user(user)
        liked = [Interaction(item, None, NOW) for item in likes]
        history = self._of_row(row, [*recorded, *rated]).then(liked, self.models.feedback)
        return history if recent is None else history.recent(recent)

    def _of_row(self, row: int | None, recorded: Sequence[Interaction]) -> History:
        """What the build knows of the user in this row, None for a new one, then `recorded`."""
        history = self.models.history(row)
        return history.then(history.recorded_later(recorded), self.models.feedback)


class JoinedIds(Ids):
    """The ids of a build, and then those of others: text among them makes no number a text."""

    def __init__(self, built: Ids, others: Sequence[str]) -> None:
        super().__init__([*built.texts, *others], built.fold)
        self._numbers, self._n_built = built.integer, len(built)

    def __getitem__(self, position: Any) -> Any:
        text = self.texts[position]
        if not self._numbers:
            return text
        return int(text) if position < self._n_built or are_integers([text]) else text
