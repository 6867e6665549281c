"""A user's history: the log of the build, what was recorded since, and what they say they like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from qkvsearch.collaborative.history import NOW, History, Interaction
from qkvsearch.data.ids import Ids
from qkvsearch.errors import QkvError
from qkvsearch.stored import StoredModels
from qkvsearch.workspace import Tables


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
        """Numbers where all of them are whole numbers, else text."""
        newcomers = [user for user in self._recorded if user not in self._built]
        return Ids([*self._built.texts, *newcomers]) if newcomers else self._built

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
        liked = [(self.tables.item_position(item), None, NOW) for item in likes]
        history = self._of_row(row, recorded).then(liked, self.models.rating_scale)
        return history if recent is None else history.recent(recent)

    def _of_row(self, row: int | None, recorded: Sequence[Interaction]) -> History:
        """The history of the user in this row of the build, None for one who came later, with what
        was recorded of them since.
        """
        history = self.models.history(row)
        return history.then(history.recorded_later(recorded), self.models.rating_scale)

    def check_rating(self, rating: float | None) -> None:
        """Raise `QkvError` for a rating that is not on the scale of the log's."""
        scale = self.models.rating_scale
        if rating is not None and scale is None:
            raise QkvError("the interactions here have no ratings: leave the rating out")
        if rating is not None and scale is not None and not scale[0] <= rating <= scale[1]:
            raise QkvError(f"a rating here is from {scale[0]:g} to {scale[1]:g}, not {rating:g}")
