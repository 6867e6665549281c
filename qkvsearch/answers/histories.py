"""A user's history: the log of the build, what was recorded since, and what they say they like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from qkvsearch.collaborative.history import NOW, History, Interaction
from qkvsearch.data.ids import Ids, id_text
from qkvsearch.errors import QkvError
from qkvsearch.stored import StoredModels
from qkvsearch.workspace import Tables
from qkvsearch.workspace.records import Record

# Histories and embeddings are held of at most 2,048 users at a time, but for the embeddings of
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
    def _recorded(self) -> dict[str, list[Record]]:
        return self.tables.records.by_user()

    @cached_property
    def ids(self) -> Ids:
        """Numbers where all of them are whole numbers, else text."""
        newcomers = [user for user in self._recorded if user not in self._built]
        if not newcomers:
            return self._built
        return Ids([*self._built.texts, *newcomers], self._built.fold)

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

    def of(self, user: Any, likes: Sequence[Any] = (), recent: int | None = None) -> History:
        """What a user interacted with, what was recorded since, and the items they say they like.

        recent: with each interaction counting half for every `recent` later ones. Raises
        `UnknownIdError` for a user and for an item that is not there, `QkvError` for nobody.
        """
        if user is None and not likes:
            raise QkvError("nobody to recommend to: name a user, or something they like")
        row = None if user is None else self.tables.user_position(user)
        recorded = [] if user is None else self.tables.records.of(user)
        is_new = user is not None and row is None and not recorded
        if is_new and not self.tables.records.has(user):
            raise self.tables.unknown_user(user)
        liked = [Interaction(self.tables.item_position(item), None, NOW) for item in likes]
        history = self._of_row(row, recorded).then(liked, self.models.feedback)
        return history if recent is None else history.recent(recent)

    def _of_row(self, row: int | None, recorded: Sequence[Record]) -> History:
        """What the build knows of the user in this row, None for a new one, then `recorded`."""
        history = self.models.history(row)
        return history.then(history.recorded_later(recorded), self.models.feedback)

    def check_record(self, user: Any, rating: float | None) -> None:
        """Raise `QkvError` for a user without an id, and a rating outside the log's scale."""
        if not id_text(user):
            raise QkvError("a user needs an id")
        scale = self.models.rating_scale
        if rating is not None and scale is None:
            raise QkvError("the interactions here have no ratings: leave the rating out")
        if rating is not None and scale is not None and not scale[0] <= rating <= scale[1]:
            raise QkvError(f"a rating here is from {scale[0]:g} to {scale[1]:g}, not {rating:g}")
