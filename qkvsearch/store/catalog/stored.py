"""The catalog of a build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qkvsearch.store.catalog.column_values import ColumnValues
from qkvsearch.store.catalog.conditions import ConditionMasks
from qkvsearch.store.catalog.item_table import ItemTable
from qkvsearch.store.catalog.segment import RowKind, SegmentCatalog
from qkvsearch.store.catalog.titles import Titles
from qkvsearch.store.catalog.users import Users
from qkvsearch.store.row_map import RowMap
from qkvsearch.tables.ids import Ids


class StoredCatalog(ItemTable):
    """The items of a build, and what is asked about them besides their ids and cells."""

    def __init__(
        self, files: Sequence[SegmentCatalog], rows: RowMap, facts: Mapping[str, Any]
    ) -> None:
        super().__init__(files, rows, facts)
        # Items by id or title.
        self.titles = Titles(self)
        # The distinct cells of columns.
        self.values = ColumnValues(self)
        # Which items meet a condition.
        self.conditions = ConditionMasks(self)
        # The users by id.
        self.users = Users(files[0])

    def close(self) -> None:
        super().close()
        self.values.clear()
        self.conditions.clear()

    def ids(self, kind: RowKind) -> Ids:
        """Return the ids of all items or users in the order of their rows."""
        return self.users.ids() if kind == "users" else self.item_ids()

    def are_whole(self, kind: RowKind) -> bool:
        """Return whether the ids of the items or of the users are whole numbers."""
        return self.users.have_whole_ids if kind == "users" else self.have_whole_ids
