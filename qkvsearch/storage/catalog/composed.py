"""The catalogs of all segments as one, without the items that have departed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from operator import itemgetter
from typing import Any, Literal

import numpy as np

from qkvsearch.data.ids import Id
from qkvsearch.errors import DamagedError
from qkvsearch.storage.catalog.cells import ColumnCells
from qkvsearch.storage.catalog.segment import CatalogInMemory, SegmentCatalog
from qkvsearch.storage.rows import Rows

# Segments of at most so many rows are joined in memory when the build is asked first: one look-up
# in each file of twenty would take longer than all of a question.
SMALL = 1000


@dataclass(frozen=True)
class CatalogSlice:
    """A catalog, and the item row of each of its rows, −1 of the departed; None: they are its own,
    and none has departed.
    """

    catalog: SegmentCatalog
    place: np.ndarray | None

    def position(self, row: int) -> int:
        """The item row of a row."""
        return row if self.place is None else int(self.place.item(row))

    def positions(self, rows: np.ndarray) -> np.ndarray:
        """The item rows of those of the rows, int64, that have not departed."""
        found = rows if self.place is None else self.place[rows]
        return found[found >= 0]

    def tombstones(self) -> list[int]:
        """Rows of items that are no longer there."""
        return [] if self.place is None else np.flatnonzero(self.place < 0).tolist()

    def placed(self, found: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """What was found, with the item row in the place of the row, without the departed."""
        if self.place is None:
            return iter(found)
        at = self.place.item
        items = ((item, *row[1:]) for row in found if (item := at(row[0])) >= 0)
        return items if self._is_ascending else iter(sorted(items, key=itemgetter(0)))

    @cached_property
    def _is_ascending(self) -> bool:
        """Rows are by id, as items are, but where text ids have joined whole numbers."""
        return self.place is None or bool(np.all(np.diff(self.place[self.place >= 0]) > 0))


@dataclass(frozen=True)
class ComposedCatalog:
    """Look-ups as in `SegmentCatalog`, by item row."""

    catalogs: Sequence[SegmentCatalog]
    rows: Rows

    @cached_property
    def columns(self) -> dict[str, str]:
        """The SQL types of the columns, by their names: those of the base, but for ids, which are
        text where those of any segment are.
        """
        columns = self.catalogs[0].columns
        return columns if self.whole_ids else {**columns, "id": "TEXT"}

    @cached_property
    def whole_ids(self) -> bool:
        """Whether ids are whole numbers."""
        return all(catalog.whole_ids for catalog in self.catalogs)

    @cached_property
    def starts(self) -> np.ndarray:
        """The stored row of each segment's first."""
        sizes = [catalog.n_rows for catalog in self.catalogs[1:]]
        return np.cumsum([0, self.rows.n_base, *sizes])[:-1]

    @cached_property
    def parts(self) -> list[CatalogSlice]:
        """The catalogs that are asked. The order of the rows of each is that of its item rows."""
        if self.rows.is_plain:
            return [CatalogSlice(self.catalogs[0], None)]
        for catalog in self.catalogs:
            catalog.ids_as_text = not self.whole_ids
        segments = list(
            map(CatalogSlice, self.catalogs, np.split(self.rows.place, self.starts[1:]))
        )
        number = self._part_of_segment
        n_parts = 1 + int(number.max())
        return [
            self._one_of([segments[place] for place in np.flatnonzero(number == part)])
            for part in range(n_parts)
        ]

    @cached_property
    def _part_of_segment(self) -> np.ndarray:
        """The base and large segments are parts of their own, and all small ones are the last."""
        sizes = np.diff([*self.starts, self.rows.n_stored])
        is_own = sizes > SMALL
        is_own[0] = True
        return np.where(is_own, np.cumsum(is_own) - 1, is_own.sum())

    def close(self) -> None:
        """Close the files for good."""
        for catalog in (*self.catalogs, *(part.catalog for part in self.__dict__.get("parts", ()))):
            catalog.close()

    def find(self, ids: Sequence[str]) -> dict[str, int]:
        """Item rows by the text of each id that is there."""
        return {
            text: position
            for part in self.parts
            for text, row in part.catalog.find("items", ids).items()
            if (position := part.position(row)) >= 0
        }

    def cells(self, columns: Sequence[str], positions: Sequence[int]) -> dict[int, tuple[Any, ...]]:
        """These columns of items, by item row."""
        return {
            part.position(found[0]): found[1:]
            for part, rows in self._located(positions)
            for found in part.catalog.cells(columns, rows)
        }

    def all_cells(
        self, columns: Sequence[str], where: str = "1", *values: Any
    ) -> Iterator[tuple[Any, ...]]:
        """Item row and these columns of the items for which `where` (SQL) holds, in order."""
        return self._merged(lambda catalog: catalog.all_cells(columns, where, *values))

    def keyed_titles(self, where: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Item row, key and title of the items for which `where` (SQL) holds, in order."""
        return self._merged(lambda catalog: catalog.keyed_titles(where, *values))

    def column_cells(self, column: str) -> ColumnCells:
        """The cells of a column."""
        codes = np.full(len(self.rows), -1, dtype=np.int32)
        code: dict[Any, int] = {}
        for part in self.parts:
            different, found, rows = part.catalog.cells_by_code(column)
            here = np.array([code.setdefault(cell, len(code)) for cell in different], np.int32)
            at = rows if part.place is None else part.place[rows]
            codes[at[at >= 0]] = here[found[at >= 0]]
        if (codes < 0).any():
            raise DamagedError(self.catalogs[0].path, "or a segment's: of an item there is no row")
        return ColumnCells(list(code), codes)

    def texts(self, kind: Literal["title", "id"]) -> tuple[list[str], np.ndarray]:
        """Keys of titles, or ids as text, and the item row of each, int64, ascending."""
        texts: list[str] = []
        rows: list[np.ndarray] = []
        for part in self.parts:
            found, at = part.catalog.texts(kind)
            texts += found
            rows.append(at if part.place is None else part.place[at])
        every = np.concatenate(rows)
        if every.size and every[0] >= 0 and (np.diff(every) > 0).all():
            return texts, every
        order = np.argsort(every, kind="stable")
        order = order[np.searchsorted(every[order], 0) :]
        return [texts[i] for i in order.tolist()], every[order]

    def ids(self) -> list[Id]:
        """All ids, in order."""
        if self.rows.is_plain:
            return self.catalogs[0].ids()
        return [id_ for _, id_ in self.all_cells(["id"])]

    def filled(self) -> dict[str, int]:
        """How many items have a cell that is not blank, by column."""
        total = np.zeros(len(self.columns), dtype=np.int64)
        for part in self.parts:
            total += part.catalog.filled()
            if tombstones := part.tombstones():
                total -= part.catalog.filled(tombstones)
        return dict(zip(self.columns, total.tolist(), strict=True))

    def _located(self, positions: Sequence[int]) -> Iterator[tuple[CatalogSlice, list[int]]]:
        """Each part with its rows of those items."""
        if self.rows.is_plain:
            yield self.parts[0], list(positions)
            return
        wanted = np.array(positions, dtype=np.int64)
        stored = self.rows.stored[wanted]
        segment = np.searchsorted(self.starts, stored, side="right") - 1
        number, own_rows = self._part_of_segment[segment], stored - self.starts[segment]
        for place in np.unique(number).tolist():
            part, here = self.parts[place], number == place
            yield part, (wanted if part.place is None else own_rows)[here].tolist()

    def _one_of(self, parts: Sequence[CatalogSlice]) -> CatalogSlice:
        """Several segments as one, with the items that are there under their item rows."""
        if len(parts) == 1:
            return parts[0]
        numbered = _in_order(parts, lambda catalog: catalog.all_cells(list(self.columns)))
        try:
            joined = CatalogInMemory(self.columns, numbered, self.catalogs[0].folds)
        except (sqlite3.Error, IndexError) as error:
            raise DamagedError(self.catalogs[0].path, f"or a segment's: {error}") from None
        return CatalogSlice(joined, None)

    def _merged(
        self, read: Callable[[SegmentCatalog], Iterator[tuple[Any, ...]]]
    ) -> Iterator[tuple[Any, ...]]:
        return _in_order(self.parts, read)


def _in_order(
    parts: Sequence[CatalogSlice], read: Callable[[SegmentCatalog], Iterator[tuple[Any, ...]]]
) -> Iterator[tuple[Any, ...]]:
    """What is read of each part, by item row. read: gives the row number first, ascending."""
    streams = [part.placed(read(part.catalog)) for part in parts]
    return streams[0] if len(streams) == 1 else merge(*streams, key=itemgetter(0))
