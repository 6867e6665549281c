"""The catalog of a build: items by id or title, users by id, cells and conditions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from heapq import merge
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.deadline import check_deadline
from qkvsearch._utils.folding import fold
from qkvsearch._utils.query_lock import released
from qkvsearch.errors import DamagedError, UnknownIdError
from qkvsearch.store.catalog.segment import Kind, SegmentCatalog
from qkvsearch.store.catalog.titles import (
    MAX_SHOWN,
    MAX_ZEROS,
    near_names,
    split_prefix,
    title_key,
)
from qkvsearch.store.row_map import RowMap
from qkvsearch.tables.catalog_columns import CatalogColumns, StoredColumn
from qkvsearch.tables.ids import Id, Ids, id_text

if TYPE_CHECKING:
    from qkvsearch.where import Where

# How many conditions have their mask cached, one byte for each item.
MAX_MASKS = 16
# A column with more distinct cells is not cached: its cells would take more memory than all masks.
MAX_CACHED_CELLS = 1 << 16
# How many items have their id and title cached: about 20 MB.
MAX_CACHED_NAMES = 1 << 16
# A catalog of at most this many items is read whole when the first name is needed: a few ms.
FEW_ITEMS = 1 << 12


@dataclass(frozen=True)
class ColumnCells:
    """The cells of a column, each distinct cell once.

    distinct: the distinct cells, None for a blank one. codes: int32 (n_items,), the index of each
    item's cell in `distinct`.

    >>> cells = ColumnCells(["red", None], np.array([0, 1, 0]))
    >>> items = np.array([True, True, False])
    >>> cells.holds(lambda cell: cell == "red", items), cells.counts(items)
    (array([ True, False, False]), {'red': 1})
    """

    distinct: Sequence[Any]
    codes: np.ndarray

    def holds(self, test: Callable[[Any], bool], items: np.ndarray) -> np.ndarray:
        """Return which of these items, bool (n_items,), have a cell that passes the test, as bool
        (n_items,). A blank cell never does. Only cells of these items are tested.
        """
        passes = np.zeros(len(self.distinct), dtype=bool)
        with released():  # there may be a million cells
            for code in np.flatnonzero(np.bincount(self.codes[items])).tolist():
                check_deadline()
                cell = self.distinct[code]
                passes[code] = cell is not None and test(cell)
        return passes[self.codes] & items

    def counts(self, items: np.ndarray) -> dict[Any, int]:
        """Count these items, bool (n_items,), by their cell. Blank cells are left out."""
        counts = np.bincount(self.codes[items], minlength=len(self.distinct))
        codes: Iterable[int] = np.flatnonzero(counts).tolist()
        return {
            self.distinct[code]: int(counts[code])
            for code in codes
            if self.distinct[code] is not None
        }


class StoredCatalog:
    """The items of a build, from the catalogs of its segments, without deleted rows.

    What other modules call the position of an item is its row here; rows are in the order of ids.

    segments: the catalogs of the segments that have rows, the base first. rows: which of the stored
    rows are items. facts: of the build's manifest.
    """

    def __init__(
        self, segments: Sequence[SegmentCatalog], rows: RowMap, facts: Mapping[str, Any]
    ) -> None:
        self.segments, self.rows, self.facts = segments, rows, facts
        # The base also has the users, and what is the same in all segments.
        self._base = segments[0]
        self._masks: dict[Hashable, np.ndarray] = {}
        self._column_cells: dict[str, ColumnCells] = {}
        self._groups: dict[str, np.ndarray] = {}
        self._folded: dict[str, str | None] = {}
        self._names: dict[int, tuple[Any, ...]] = {}

    def close(self) -> None:
        """Close the files, and drop what was cached from them."""
        for catalog in self.segments:
            catalog.close()
        for cache in (self._masks, self._column_cells, self._groups, self._folded, self._names):
            cache.clear()

    # --- columns and ids ---

    @cached_property
    def sql_types(self) -> dict[str, str]:
        """SQL types by stored name, id and title first; ids are text if those of a segment are."""
        types = self._base.columns
        facts = self.facts.get("columns", ())
        names = {str(fact.get("stored") or fact["name"]) for fact in facts}
        if not names | {"id", "title"} <= types.keys():
            raise DamagedError(self._base.path, "its columns are not those of the build")
        return types if self._has_whole_ids else {**types, "id": "TEXT"}

    @property
    def columns(self) -> list[str]:
        """The stored names of the columns, id and title first."""
        return list(self.sql_types)

    @cached_property
    def catalog_columns(self) -> CatalogColumns:
        """The columns with their types and their owner's names."""
        return CatalogColumns.of(list(self.sql_types.items()), self.facts.get("columns", ()))

    @property
    def fold_ids(self) -> bool:
        """Whether ids that differ only in case are the same."""
        return self._base.folds

    def are_whole(self, kind: Kind) -> bool:
        """Return whether the ids of the items or of the users are whole numbers."""
        return self._base.whole_users if kind == "users" else self._has_whole_ids

    @cached_property
    def _has_whole_ids(self) -> bool:
        return all(catalog.whole_ids for catalog in self.segments)

    def ids(self, kind: Kind) -> Ids:
        """Return all ids in the order of their rows."""
        if kind == "users":
            ids: Iterable[Id] = self._base.ids("users")
        elif self.rows.is_plain:
            ids = self._base.ids()
        else:
            ids = (id_ for _, id_ in self._rows_of_all(["id"]))
        return Ids(map(str, ids), self.fold_ids, self.are_whole(kind))

    # --- cells ---

    def names(self, positions: Sequence[int] | np.ndarray) -> tuple[list[Id], list[str]]:
        """Return ids and titles of items, in the order of `positions`."""
        requested = [int(position) for position in positions]
        cached = self._names
        if missing := [position for position in requested if position not in cached]:
            if len(self.rows) <= FEW_ITEMS:
                missing = list(range(len(self.rows)))
            if len(cached) + len(missing) > MAX_CACHED_NAMES:
                cached, missing = {}, requested
                if len(requested) <= MAX_CACHED_NAMES:
                    self._names = cached
            cached |= zip(missing, self.cells(missing, ["id", "title"]), strict=True)
        rows = [cached[position] for position in requested]
        return [id_ for id_, _ in rows], [str(title) for _, title in rows]

    def cells(
        self, positions: Sequence[int] | np.ndarray, columns: Sequence[str]
    ) -> list[tuple[Any, ...]]:
        """Return these columns of items, in the order of `positions`; None for a blank cell."""
        requested = [int(position) for position in positions]
        cells = {
            catalog.item_row(row[0]): row[1:]
            for catalog, rows in self._located(requested)
            for row in catalog.cells(columns, rows)
        }
        try:
            return [cells[position] for position in requested]
        except KeyError as error:
            what = f"the catalog, or that of a segment, has no row for item {error}"
            raise DamagedError(self._base.path, what) from None

    def all_cells(self) -> Iterator[tuple[Any, ...]]:
        """Yield the cells of each item in the order of `columns`; None for a blank cell."""
        return (cells[1:] for cells in self._rows_of_all(self.columns))

    @cached_property
    def varying(self) -> list[str]:
        """The stored columns of which items have several values, those of their variants."""
        varying = {name for catalog in self._databases for name in catalog.variant_columns}
        return [name for name in self.columns if name in varying]

    def variants(self, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield row number and these stored columns of each variant of an item."""
        return _in_order(self._databases, lambda catalog: catalog.variants(columns))

    def row(self, position: int) -> dict[str, Any]:
        """Return one item by stored column; None for a blank cell."""
        columns = self.columns
        return dict(zip(columns, self.cells([position], columns)[0], strict=True))

    def column(self, name: str) -> Iterator[tuple[int, Any]]:
        """Yield row number and cell of each item in a stored column; None for a blank cell."""
        return ((cells[0], cells[1]) for cells in self._rows_of_all([name]))

    def column_cells(self, name: str) -> ColumnCells:
        """Return the cells of a stored column, cached where few are distinct."""
        cells = self._column_cells.get(name)
        if cells is None:
            cells = self._read_column(name)
            if len(cells.distinct) <= MAX_CACHED_CELLS:
                self._column_cells[name] = cells
        return cells

    def folded_cells(self, name: str) -> str | None:
        """Return a column's distinct cells, folded, a line each; None for too many to cache."""
        if name not in self._folded:
            cells = self.column_cells(name)
            if len(cells.distinct) > MAX_CACHED_CELLS:
                self._folded[name] = None
            else:  # removed items have cells as well
                present = cells.counts(np.ones(len(cells.codes), dtype=bool))
                self._folded[name] = "\n".join(fold(str(cell)) for cell in present)
        return self._folded[name]

    def groups(self, name: str) -> np.ndarray:
        """Return a number for each item, int64 (n_items,): the same for cells of a stored column
        that are equal but for spaces, and one of its own for a blank cell. The array is cached.
        """
        groups = self._groups.get(name)
        if groups is None:
            cells = self.column_cells(name)
            numbers: dict[str, int] = {}
            of_cells = [
                -1
                if cell is None
                else numbers.setdefault(" ".join(str(cell).split()), len(numbers))
                for cell in cells.distinct
            ]
            codes = np.array(of_cells, dtype=np.int64)[cells.codes]
            groups = np.where(codes < 0, len(numbers) + np.arange(len(codes)), codes)
            self._groups[name] = groups
        return groups

    def _read_column(self, name: str) -> ColumnCells:
        codes = np.full(len(self.rows), -1, dtype=np.int32)
        code_of: dict[Any, int] = {}
        for catalog in self._databases:
            distinct, own_codes, rows = catalog.cells_by_code(name)
            common = np.array(
                [code_of.setdefault(cell, len(code_of)) for cell in distinct], np.int32
            )
            items = catalog.item_rows_of(rows)
            codes[items[items >= 0]] = common[own_codes[items >= 0]]
        if (codes < 0).any():
            what = "the catalog, or that of a segment, has no row for an item"
            raise DamagedError(self._base.path, what)
        return ColumnCells(list(code_of), codes)

    def empty_counts(self) -> dict[str, int]:
        """Count the items with a blank cell, by stored column."""
        filled = np.zeros(len(self.columns), dtype=np.int64)
        for catalog in self._databases:
            filled += catalog.filled()
            if deleted := catalog.deleted_rows():
                filled -= catalog.filled(deleted)
        return dict(zip(self.columns, (len(self.rows) - filled).tolist(), strict=True))

    def is_titled_by_id(self) -> bool:
        """Return whether the title of every item is its id."""
        others = self._rows_of_all(["id"], "title IS NOT CAST(id AS TEXT)")
        return next(others, None) is None

    # --- conditions ---

    def mask(self, where: Where) -> np.ndarray:
        """Return bool (n_items,), True where the condition holds. The array is read-only: the next
        query with this condition gets the same one. Raises `QkvError`.
        """
        from qkvsearch.where import cache_key

        key = cache_key(where)
        mask = None if key is None else self._masks.get(key)
        if mask is None:
            mask = self._compute_mask(where)
            if key is not None:
                self._masks[key] = mask
                for oldest in list(self._masks)[:-MAX_MASKS]:
                    self._masks.pop(oldest, None)  # another thread may have dropped it
        return mask

    def _compute_mask(self, where: Where) -> np.ndarray:
        from qkvsearch.where import matching_in_all

        def cells(column: StoredColumn) -> Iterator[Any]:
            return (cell for _, cell in self.column(column.stored) if cell is not None)

        mask = np.zeros(len(self.rows), dtype=bool)
        with ExitStack() as stack:
            # Connections of their own: the authorizer would also stop other threads.
            tables = [
                (stack.enter_context(closing(catalog.separate())), "items")
                for catalog in self._databases
            ]
            matches = matching_in_all(tables, self.catalog_columns, where, cells)
        for catalog, rows in zip(self._databases, matches, strict=True):
            items = catalog.item_rows_of(rows)
            mask[items[items >= 0]] = True
        mask.flags.writeable = False
        return mask

    # --- users ---

    def find_users(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the row of each known user by the text of the id."""
        return self._base.find("users", ids)

    def user_position(self, user: Any) -> int | None:
        """Return the row of a user; None for an unknown one."""
        text = id_text(user, self.are_whole("users"))
        return self.find_users([text]).get(text)

    def user_text(self, position: int) -> str:
        """Return the id of the user in this row, as the build spells it."""
        return self._base.user_text(position)

    def unknown_user(self, user: Any) -> UnknownIdError:
        """Return the error for an unknown user. It names no other user."""
        return UnknownIdError(f"no user {id_text(user)!r}")

    # --- items by id or title ---

    def find_items(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the row of each known item by the text of the id."""
        ids = list(ids)
        return {
            text: position
            for catalog in self._databases
            for text, row in catalog.find("items", ids).items()
            if (position := catalog.item_row(row)) >= 0
        }

    def ids_and_titles(self, ids: Iterable[str]) -> dict[str, tuple[Id, str]]:
        """Return the stored id and the title of each known item by the text of the id."""
        rows = self.find_items(ids)
        cells = self.cells(list(rows.values()), ["id", "title"])
        return {text: (id_, str(title)) for text, (id_, title) in zip(rows, cells, strict=True)}

    def item_position(self, item: Any) -> int:
        """Return the row of an item by id or title, as `find_item` does."""
        return self.find_item(item)[0]

    def find_item(self, item: Any) -> tuple[int, str]:
        """Return the row of an item by its id, or by its title where only one item has it; and a
        note where the text is the id of one item and the title of another, else "".

        A title may lack its year and its article. `id:300` is read as an id only, `title:300` as a
        title. Raises `UnknownIdError` with near matches, or with the ids to choose from.
        """
        name = id_text(item)
        by_id = self._by_id(item)
        prefix = ""
        if by_id is None:
            prefix, name = split_prefix(name)
            by_id = self._by_id(name) if prefix == "id" else None
        titled = [] if prefix == "id" else self._titled(name)
        if by_id is not None:
            # A number in Python is no title.
            others = sorted(set(titled) - {by_id}) if isinstance(item, str) else []
            return by_id, self._two_readings(name, by_id, others) if others else ""
        if len(titled) == 1:
            return titled[0], ""
        if titled:
            choices = ", ".join(map(self._label, titled))
            raise UnknownIdError(
                f"{name!r} is the title of {len(titled)} items; give an id: {choices}"
            )
        near = self._near(name)
        what = f"with the {prefix} " if prefix else ""
        raise UnknownIdError(
            f"no item {what}{name!r}" + (f"; did you mean {'; '.join(near)}?" if near else "")
        )

    def also_titles(self, rows: Mapping[str, int]) -> list[str]:
        """Return the texts that are titles of other items too. rows: the row of the item whose id
        each text is, −1 for a text that is no id.
        """
        keys = {text: title_key(text) for text, row in rows.items() if row >= 0}
        is_key = "key IN (SELECT value FROM json_each(?))"
        titled: dict[str, set[int]] = {}
        for row, key, _ in self._keyed_titles(is_key, json.dumps(list(keys.values()))):
            titled.setdefault(key, set()).add(row)
        return [text for text, key in keys.items() if titled.get(key, set()) - {rows[text]}]

    def _by_id(self, item: Any) -> int | None:
        text = id_text(item, self.are_whole("items"))
        return self.find_items([text]).get(text)

    def _titled(self, title: str) -> list[int]:
        """Return the rows of the items with exactly this title, or else with the same key."""
        same_key = list(self._keyed_titles("key = ?", title_key(title)))
        exact = [position for position, _, other in same_key if other == title]
        return exact or [position for position, *_ in same_key]

    def _near(self, name: str) -> list[str]:
        """Return ids that differ only in leading zeros, and similar titles and ids."""
        bare = name.lstrip("0")
        padded = self.find_items("0" * n + bare for n in range(MAX_ZEROS) if name)
        keys = list(_in_order(self._databases, SegmentCatalog.title_keys))
        titles = [title for _, title in keys]
        ids = [str(id_) for _, id_ in self.column("id")]
        near = near_names(name, titles, ids)
        rows = [keys[i][0] for kind, i in near if kind == "title"]
        spelled = iter(self.names(rows)[1])
        names = (next(spelled) if kind == "title" else ids[i] for kind, i in near)
        first = map(str, self.names(sorted(padded.values()))[0])
        return list(dict.fromkeys([*first, *names]))[:MAX_SHOWN]

    def _two_readings(self, name: str, by_id: int, titled: Sequence[int]) -> str:
        others = " and ".join(map(self._label, titled[:MAX_SHOWN]))
        return (
            f"{name!r} is the id of {self._label(by_id)} and the title of {others}: read as the "
            f"id; title:{name} is the other, and id:{name} says so"
        )

    def _label(self, position: int) -> str:
        """Return id, title and, where there is one, year of an item."""
        row = self.row(position)
        label = f"{row['id']} = {row['title']}"
        if "year" not in row or re.search(r"\(\d{4}\)", str(row["title"])):
            return label
        return f"{label} ({'' if row['year'] is None else row['year']})"

    # --- the databases of the segments ---

    @cached_property
    def _databases(self) -> Sequence[SegmentCatalog]:
        """The catalogs of the segments, which know the item rows of their rows."""
        if not self.rows.is_plain:
            item_rows = np.split(self.rows.item_rows, self._starts[1:])
            for catalog, rows in zip(self.segments, item_rows, strict=True):
                catalog.item_rows, catalog.ids_as_text = rows, not self._has_whole_ids
        return self.segments

    @cached_property
    def _starts(self) -> np.ndarray:
        """The stored row at which each segment starts."""
        sizes = [catalog.n_rows for catalog in self.segments[1:]]
        return np.cumsum([0, self.rows.n_base, *sizes])[:-1]

    def _located(self, positions: Sequence[int]) -> Iterator[tuple[SegmentCatalog, list[int]]]:
        """Yield each catalog that has some of these items, and its own rows of them."""
        if self.rows.is_plain:
            yield self._base, list(positions)
            return
        stored = self.rows.stored[np.array(positions, dtype=np.int64)]
        segment = np.searchsorted(self._starts, stored, side="right") - 1
        rows = stored - self._starts[segment]
        for i in np.unique(segment).tolist():
            yield self._databases[i], rows[segment == i].tolist()

    def _rows_of_all(
        self, columns: Sequence[str], where: str = "1", *values: Any
    ) -> Iterator[tuple[Any, ...]]:
        """Yield row number and these columns of the items for which `where` (SQL) holds."""
        return _in_order(
            self._databases, lambda catalog: catalog.all_cells(columns, where, *values)
        )

    def _keyed_titles(self, where: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield row number, key and title of the items for which `where` (SQL) holds."""
        return _in_order(self._databases, lambda catalog: catalog.keyed_titles(where, *values))


def _in_order(
    catalogs: Sequence[SegmentCatalog],
    read: Callable[[SegmentCatalog], Iterator[tuple[Any, ...]]],
) -> Iterator[tuple[Any, ...]]:
    """Merge what is read of each catalog. read: yields rows, their own number first, ascending."""
    streams = [catalog.by_item_row(read(catalog)) for catalog in catalogs]
    return streams[0] if len(streams) == 1 else merge(*streams, key=itemgetter(0))
