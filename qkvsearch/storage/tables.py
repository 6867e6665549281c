"""Look-ups in a build's catalog: items by id or title, users by id, cells, conditions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch.data.catalog_columns import CatalogColumns, StoredColumn
from qkvsearch.data.ids import Id, Ids, id_text
from qkvsearch.errors import DamagedError, UnknownIdError, suggest
from qkvsearch.storage.catalog.cells import ColumnCells
from qkvsearch.storage.catalog.composed import ComposedCatalog
from qkvsearch.storage.catalog.segment import Kind, SegmentCatalog
from qkvsearch.storage.catalog.titles import (
    MAX_SHOWN,
    MAX_ZEROS,
    as_form,
    near_names,
    title_key,
)
from qkvsearch.storage.lru import Kept
from qkvsearch.storage.records import RecordsDatabase
from qkvsearch.storage.rows import Rows

if TYPE_CHECKING:
    from qkvsearch.query.where import Where
    from qkvsearch.storage.records.view import Records


# How many users an unknown one is compared with.
MAX_COMPARED = 20_000
# Conditions of which is kept what items they leave, a byte an item.
MASKS = 16
# A column with more different cells than this is read anew: they would take more than all masks.
MOST_CELLS = 1 << 16
# Items of which id and title are kept, some 20 MB.
MOST_NAMES = 1 << 16
# Of so many items all are read as soon as one is asked for, which takes a few milliseconds.
FEW_ITEMS = 1 << 12


@dataclass(frozen=True)
class Tables:
    """The catalogs of a build's segments, base first, as the one catalog of the items that are
    there: what others call a position is a row of this one, in the order of the ids.

    rows: which of the stored rows are items. facts: of the build's manifest. recorded: in the
    workspace, by whatever build.
    """

    catalogs: Sequence[SegmentCatalog]
    rows: Rows
    facts: Mapping[str, Any]
    recorded: RecordsDatabase

    def close(self) -> None:
        """Close the files; what was kept of them answers no more either."""
        self._items.close()
        self._masks.clear()
        self._columns.clear()
        self._named.clear()

    @cached_property
    def _items(self) -> ComposedCatalog:
        return ComposedCatalog(self.catalogs, self.rows)

    @property
    def sql_types(self) -> dict[str, str]:
        """Of the catalog's columns, by their names as they are stored, id and title first."""
        return self._items.columns

    @property
    def columns(self) -> list[str]:
        """The catalog's columns as they are stored, id and title first."""
        return list(self.sql_types)

    @cached_property
    def catalog_columns(self) -> CatalogColumns:
        """The catalog's columns with their types, and their owner's names for them."""
        return CatalogColumns.of(list(self.sql_types.items()), self.facts.get("columns", ()))

    @property
    def fold_ids(self) -> bool:
        """Whether ids that differ in case alone are one."""
        return self._base.folds

    def are_whole(self, kind: Kind) -> bool:
        """Whether the ids of the items or of the users are whole numbers."""
        return self._base.whole_users if kind == "users" else self._items.whole_ids

    def names(self, positions: Sequence[int] | np.ndarray) -> tuple[list[Id], list[str]]:
        """Ids and titles of items, in the order of `positions`."""
        wanted = [int(position) for position in positions]
        kept = self._named
        if unknown := [position for position in wanted if position not in kept]:
            n_items = len(self.rows.stored)
            if n_items <= FEW_ITEMS:
                unknown = list(range(n_items))
            if len(kept) + len(unknown) > MOST_NAMES:
                is_kept = len(wanted) <= MOST_NAMES
                kept, unknown = {}, wanted
                if is_kept:
                    self.__dict__["_named"] = kept
            kept |= zip(unknown, self.cells_of(unknown, ["id", "title"]), strict=True)
        rows = [kept[position] for position in wanted]
        return [id_ for id_, _ in rows], [str(title) for _, title in rows]

    @cached_property
    def _named(self) -> dict[int, tuple[Any, ...]]:
        """Id and title of items that were named before: of the same ones, again and again."""
        return {}

    def known(self, ids: Iterable[str]) -> dict[str, tuple[Id, str]]:
        """By the text of each id that is in the catalog: the id as it is there, and the title."""
        found = self.find_items(ids)
        rows = self.cells_of(list(found.values()), ["id", "title"])
        return {text: (id_, str(title)) for text, (id_, title) in zip(found, rows, strict=True)}

    def find_items(self, ids: Iterable[str]) -> dict[str, int]:
        """The row number of each item by the text of its id; of those that are not there none."""
        return self._items.find(list(ids))

    def users_known(self, ids: Iterable[str]) -> dict[str, int]:
        """The row number of each user by the text of the id; of those that are not there none."""
        return self._base.find("users", ids)

    def ids(self, kind: Kind) -> Ids:
        """All ids, in the order of their row numbers."""
        found = self._base.ids("users") if kind == "users" else self._items.ids()
        return Ids(map(str, found), self.fold_ids, self.are_whole(kind))

    def cells(self) -> list[tuple[Any, ...]]:
        """The whole catalog, one tuple an item, in the order of `columns`; None where blank."""
        return list(self.each_cells())

    def each_cells(self) -> Iterator[tuple[Any, ...]]:
        """The same, each item when it is asked for."""
        return (found[1:] for found in self._items.all_cells(self.columns))

    def cells_of(
        self, positions: Sequence[int] | np.ndarray, columns: Sequence[str]
    ) -> list[tuple[Any, ...]]:
        """These columns of items, in the order of `positions`; None where blank."""
        wanted = [int(position) for position in positions]
        found = self._items.cells(columns, wanted)
        try:
            return [found[position] for position in wanted]
        except KeyError as error:
            path = self._items.catalogs[0].path
            raise DamagedError(path, f"of item {error}, or in a segment, there is no row") from None

    def column(self, name: str) -> Iterator[tuple[int, Any]]:
        """Row number and cell of each item, None where blank, of a column as it is stored."""
        return ((found[0], found[1]) for found in self._items.all_cells([name]))

    def column_cells(self, name: str) -> ColumnCells:
        """The same by different cells, which are kept for the next question."""
        kept = self._columns.get(name)
        if kept is None:
            kept = self._items.column_cells(name)
            if len(kept.different) <= MOST_CELLS:
                self._columns[name] = kept
        return kept

    def row(self, position: int) -> dict[str, Any]:
        """One item by column; None where blank."""
        columns = self.columns
        return dict(zip(columns, self.cells_of([position], columns)[0], strict=True))

    def empty_counts(self) -> dict[str, int]:
        """How many items have a blank cell, by column as it is stored."""
        n_items = len(self.rows.stored)
        return {name: n_items - n for name, n in self._items.filled().items()}

    def is_titled_by_id(self) -> bool:
        """Whether the title of every item is its id."""
        others = self._items.all_cells(["id"], "title IS NOT CAST(id AS TEXT)")
        return next(others, None) is None

    def mask(self, where: Where, n_items: int) -> np.ndarray:
        """bool (n_items,), True where the condition holds; nobody may write there, since it is kept
        for the next question. Raises `QkvError`.
        """
        from qkvsearch.query.where import question

        asked = question(where)
        if asked is None:
            return self._mask(where, n_items)
        return self._masks.of((asked, n_items), lambda: self._mask(where, n_items))

    def _mask(self, where: Where, n_items: int) -> np.ndarray:
        from qkvsearch.query.where import matching_in_all

        def cells(column: StoredColumn) -> Iterator[Any]:
            name = column.stored
            return (cell for _, cell in self._items.all_cells([name]) if cell is not None)

        keep = np.zeros(n_items, dtype=bool)
        parts = self._items.parts
        with ExitStack() as stack:
            # Connections of its own: the authorizer would also stop other threads.
            tables = [
                (stack.enter_context(closing(part.catalog.separate())), "items") for part in parts
            ]
            found = matching_in_all(tables, self.catalog_columns, where, cells)
        for part, rows in zip(parts, found, strict=True):
            keep[part.positions(rows)] = True
        keep.flags.writeable = False
        return keep

    @cached_property
    def _masks(self) -> Kept[np.ndarray]:
        return Kept(MASKS)

    @cached_property
    def _columns(self) -> dict[str, ColumnCells]:
        return {}

    def user_position(self, user: Any) -> int | None:
        """The row number of a user, or None."""
        text = id_text(user, self.are_whole("users"))
        return self.users_known([text]).get(text)

    def user_text(self, user: Any) -> str:
        """A user's id as it is spelled here; one that is not here yet as it is given."""
        position = self.user_position(user)
        return self.records.user_text(user) if position is None else self._base.user_text(position)

    @cached_property
    def records(self) -> Records:
        """What was recorded since builds began, for the items of this one."""
        from qkvsearch.storage.records.view import Records

        return Records(self, self.recorded)

    def unknown_user(self, user: Any) -> UnknownIdError:
        """The error for a user who is neither in the build nor recorded since."""
        built = map(str, self._base.ids("users", MAX_COMPARED))
        known = [*built, *self.records.user_names(MAX_COMPARED)][:MAX_COMPARED]
        nobody = "; nobody's interactions are here yet: record some, or build with `interactions`"
        near = suggest(id_text(user), known) or (f"; such as {known[0]}" if known else nobody)
        return UnknownIdError(f"no user {id_text(user)!r}{near}")

    def item_position(self, item: Any) -> int:
        """The row number of an item, as `item_named` finds it."""
        return self.item_named(item)[0]

    def item_named(self, item: Any) -> tuple[int, str]:
        """The row number of an item by its id, or by its title where only one item has that; and a
        note where a text is the id of one item and the title of another, else "".

        A title may lack its year and its article. `id:300` is read as an id alone, `title:300` as a
        title. Raises `UnknownIdError` with near matches, or with the ids to choose from.
        """
        wanted = id_text(item)
        by_id = self._by_id(item)
        form = ""
        if by_id is None:
            form, wanted = as_form(wanted)
            by_id = self._by_id(wanted) if form == "id" else None
        titled = [] if form == "id" else self._titled(wanted)
        if by_id is not None:
            # A number in Python is no title.
            others = sorted(set(titled) - {by_id}) if isinstance(item, str) else []
            return by_id, self._two_readings(wanted, by_id, others) if others else ""
        if len(titled) == 1:
            return titled[0], ""
        if titled:
            choices = ", ".join(map(self._label, titled))
            raise UnknownIdError(
                f"{wanted!r} is the title of {len(titled)} items; give an id: {choices}"
            )
        near = self._near(wanted)
        what = f"with the {form} " if form else ""
        raise UnknownIdError(
            f"no item {what}{wanted!r}" + (f"; did you mean {'; '.join(near)}?" if near else "")
        )

    def also_titles(self, rows: Mapping[str, int]) -> list[str]:
        """Those texts, each with the row number of the item that it is the id of (−1: of none),
        that are titles of other items.
        """
        keys = {text: title_key(text) for text, row in rows.items() if row >= 0}
        some = "key IN (SELECT value FROM json_each(?))"
        titled: dict[str, set[int]] = {}
        for row, key, _ in self._items.keyed_titles(some, json.dumps(list(keys.values()))):
            titled.setdefault(key, set()).add(row)
        return [text for text, key in keys.items() if titled.get(key, set()) - {rows[text]}]

    def _titled(self, wanted: str) -> list[int]:
        """Row numbers of the items with this very title, or else with one that is much like it."""
        alike = list(self._items.keyed_titles("key = ?", title_key(wanted)))
        exact = [position for position, _, title in alike if title == wanted]
        return exact or [position for position, *_ in alike]

    def _near(self, wanted: str) -> list[str]:
        """The ids that it is but for zeros before it, and titles and ids that may be meant."""
        bare = wanted.lstrip("0")
        padded = self.find_items("0" * n + bare for n in range(MAX_ZEROS) if wanted)
        (titles, of_titles), (ids, _) = self._items.texts("title"), self._items.texts("id")
        found = near_names(wanted, titles, ids)
        rows = [int(of_titles[place]) for kind, place in found if kind == "title"]
        named = iter(self.names(rows)[1])
        names = (next(named) if kind == "title" else ids[place] for kind, place in found)
        first = map(str, self.names(sorted(padded.values()))[0])
        return list(dict.fromkeys([*first, *names]))[:MAX_SHOWN]

    def _two_readings(self, wanted: str, by_id: int, titled: Sequence[int]) -> str:
        others = " and ".join(map(self._label, titled[:MAX_SHOWN]))
        return (
            f"{wanted!r} is the id of {self._label(by_id)} and the title of {others}: read as the "
            f"id; title:{wanted} is the other, and id:{wanted} says so"
        )

    def _by_id(self, item: Any) -> int | None:
        text = id_text(item, self.are_whole("items"))
        return self.find_items([text]).get(text)

    @property
    def _base(self) -> SegmentCatalog:
        """It also knows what is the same for all segments, and all users."""
        return self.catalogs[0]

    def _label(self, position: int) -> str:
        """An item by its id, its title and, where there is one, its year."""
        row = self.row(position)
        label = f"{row['id']} = {row['title']}"
        if "year" not in row or re.search(r"\(\d{4}\)", str(row["title"])):
            return label
        return f"{label} ({'' if row['year'] is None else row['year']})"
