"""The items and the users of a build: a row by id, a listing, or all rows as a frame."""

from __future__ import annotations

import builtins
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.validation import check_id
from qkvsearch.errors import QkvError, quantity
from qkvsearch.heads.histories import Histories
from qkvsearch.rank.candidates import candidates
from qkvsearch.rank.display import address_columns, price_column, unit_of
from qkvsearch.rank.facets import Facets
from qkvsearch.rank.facets import facets as count_values
from qkvsearch.rank.item_users import ItemUsers
from qkvsearch.rank.listing import (
    Listing,
    column_key,
    is_in_every_row,
    item_rows,
    own_columns,
    page_of,
)
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.ranking import own_key
from qkvsearch.rank.sorting import sorted_rows
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.column_types import type_named
from qkvsearch.tables.columns import NUMBERS, named, text_times, words_of
from qkvsearch.tables.ids import Id, Ids, id_text
from qkvsearch.where import Where

if TYPE_CHECKING:
    import pandas as pd

USER_NAMES = ("id", "interactions", "recorded")
# A text column with more values is counted only if each value has this many items on average.
MAX_VALUES, ITEMS_EACH = 50, 5
# No column is counted whose values have fewer items on average, or are longer.
MIN_ITEMS_EACH, MAX_VALUE_LENGTH = 2, 40
MAX_COLUMNS = 6
# The items of the sample that is read first.
SAMPLE_SIZE = 200
ADDRESS = re.compile(r"\w+://|www\.|/|[^\s@]+@[^\s@]+\.")
# Words in the name of a date column that mean when an item appeared.
APPEARED = set(
    "added arrived available created issued launched listed posted premiere premiered published "
    "publication release released upload uploaded since new erschienen erscheinungsdatum "
    "veroffentlicht veroffentlichung hinzugefugt publie publication sortie ajoute publicado "
    "publicacion lanzamiento estreno publicacao lancamento pubblicato pubblicazione uscita".split()
)


class RowsById(ABC):
    """A read-only mapping from ids, in the order of their rows, to rows as dicts.

    The files of the build stay open as long as the mapping is there.
    """

    ids: Ids
    kind: ClassVar[str]

    def __init__(self, build: LoadedBuild) -> None:
        self.build = build

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Id]:
        return iter(self.ids)

    def __contains__(self, id_: object) -> bool:
        with suppress(QkvError):
            return check_id("id", id_) in self.ids
        return False

    def keys(self) -> Ids:
        """Return the ids."""
        return self.ids

    @abstractmethod
    def __getitem__(self, id_: Any) -> dict[str, Any]:
        """Return a row. Raises `UnknownIdError` with near matches."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return all rows."""

    def __repr__(self) -> str:
        return f"<{quantity(len(self), self.kind.removesuffix('s'))}>"


class ItemRows(RowsById):
    """The catalog, with the owner's names of columns. A unique title finds an item as its id does.

    `id` and `title` are those of the item, whatever their columns are called. Another column of the
    owner with such a name is `items.id` or `items.title`.
    """

    kind: ClassVar = "items"

    @property
    def catalog(self) -> StoredCatalog:
        """The stored catalog."""
        return self.build.catalog

    @cached_property
    def ids(self) -> Ids:  # type: ignore[override]
        return self.catalog.ids("items")

    def __getitem__(self, id_: Any) -> dict[str, Any]:
        row = self.catalog.row(self.catalog.titles.item_position(check_id("item", id_)))
        return dict(zip(self._keys, row.values(), strict=True))

    def to_frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(list(self.catalog.all_cells()), columns=self._keys)

    @property
    def _keys(self) -> builtins.list[str]:
        """The keys of a row, column by column."""
        return [column_key(column) for column in self.catalog.catalog_columns]

    def list(
        self,
        *,
        where: Where | None = None,
        fields: str | Iterable[str] = (),
        sort: str | None = None,
        k: int | None = None,
        offset: int = 0,
    ) -> Listing:
        """List ids and titles of the items for which `where` holds, with the columns in `fields`:
        `k` of them, by default all, after skipping `offset`.

        sort: the name of a column, ascending, or descending after "-"; "users": most users first.
        Items with a blank cell are last; equal ones, and all without `sort`, are in the order of
        their ids. Raises `QkvError`.
        """
        columns = own_columns(self.catalog, fields)
        rows = np.flatnonzero(candidates(self.catalog, self.build.n_items, where))
        notes: builtins.list[str] = []
        if sort is not None:
            rows, notes = sorted_rows(self.build, rows, sort)
        return replace(
            item_rows(self.catalog, page_of(rows, k, offset), columns),
            total=len(rows),
            offset=offset,
            notes=notes,
        )

    def facets(self, columns: str | Iterable[str], *, where: Where | None = None) -> Facets:
        """Count the items for which `where` holds by the values of these columns, as the facets of
        a search do. Raises `QkvError`.
        """
        counted = own_columns(self.catalog, columns, "columns")
        mask = candidates(self.catalog, self.build.n_items, where)
        return count_values(self.catalog, counted, mask)

    def facet_columns(self) -> builtins.list[str]:
        """Return the columns that are worth counting, the best first, at most 6.

        They have at least two distinct values. Lists and texts come first; each of their values
        occurs on average on two items or more, or on five if there are more than 50 values, and
        none is an address or longer than 40 characters. Then come numbers that are not codes,
        dates, and yes/no. Among equals, columns with fewer blank cells come first.
        """
        catalog = self.catalog
        ranked = []
        for index, column in enumerate(catalog.catalog_columns):
            if column.stored in ("id", "title") or column.role in ("id", "title", text_times.ROLE):
                continue
            if type_named(column.type).is_text and _has_long_values(catalog, column):
                continue
            cells = catalog.values.cells(column.stored)
            counts = cells.counts(np.ones(len(cells.codes), dtype=bool))
            if len(counts) > 1 and _is_worth_counting(column, counts):
                rank = type_named(column.type).facet_rank, -sum(counts.values()), index
                ranked.append((rank, column.name))
        return [name for _, name in sorted(ranked)[:MAX_COLUMNS]]

    def extent(self, column: str) -> tuple[float, float] | None:
        """Return the smallest and the largest number of a column; None for a column of another
        type, or without any.
        """
        found = self.catalog.catalog_columns.find(column, "column")
        if type_named(found.type).shown_as != "number":
            return None
        cells = self.catalog.values.cells(found.stored)
        numbers = cells.counts(np.ones(len(cells.codes), dtype=bool))
        return (min(numbers), max(numbers)) if numbers else None

    def address_columns(self) -> builtins.list[dict[str, str]]:
        """Return the columns of web addresses: `name`, `type` and how pages show it, and `display`,
        "image" for the first column of images, "link" for pages.
        """
        return address_columns(self.catalog)

    def unit(self, column: str) -> str:
        """Return the unit of a column of numbers: "seconds", "minutes", "hours", a currency if its
        name says one or nearly all of its cells had the same, another unit of its cells as the file
        writes it, otherwise "".
        """
        return unit_of(self.catalog, self.catalog.catalog_columns.find(column, "column"))

    def price_column(self) -> str | None:
        """Return the column of numbers with the price of an item, by its name or its currency; None
        if there is none.
        """
        return price_column(self.catalog)

    def newest_column(self) -> str | None:
        """Return the column with the date of an item: the first date column whose name means that,
        or the only date column, or the first number column with a year; None if there is none.
        """
        columns = self.catalog.catalog_columns
        dates = [column.name for column in columns if column.type == "date"]
        times = named("time", dates)
        for name in dates:
            if name in times or APPEARED & set(words_of(name)):
                return name
        if len(dates) == 1:
            return dates[0]
        for column in columns:
            if column.type == "number" and "year" in words_of(column.name):
                return column.name
        return None


class UserRows(RowsById):
    """The users of the build, then those recorded since, with their numbers of interactions."""

    kind: ClassVar = "users"

    @property
    def histories(self) -> Histories:
        """The histories of the users."""
        return self.build.histories

    @cached_property
    def ids(self) -> Ids:  # type: ignore[override]
        return self.histories.ids

    def __getitem__(self, id_: Any) -> dict[str, Any]:
        n = len(self.histories.of(check_id("user", id_)))
        return {"id": self.histories.stored_id(id_), "interactions": n}

    def to_frame(self) -> pd.DataFrame:
        import pandas as pd

        counts = [len(self.histories.at(row)) for row in range(len(self))]
        return pd.DataFrame({"id": list(self.ids), "interactions": counts})

    def list(self, *, k: int | None = None, offset: int = 0) -> Listing:
        """List each user's `id`, number of `interactions`, and how many of these were `recorded`
        since the build: `k` users, by default all, after skipping `offset`. Raises `QkvError`.
        """
        rows = [
            dict(zip(USER_NAMES, self._row(row), strict=True))
            for row in page_of(np.arange(len(self)), k, offset).tolist()
        ]
        return Listing(rows, len(self), USER_NAMES, offset)

    def _row(self, row: int) -> tuple[Any, ...]:
        """Return the values of `USER_NAMES`."""
        histories = self.histories
        return self.ids[row], len(histories.at(row)), histories.n_recorded(row)


def item_card(histories: Histories, position: int) -> dict[str, Any]:
    """Return an item's row under the owner's column names, with its number of `users`, and with the
    numbers and dates of its variants, of which the row has the smallest. `original`, if any, has
    the cells that are not shown as they were in the owner's file, by column.
    """
    catalog = histories.catalog
    shown = [column for column in catalog.catalog_columns if not is_in_every_row(column)]
    (row,) = item_rows(catalog, np.array([position]), shown)
    row |= _variants(catalog, position)
    row["users"] = ItemUsers.of(histories, [position]).n_having(position)
    originals = catalog.originals(position)
    if originals:
        columns = catalog.catalog_columns
        row["original"] = {
            own_key(columns.stored_as(stored).name): text for stored, text in originals.items()
        }
    return row


def _variants(catalog: StoredCatalog, position: int) -> dict[str, str]:
    """Return the numbers and dates of which an item has several, by a name for the card."""
    varying = [catalog.catalog_columns.stored_as(name) for name in catalog.varying]
    columns = [column for column in varying if type_named(column.type).is_ordered]
    variants = catalog.variants([column.stored for column in columns])
    of_item = [cells for item, *cells in variants if item == position]
    listed = {}
    for number, column in enumerate(columns):
        values = {cells[number] for cells in of_item if cells[number] is not None}
        if len(values) > 1:
            in_order = sorted(values, key=type_named(column.type).order)
            listed[f"{column.name} of variants"] = ", ".join(map(id_text, in_order))
    return listed


# --- columns worth counting ---


def _has_long_values(catalog: StoredCatalog, column: StoredColumn) -> bool:
    """Return True if a sample of the items has long values: reading all would be slow."""
    n_items = len(catalog.ids("items"))
    rows = np.unique(np.linspace(0, n_items - 1, min(n_items, SAMPLE_SIZE)).astype(np.int64))
    for (cell,) in catalog.cells(rows, [column.stored]):
        if cell is not None and any(map(_is_long, _values(column, cell))):
            return True
    return False


def _values(column: StoredColumn, cell: Any) -> list[str]:
    return type_named(column.type).entries(cell)


def _is_long(value: str) -> bool:
    """Return True for a long text or an address."""
    return len(value) > MAX_VALUE_LENGTH or ADDRESS.match(value) is not None


def _is_worth_counting(column: StoredColumn, counts: Mapping[Any, int]) -> bool:
    if column.type == "number":
        return not NUMBERS & set(words_of(column.name))
    if not type_named(column.type).is_text:
        return True
    values: dict[str, int] = {}
    for cell, n in counts.items():
        for value in _values(column, cell):
            values[value] = values.get(value, 0) + n
    if any(map(_is_long, values)):
        return False
    items_each = sum(values.values()) / len(values)
    if len(values) > MAX_VALUES:
        return items_each >= ITEMS_EACH
    return items_each >= MIN_ITEMS_EACH
