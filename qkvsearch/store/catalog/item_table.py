"""The items of a build: their ids and cells, read from the files of its segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.errors import DamagedError
from qkvsearch.store.catalog.segment import SegmentCatalog
from qkvsearch.store.row_map import RowMap
from qkvsearch.tables.catalog_columns import CatalogColumns
from qkvsearch.tables.column_types import text_read, type_named
from qkvsearch.tables.ids import Id, Ids

# How many items have their id and title cached: about 20 MB.
MAX_CACHED_NAMES = 1 << 16
# A catalog of at most this many items is read whole when the first name is needed: a few ms.
FEW_ITEMS = 1 << 12


class ItemTable:
    """The items of a build in the order of their ids, without deleted rows.

    What other modules call the position of an item is its row here.
    """

    def __init__(
        self, files: Sequence[SegmentCatalog], rows: RowMap, facts: Mapping[str, Any]
    ) -> None:
        # The catalogs of the segments that have rows, the base first.
        self._files = files
        # Which of the stored rows are items.
        self.rows = rows
        # Of the build's manifest.
        self.facts = facts
        # Id and title of items.
        self._names: dict[int, tuple[Any, ...]] = {}

    def close(self) -> None:
        """Close the files, and forget what was read."""
        for catalog in self._files:
            catalog.close()
        if "segments" in self.__dict__:
            for catalog in self.segments:
                catalog.close()
        self._names.clear()

    @cached_property
    def segments(self) -> Sequence[SegmentCatalog]:
        """The catalogs of the segments, with the item rows of their rows."""
        if self.rows.is_plain:
            return self._files
        rows_of_segments = np.split(self.rows.item_rows, self._starts[1:])
        return [
            catalog.numbered(item_rows, ids_as_text=not self.have_whole_ids)
            for catalog, item_rows in zip(self._files, rows_of_segments, strict=True)
        ]

    # --- columns and ids ---

    @cached_property
    def sql_types(self) -> dict[str, str]:
        """SQL types by stored name, id and title first; ids are text if those of a segment are."""
        base = self._files[0]
        facts = self.facts.get("columns", ())
        names = {str(fact.get("stored") or fact["name"]) for fact in facts}
        if not names | {"id", "title"} <= base.columns.keys():
            raise DamagedError(base.path, "its columns are not those of the build")
        return base.columns if self.have_whole_ids else {**base.columns, "id": "TEXT"}

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
        return self._files[0].folds

    @cached_property
    def have_whole_ids(self) -> bool:
        """Whether the ids of all items are whole numbers."""
        return all(catalog.whole_ids for catalog in self._files)

    def item_ids(self) -> Ids:
        """Return the ids of all items."""
        if self.rows.is_plain:
            ids: Iterable[Id] = self._files[0].ids()
        else:
            ids = (id_ for _, id_ in self.column("id"))
        return Ids(map(str, ids), self.fold_ids, self.have_whole_ids)

    def find_items(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the row of each known item by the text of the id."""
        ids = list(ids)
        found = {}
        for catalog in self.segments:
            for text, row in catalog.find("items", ids).items():
                position = catalog.item_row(row)
                if position >= 0:
                    found[text] = position
        return found

    def ids_and_titles(self, ids: Iterable[str]) -> dict[str, tuple[Id, str]]:
        """Return the stored id and the title of each known item by the text of the id."""
        rows = self.find_items(ids)
        cells = self.cells(list(rows.values()), ["id", "title"])
        return {text: (id_, str(title)) for text, (id_, title) in zip(rows, cells, strict=True)}

    # --- cells ---

    def names(self, positions: Sequence[int] | np.ndarray) -> tuple[list[Id], list[str]]:
        """Return ids and titles of items, in the order of `positions`."""
        requested = [int(position) for position in positions]
        cached = self._names
        if missing := [position for position in requested if position not in cached]:
            if len(self.rows) <= FEW_ITEMS:
                missing = list(range(len(self.rows)))
            if len(cached) + len(missing) > MAX_CACHED_NAMES:
                # A new dict: other threads may be reading the former one.
                cached, missing = {}, requested
                if len(requested) <= MAX_CACHED_NAMES:
                    self._names = cached
            cached.update(zip(missing, self.cells(missing, ["id", "title"]), strict=True))
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
            raise self._lacking(f"item {error}") from None

    def row(self, position: int) -> dict[str, Any]:
        """Return one item by stored column; None for a blank cell."""
        columns = self.columns
        return dict(zip(columns, self.cells([position], columns)[0], strict=True))

    def searched_texts(
        self, positions: Sequence[int] | np.ndarray, stored: Sequence[str]
    ) -> list[list[str]]:
        """Return what search reads of items in these stored columns, as `positions` are."""
        searched = [self.catalog_columns.stored_as(name) for name in stored]
        originals: dict[tuple[int, str], str] = {}
        if any(type_named(column.type).loses_words for column in searched):
            for position, name, text in self.originals_at(positions):
                originals[position, name] = text
        return [
            [
                text_read(cell, column.type, column.unit, originals.get((position, name), ""))
                for cell, column, name in zip(row, searched, stored, strict=True)
            ]
            for position, row in zip(
                map(int, positions), self.cells(positions, stored), strict=True
            )
        ]

    def originals(self, position: int) -> dict[str, str]:
        """Return what the cells of an item that are not shown as they were in the owner's file were
        there, by stored column.
        """
        originals: dict[str, str] = {}
        for catalog, rows in self._located([position]):
            originals |= {name: text for _, name, text in catalog.originals(rows)}
        return {name: originals[name] for name in self.columns if name in originals}

    def originals_at(self, positions: Sequence[int] | np.ndarray) -> Iterator[tuple[int, str, str]]:
        """Yield row number, stored column and text of all such cells of these items."""
        for catalog, rows in self._located([int(position) for position in positions]):
            for row, name, text in catalog.originals(rows):
                yield catalog.item_row(row), name, text

    def all_originals(self) -> Iterator[tuple[int, str, str]]:
        """Yield row number, stored column and text of all such cells."""
        return self._in_order(SegmentCatalog.originals)

    def all_cells(self) -> Iterator[tuple[Any, ...]]:
        """Yield the cells of each item in the order of `columns`; None for a blank cell."""
        return (cells[1:] for cells in self._rows_of_all(self.columns))

    def column(self, name: str) -> Iterator[tuple[int, Any]]:
        """Yield row number and cell of each item in a stored column; None for a blank cell."""
        return ((cells[0], cells[1]) for cells in self._rows_of_all([name]))

    def distinct_cells(self, name: str) -> tuple[list[Any], np.ndarray]:
        """Return the distinct cells of a stored column, None for a blank one, and the index in them
        of each item's cell, int32 (n_items,).
        """
        codes = np.full(len(self.rows), -1, dtype=np.int32)
        code_of: dict[Any, int] = {}
        for catalog in self.segments:
            distinct, own_codes, rows = catalog.cells_by_code(name)
            common = np.array(
                [code_of.setdefault(cell, len(code_of)) for cell in distinct], np.int32
            )
            items = catalog.item_rows_of(rows)
            is_item = items >= 0
            codes[items[is_item]] = common[own_codes[is_item]]
        if (codes < 0).any():
            raise self._lacking("an item")
        return list(code_of), codes

    @cached_property
    def varying(self) -> list[str]:
        """The stored columns of which items have several values, those of their variants."""
        varying = {name for catalog in self._files for name in catalog.variant_columns}
        return [name for name in self.columns if name in varying]

    def variants(self, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield row number and these stored columns of each variant of an item."""
        return self._in_order(lambda catalog: catalog.variants(columns))

    def empty_counts(self) -> dict[str, int]:
        """Count the items with a blank cell, by stored column."""
        filled = np.zeros(len(self.columns), dtype=np.int64)
        for catalog in self.segments:
            filled += catalog.filled()
            if deleted := catalog.deleted_rows():
                filled -= catalog.filled(deleted)
        return dict(zip(self.columns, (len(self.rows) - filled).tolist(), strict=True))

    # --- titles ---

    def is_titled_by_id(self) -> bool:
        """Return whether the title of every item is its id."""
        others = self._rows_of_all(["id"], "title IS NOT CAST(id AS TEXT)")
        return next(others, None) is None

    def title_keys(self) -> Iterator[tuple[Any, ...]]:
        """Yield row number and key of the title of each item."""
        return self._in_order(SegmentCatalog.title_keys)

    def keyed_titles(self, where: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield row number, key and title of the items for which `where` (SQL) holds."""
        return self._in_order(lambda catalog: catalog.keyed_titles(where, *values))

    # --- segments ---

    @cached_property
    def _starts(self) -> np.ndarray:
        """The stored row at which each segment starts."""
        sizes = [catalog.n_rows for catalog in self._files[1:]]
        return np.cumsum([0, self.rows.n_base, *sizes])[:-1]

    def _located(self, positions: Sequence[int]) -> Iterator[tuple[SegmentCatalog, list[int]]]:
        """Yield each catalog that has some of these items, and its own rows of them."""
        if self.rows.is_plain:
            yield self.segments[0], list(positions)
            return
        stored = self.rows.stored[np.array(positions, dtype=np.int64)]
        segment = np.searchsorted(self._starts, stored, side="right") - 1
        rows = stored - self._starts[segment]
        for number in np.unique(segment).tolist():
            yield self.segments[number], rows[segment == number].tolist()

    def _rows_of_all(
        self, columns: Sequence[str], where: str = "1", *values: Any
    ) -> Iterator[tuple[Any, ...]]:
        """Yield row number and these columns of the items for which `where` (SQL) holds."""
        return self._in_order(lambda catalog: catalog.all_cells(columns, where, *values))

    def _in_order(
        self, read: Callable[[SegmentCatalog], Iterator[tuple[Any, ...]]]
    ) -> Iterator[tuple[Any, ...]]:
        """Merge what is read of each segment. read: yields rows, their own number first, sorted."""
        streams = [catalog.by_item_row(read(catalog)) for catalog in self.segments]
        if len(streams) == 1:
            return streams[0]
        return merge(*streams, key=itemgetter(0))

    def _lacking(self, what: str) -> DamagedError:
        path = self._files[0].path
        return DamagedError(path, f"the catalog, or that of a segment, has no row for {what}")
