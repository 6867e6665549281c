"""The items and the users of a build: one by its id, some as a listing, all as a frame."""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.validation import check_id
from qkvsearch.data.ids import Id, Ids, id_text
from qkvsearch.engine.choice import facet_columns, in_order, newest_column
from qkvsearch.errors import QkvError
from qkvsearch.index.interaction_log import Histories
from qkvsearch.query.where import Where, matching_rows
from qkvsearch.search.candidates import candidates
from qkvsearch.search.facets import Facets
from qkvsearch.search.facets import facets as count_values
from qkvsearch.search.listing import Listing, item_rows, own_columns, page_of
from qkvsearch.storage import StoredCatalog

if TYPE_CHECKING:
    import pandas as pd

USER_NAMES = ("id", "interactions", "recorded")


class RowsById(ABC):
    """Ids in the order of their row numbers, each with a row, by column; nothing can be set."""

    ids: Ids
    kind: ClassVar[str]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Id]:
        return iter(self.ids)

    def __contains__(self, id_: object) -> bool:
        with suppress(QkvError):
            return check_id("id", id_) in self.ids
        return False

    def keys(self) -> Ids:
        """The ids."""
        return self.ids

    @abstractmethod
    def __getitem__(self, id_: Any) -> dict[str, Any]:
        """One row. Raises `UnknownIdError` with near matches."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """All rows, one an id."""

    def __repr__(self) -> str:
        return f"<{len(self):,} {self.kind}>"


@dataclass(eq=False, repr=False)
class ItemRows(RowsById):
    """The catalog: a title that only one item has finds it as well as its id."""

    histories: Histories
    kind: ClassVar = "items"

    @property
    def catalog(self) -> StoredCatalog:
        """Look-ups in the catalog."""
        return self.histories.catalog

    @property
    def _n_items(self) -> int:
        return self.histories.models.n_items

    @cached_property
    def ids(self) -> Ids:  # type: ignore[override]
        return self.catalog.ids("items")

    def __getitem__(self, id_: Any) -> dict[str, Any]:
        return self.catalog.row(self.catalog.item_position(check_id("item", id_)))

    def to_frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(list(self.catalog.all_cells()), columns=self.catalog.columns)

    def list(
        self,
        *,
        where: Where | None = None,
        fields: str | Iterable[str] = (),
        sort: str | None = None,
        k: int | None = None,
        offset: int = 0,
    ) -> Listing:
        """Ids and titles, with the columns that `fields` names, of the items for which `where`
        holds: `k` of them, all by default, from the one in place `offset` on.

        sort: a column's name, from the least cell on, or after "-" from the greatest; "users": what
        most interacted with, recorded or built. Items without a cell are last, equal ones in the
        order of the ids, as are all without `sort`. Raises `QkvError`.
        """
        columns = own_columns(self.catalog, fields)
        found = np.flatnonzero(candidates(self.catalog, self._n_items, where))
        found, notes = (found, []) if sort is None else in_order(self.histories, found, sort)
        return replace(
            item_rows(self.catalog, page_of(found, k, offset), columns),
            total=len(found),
            offset=offset,
            notes=notes,
        )

    def facets(self, columns: str | Iterable[str], *, where: Where | None = None) -> Facets:
        """By each column that is named, how many of the items for which `where` holds have each
        value, in the form of a search's facets. Raises `QkvError`.
        """
        named = own_columns(self.catalog, columns, "columns")
        return count_values(self.catalog, named, candidates(self.catalog, self._n_items, where))

    def facet_columns(self) -> builtins.list[str]:
        """The columns that are worth counting, the best first, 6 at most.

        They have at least two different values. Lists and texts come first, if each of their values
        is on two items or more on average, and they have 50 at most or each is on 5; of these none
        is over 40 characters or an address. Then numbers that are no codes, dates, and yes/no.
        Among equals what more items have comes first.
        """
        return facet_columns(self.catalog)

    def newest_column(self) -> str | None:
        """The column that says when an item came: the first of dates whose name says so, or the
        only one of dates, or else the first of numbers that is called a year; None where none does.
        """
        return newest_column(self.catalog.catalog_columns)


@dataclass(eq=False, repr=False)
class UserRows(RowsById):
    """The users of the build, then those recorded since: with how many items each interacted."""

    histories: Histories
    kind: ClassVar = "users"

    @cached_property
    def ids(self) -> Ids:  # type: ignore[override]
        return self.histories.ids

    def __getitem__(self, id_: Any) -> dict[str, Any]:
        n = len(self.histories.of(check_id("user", id_)))
        # Recorded since this view was made, or all of whose items have left: as it was asked for.
        known = self.ids[int(self.ids.positions([id_])[0])] if id_ in self.ids else id_text(id_)
        return {"id": known, "interactions": n}

    def to_frame(self) -> pd.DataFrame:
        import pandas as pd

        counts = [len(self.histories.at(row)) for row in range(len(self))]
        return pd.DataFrame({"id": list(self.ids), "interactions": counts})

    def list(self, *, where: Where | None = None, k: int | None = None, offset: int = 0) -> Listing:
        """Each user's `id`, how many items they have `interactions` with, and how often any was
        `recorded` since the build, of those for which `where` holds of these three: `k` of them,
        all by default, from the one in place `offset` on. Raises `QkvError`.
        """
        found = np.arange(len(self))
        if where is not None:
            number = "INTEGER"
            types = {"id": number if self.ids.integer else "TEXT", "interactions": number}
            table = {**types, "recorded": number}
            found = np.array(matching_rows(table, map(self._row, range(len(self))), where), int)
        rows = [
            dict(zip(USER_NAMES, self._row(place), strict=True))
            for place in page_of(found, k, offset).tolist()
        ]
        return Listing(rows, len(found), USER_NAMES, offset)

    def _row(self, place: int) -> tuple[Any, ...]:
        """By `USER_NAMES`."""
        histories = self.histories
        return self.ids[place], len(histories.at(place)), histories.n_recorded(place)


def item_card(histories: Histories, position: int) -> dict[str, Any]:
    """An item's row by the owner's names of the columns, and how many users interacted with it."""
    catalog = histories.catalog
    (row,) = item_rows(catalog, np.array([position]), own_columns(catalog, catalog.columns))
    return {**row, "users": histories.n_users(position)}
