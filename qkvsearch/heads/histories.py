"""Users' histories: the log of a build with what was recorded since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.validation import check_id
from qkvsearch.errors import QkvError
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.models.user_history import NOW, History, PastInteraction
from qkvsearch.store import StoredCatalog
from qkvsearch.store.records.build_records import RecordsView
from qkvsearch.tables.ids import Id, Ids, are_integers
from qkvsearch.tables.times import UNKNOWN_TIME

# The memory limit of batches: histories and embeddings of 2,048 users, and 200,000 rows of a
# table of recommendations.
BLOCK, ROWS = 2048, 200_000


@dataclass(frozen=True)
class Histories:
    """The histories of all users: those of the build in its order, then those only recorded.

    A history has the interactions of the log and the new records. An answer makes one of these and
    asks nothing else for records: all that it reads is of one moment.
    """

    models: StoredModels
    catalog: StoredCatalog

    @cached_property
    def records(self) -> RecordsView:
        """The records of the moment in which they are first read."""
        return self.models.snapshot.records.view()

    @cached_property
    def _built(self) -> Ids:
        return self.catalog.ids("users")

    @cached_property
    def _recorded(self) -> dict[str, list[PastInteraction]]:
        return self.records.by_user()

    @cached_property
    def ids(self) -> Ids:
        """The ids of all users. Whole numbers stay numbers if all ids of the build are numbers."""
        newcomers = [user for user in self._recorded if user not in self._built]
        return JoinedIds(self._built, newcomers) if newcomers else self._built

    @property
    def mixed(self) -> bool:
        """Whether some ids are numbers and some are text."""
        return self._built.integer and not self.ids.integer and len(self._built) > 0

    def __len__(self) -> int:
        return len(self.ids)

    def blocks(self, k: int = 1) -> list[tuple[int, int]]:
        """Return start and stop of blocks of users, for a table with k rows for each user."""
        size = min(BLOCK, max(1, ROWS // max(k, 1)))
        return [(start, min(start + size, len(self))) for start in range(0, len(self), size)]

    def at(self, row: int, recent: float | None = None) -> History:
        """Return the history of the user in this row of `ids`."""
        built = row if row < len(self._built) else None
        history = self._of_row(built, self._recorded.get(self.ids.texts[row], []))
        if recent is None or (history.times == UNKNOWN_TIME).all():
            return history
        return history.recent(recent)

    def n_recorded(self, row: int) -> int:
        """Return the number of new records of the user in this row of `ids`."""
        return len(self._recorded.get(self.ids.texts[row], []))

    @property
    def user_counts(self) -> np.ndarray:
        """How many users interacted with each item, new records included, int64 (n_items,)."""
        counts = np.zeros(self.models.n_items, dtype=np.int64)
        if self.models.implicit is not None:
            counts += self.models.item_counts.astype(np.int64)
        for user, interactions in self._recorded.items():
            row = self._built.find(user)
            in_log = self.models.history(row if row >= 0 else None).positions
            counts[np.setdiff1d([new.position for new in interactions], in_log)] += 1
        return counts

    def knows(self, user: Any) -> bool:
        """Return whether a user is in the build or in the records."""
        is_built = self.catalog.users.position(user) is not None
        return is_built or self.records.user(user).name is not None

    def stored_id(self, user: Any) -> Id:
        """Return the id of a known user as the build or the records spell it."""
        row = self.catalog.users.position(user)
        if row is not None:
            return self._built[row]
        name = self.records.user(user).name
        assert name is not None
        return int(name) if self._built.integer and are_integers([name]) else name

    def of(
        self, user: Any, likes: Sequence[int] = (), rated: Sequence[PastInteraction] = ()
    ) -> History:
        """Return the history of a user, extended by ratings and likes (rows of items) of this
        query; or one of those alone. Raises `UnknownIdError` for an unknown user, `QkvError`
        without user, likes and ratings.
        """
        if user is None and not likes and not rated:
            raise QkvError("nobody to recommend to: name a user, or something they like")
        row = None if user is None else self.catalog.users.position(check_id("user", user))
        recorded = [] if user is None else self.records.user(user).interactions
        if user is not None and not self.knows(user):
            raise self.catalog.users.unknown(user)
        liked = [PastInteraction(item, None, NOW) for item in likes]
        return self._of_row(row, [*recorded, *rated]).then(liked, self.models.feedback)

    def _of_row(self, row: int | None, recorded: Sequence[PastInteraction]) -> History:
        """Return the log's history of the user in this row (None: a new user), then `recorded`."""
        history = self.models.history(row)
        return history.then(history.recorded_later(recorded), self.models.feedback)


class JoinedIds(Ids):
    """The ids of a build, then other ids. Text among these does not turn numbers into text."""

    def __init__(self, built: Ids, others: Sequence[str]) -> None:
        super().__init__([*built.texts, *others], built.fold)
        self._numbers, self._n_built = built.integer, len(built)

    def __getitem__(self, position: Any) -> Any:
        text = self.texts[position]
        if not self._numbers:
            return text
        return int(text) if position < self._n_built or are_integers([text]) else text
