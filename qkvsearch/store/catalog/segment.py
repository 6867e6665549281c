"""Look up rows in the catalog of one segment."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from itertools import chain, count
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.forks import Connection
from qkvsearch._utils.sqlite import connect
from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.tables.catalog_columns import sql_name, stored_name
from qkvsearch.tables.ids import Id, Ids
from qkvsearch.where.guarded import numbers_in

RowKind = Literal["items", "users"]
# Memory-map the whole file: more bytes than SQLite allows.
MAPPED = 1 << 40
# Rows that are read at once.
AT_ONCE = 256
IMMUTABLE = "mode=ro&immutable=1"


class SegmentCatalog:
    """The tables of items, titles and, in a base, users of one SQLite file, read only.

    Every method raises `DamagedError` where SQLite cannot read the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.uri = f"{path.absolute().as_uri()}?{IMMUTABLE}"
        self._shared = Connection()
        self._is_closed = False
        # The item row of each row, int64, −1 for a deleted one; None where they are the same.
        self._item_rows: np.ndarray | None = None
        # Whether numbers as ids are read as text, because those of another segment are text.
        self._ids_as_text = False

    def numbered(self, item_rows: np.ndarray, *, ids_as_text: bool) -> SegmentCatalog:
        """Return the catalog as a part of a build, by the same connection.

        item_rows: the item row of each row, int64 (n_rows,), −1 for a deleted one. ids_as_text:
        read whole numbers as text, as the ids of other segments are.
        """
        part = copy(self)
        part._item_rows, part._ids_as_text = item_rows, ids_as_text
        return part

    def item_row(self, row: int) -> int:
        """Return the item row of a row, −1 for a deleted one."""
        if self._item_rows is None:
            return row
        try:
            return int(self._item_rows.item(row))
        except (LookupError, TypeError) as error:  # no number of a row
            raise self._unread(error) from None

    def item_rows_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the item rows of rows, int64, −1 for deleted ones."""
        return rows if self._item_rows is None else self._item_rows[rows]

    def deleted_rows(self) -> list[int]:
        """Return the rows that are no items of the build."""
        return [] if self._item_rows is None else np.flatnonzero(self._item_rows < 0).tolist()

    def by_item_row(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Replace each tuple's row number by the item row, drop deleted rows, and sort by it."""
        if self._item_rows is None:
            return rows

        def items() -> Iterator[tuple[Any, ...]]:
            for row in rows:
                item = self.item_row(row[0])
                if item >= 0:
                    yield (item, *row[1:])

        if self._is_ascending:
            return items()
        return iter(sorted(items(), key=itemgetter(0)))

    @cached_property
    def _is_ascending(self) -> bool:
        """Whether items have the order of the rows: not where text ids joined whole numbers."""
        rows = self._item_rows
        return rows is None or bool(np.all(np.diff(rows[rows >= 0]) > 0))

    def require_rows(self, n: int) -> None:
        """Raise `DamagedError` where the rows of items, or of titles, do not end at `n`."""
        for table in ("items", "titles"):
            try:
                ends = self.db.execute(f"SELECT min(rowid), max(rowid) FROM {table}").fetchone()
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise self._unread(error) from None
            if ends != (0, n - 1):
                raise DamagedError(self.path, f"{table} in rows {ends} instead of {(0, n - 1)}")

    @property
    def db(self) -> sqlite3.Connection:
        """The connection that all threads share."""
        db = self._shared.db
        if db is None:
            db = self._shared.db = self.separate()
        return db

    def separate(self) -> sqlite3.Connection:
        """Open another connection, which the caller closes."""
        if self._is_closed:
            raise WorkspaceError(f"{self.path}: closed; open the workspace again")
        try:
            db = connect(self.uri, uri=True, check_same_thread=False)
            # Reading page by page would make a scan three times as slow.
            db.execute(f"PRAGMA mmap_size = {MAPPED}")
            return db
        except sqlite3.Error as error:
            raise self._unread(error) from None

    def close(self) -> None:
        """Close the shared connection; later queries raise `WorkspaceError`."""
        self._is_closed = True
        self._shared.close()

    @cached_property
    def columns(self) -> dict[str, str]:
        """SQL types of the items' columns by stored name, id and title first."""
        return _by_stored_name(self._columns_of("items"))

    @cached_property
    def variant_columns(self) -> dict[str, str]:
        """SQL types of the columns of which items have several values, by stored name."""
        return _by_stored_name(self._columns_of("variants"))

    @property
    def whole_ids(self) -> bool:
        """Whether the items' ids are whole numbers."""
        return self.columns["id"] == "INTEGER"

    @property
    def whole_users(self) -> bool:
        """Whether the users' ids are whole numbers."""
        return self._user_columns.get("id") == "INTEGER"

    @cached_property
    def folds(self) -> bool:
        """Whether ids that differ only in case are the same."""
        return bool(self._columns_of("folded"))

    def cells(self, columns: Sequence[str], rows: Iterable[int]) -> list[tuple[Any, ...]]:
        """Return row number and these columns of the given rows that exist, in any order."""
        among = "WHERE _position IN (SELECT value FROM json_each(?))"
        return self.select(f"{self._select(columns)} {among}", json.dumps(list(rows)))

    def all_cells(
        self, columns: Sequence[str], where: str = "1", *values: Any
    ) -> Iterator[tuple[Any, ...]]:
        """Yield row number and these columns of the items for which `where` (SQL) holds, sorted."""
        return self.stream(f"{self._select(columns)} WHERE {where} ORDER BY _position", *values)

    def variants(self, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield row number and these columns of each variant, sorted; None for a column that does
        not vary here.
        """
        if not self.variant_columns:
            return iter(())
        values = (sql_name(name) if name in self.variant_columns else "NULL" for name in columns)
        selected = ", ".join(["_position", *values])
        return self.stream(f"SELECT {selected} FROM variants ORDER BY 1, rowid")

    def originals(self, rows: Sequence[int] | None = None) -> Iterator[tuple[int, str, str]]:
        """Yield row number, stored column and text of each cell that is not shown as it was in the
        owner's file, of all rows or of these, sorted.
        """
        sql = "SELECT _position, name, text FROM originals"
        if rows is None:
            return self.stream(f"{sql} ORDER BY 1, 2")
        among = "WHERE _position IN (SELECT value FROM json_each(?))"
        return self.stream(f"{sql} {among} ORDER BY 1, 2", json.dumps(list(rows)))

    def keyed_titles(self, where: str = "1", *values: Any) -> Iterator[tuple[int, str, str]]:
        """Yield row number, key and title of the items for which `where` (SQL) holds, sorted."""
        joined = "titles AS keyed CROSS JOIN items ON _position = position"
        return self.stream(
            f"SELECT position, key, title FROM {joined} WHERE {where} ORDER BY keyed.rowid", *values
        )

    def title_keys(self) -> Iterator[tuple[int, str]]:
        """Yield row number and key of the title of each item, sorted."""
        return self.stream("SELECT position, key FROM titles ORDER BY position")

    def cells_by_code(self, column: str) -> tuple[list[Any], np.ndarray, np.ndarray]:
        """Return the distinct cells of a column, None for blank ones; the index of each row's cell
        in them, int64; and the row numbers, int64, ascending.
        """
        cells = self.stream(f"SELECT {self._expression(column)} FROM items ORDER BY _position")
        code: defaultdict[Any, int] = defaultdict(count().__next__)
        codes = np.fromiter(map(code.__getitem__, chain.from_iterable(cells)), np.int64)
        ((rows,),) = self.select("SELECT group_concat(_position) FROM items")
        return list(code), codes, np.sort(numbers_in(rows))

    def filled(self, rows: Sequence[int] | None = None) -> list[int]:
        """Count the cells of each column that are not blank, in all rows or in these."""
        counts = ", ".join(f"count({sql_name(name)})" for name in self.columns)
        sql = f"SELECT {counts} FROM items"
        if rows is None:
            return list(self.select(sql)[0])
        among = "WHERE _position IN (SELECT value FROM json_each(?))"
        return list(self.select(f"{sql} {among}", json.dumps(list(rows)))[0])

    def ids(self, kind: RowKind = "items") -> list[Id]:
        """Return all ids in the order of their rows."""
        if kind == "users" and not self._user_columns:
            return []
        return [id_ for (id_,) in self.select(f"SELECT id FROM {kind} ORDER BY _position")]

    @property
    def n_rows(self) -> int:
        """The number of rows of items."""
        sql = "SELECT coalesce(max(_position) + 1, 0) FROM items"
        return int(self.select(sql)[0][0])

    def rows_before(self, ids: Ids) -> np.ndarray:
        """Count the items with a smaller id than each of `ids`, int64 (n,). Texts are greater than
        whole numbers.
        """
        n_rows = self.n_rows
        first = "SELECT _position FROM items WHERE id >= ? ORDER BY id LIMIT 1"
        results = (self.select(first, text) for text in ids.texts)
        return np.array([rows[0][0] if rows else n_rows for rows in results], dtype=np.int64)

    def user_text(self, row: int) -> str:
        """Return the id of the user in a row."""
        return str(self.select("SELECT id FROM users WHERE _position = ?", row)[0][0])

    def find(self, kind: RowKind, ids: Iterable[str]) -> dict[str, int]:
        """Return row numbers by the text of each known id. Whole numbers are known as they are
        stored: 7 and not 007.
        """
        if kind == "users" and not self._user_columns:
            return {}
        keys = {text: text.casefold() if self.folds else text for text in ids}
        if self.folds:
            sql = f"SELECT key, position FROM folded WHERE kind = '{kind}' AND key"
        else:
            sql = f"SELECT CAST(id AS TEXT), _position FROM {kind} WHERE id"
        unique = set(keys.values())
        # SQLite's JSON cuts a text at its first NUL.
        plain = json.dumps([key for key in unique if "\0" not in key])
        rows = dict(self.select(f"{sql} IN (SELECT value FROM json_each(?))", plain))
        for key in unique:
            if "\0" in key:
                rows.update(self.select(f"{sql} = ?", key))
        return {text: rows[key] for text, key in keys.items() if key in rows}

    def select(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return list(self.stream(sql, *values))

    def stream(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query."""
        try:
            cursor = self.db.execute(sql, values)
            try:
                rows = cursor.fetchmany(AT_ONCE)
                while rows:
                    yield from rows
                    rows = cursor.fetchmany(AT_ONCE) if len(rows) == AT_ONCE else []
            finally:
                with suppress(sqlite3.ProgrammingError):  # the database is closed
                    cursor.close()
        except UnicodeEncodeError:  # lone surrogates are in no file
            return
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise self._unread(error) from None

    @cached_property
    def _user_columns(self) -> dict[str, str]:
        return self._columns_of("users")

    def _columns_of(self, table: str) -> dict[str, str]:
        """Return SQL types by name, without row numbers; none for a missing table."""
        info = self.select(f"PRAGMA table_info({table})")
        return {name: sql_type for _, name, sql_type, *_ in info if name != "_position"}

    def _select(self, columns: Sequence[str]) -> str:
        expressions = ["_position", *map(self._expression, columns)]
        return f"SELECT {', '.join(expressions)} FROM items"

    def _expression(self, column: str) -> str:
        return "CAST(id AS TEXT)" if column == "id" and self._ids_as_text else sql_name(column)

    def _unread(self, error: Exception) -> DamagedError:
        return DamagedError(self.path, str(error))


def _by_stored_name(sql_types: dict[str, str]) -> dict[str, str]:
    return {stored_name(name): sql_type for name, sql_type in sql_types.items()}
