"""The users of a build by id."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from qkvsearch.errors import UnknownIdError
from qkvsearch.store.catalog.segment import SegmentCatalog
from qkvsearch.tables.ids import Ids, id_text


class Users:
    """The users of a build. Only its base has any: segments have items alone."""

    def __init__(self, base: SegmentCatalog) -> None:
        self._base = base

    @property
    def have_whole_ids(self) -> bool:
        """Whether the ids are whole numbers."""
        return self._base.whole_users

    def ids(self) -> Ids:
        """Return all ids in the order of their rows."""
        return Ids(map(str, self._base.ids("users")), self._base.folds, self.have_whole_ids)

    def find(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the row of each known user by the text of the id."""
        return self._base.find("users", ids)

    def position(self, user: Any) -> int | None:
        """Return the row of a user; None for an unknown one."""
        text = id_text(user, self.have_whole_ids)
        return self.find([text]).get(text)

    def text(self, position: int) -> str:
        """Return the id of the user in this row, as the build spells it."""
        return self._base.user_text(position)

    def unknown(self, user: Any) -> UnknownIdError:
        """Return the error for an unknown user. It names no other user."""
        return UnknownIdError(f"no user {id_text(user)!r}")
