"""Write the items of a segment, and the users of a base, to one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkvsearch._utils.files import sync
from qkvsearch._utils.interrupts import held_interrupts
from qkvsearch._utils.sqlite import connect
from qkvsearch.store.catalog.title_keys import title_key
from qkvsearch.tables.catalog_columns import sql_name
from qkvsearch.tables.ids import Ids

if TYPE_CHECKING:
    from qkvsearch.store.catalog.item_table import ItemTable
    from qkvsearch.tables.catalog import Catalog

CATALOG = "items.db"
# Nobody reads the file before it is complete; after a crash its folder belongs to no build.
WRITTEN_ONCE = ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE")
# For files with few rows: each table and index has at least one page.
SMALL_PAGES = "page_size = 1024"


@dataclass(frozen=True)
class CatalogRows:
    """Rows of a catalog to be written.

    columns: name and SQL type of each, id and title first. rows: the cells of each item in that
    order, None for a blank one, sorted by id. fold: ids that differ only in case are the same.
    varying: columns of which items have several values; variants: the row of an item and one value
    of each of these columns. originals: row, column and text of each cell that is not shown as it
    was in the owner's file.
    """

    columns: Sequence[tuple[str, str]]
    rows: Iterable[Sequence[Any]]
    fold: bool = False
    varying: Sequence[str] = ()
    variants: Iterable[Sequence[Any]] = ()
    originals: Iterable[tuple[int, str, str]] = ()

    @classmethod
    def of(cls, catalog: Catalog) -> CatalogRows:
        """Return the rows of a base, with column types from the catalog."""
        frame, id_type = catalog.frame, "INTEGER" if catalog.ids.integer else "TEXT"
        types = [(name, _sql_type(frame[name])) for name in frame.columns[1:]]
        return cls(
            [("id", id_type), *types],
            _cells(catalog),
            catalog.ids.fold,
            *_variants(catalog),
            originals=_originals(catalog),
        )

    @classmethod
    def of_segment(cls, catalog: Catalog, stored: ItemTable) -> CatalogRows:
        """Return rows to add to those of `stored`, with the same column types, except that ids may
        be text instead of whole numbers. Raises `LookupError` for other columns.
        """
        if list(catalog.frame.columns) != stored.columns:
            raise LookupError(f"columns {list(catalog.frame.columns)}, not {stored.columns}")
        (name, id_type), *others = stored.sql_types.items()
        id_type = id_type if catalog.ids.integer else "TEXT"
        columns = [(name, id_type), *others]
        return cls(
            columns,
            _cells(catalog),
            stored.fold_ids,
            *_variants(catalog),
            originals=_originals(catalog),
        )

    @classmethod
    def of_stored(cls, stored: ItemTable) -> CatalogRows:
        """Return all items of a build as one base."""
        columns, varying = list(stored.sql_types.items()), stored.varying
        return cls(
            columns,
            stored.all_cells(),
            stored.fold_ids,
            varying,
            stored.variants(varying),
            stored.all_originals(),
        )


def write_catalog(path: Path, contents: CatalogRows, users: Ids | None = None) -> None:
    """Write items, and for a base the users, to a new file, synced to disk.

    Raises `OSError` or `sqlite3.Error`, and leaves an unusable file then.
    """
    with closing(connect(path, isolation_level=None)) as db:
        for setting in (*WRITTEN_ONCE, *([] if users is not None else [SMALL_PAGES])):
            db.execute(f"PRAGMA {setting}")
        db.execute("BEGIN")
        fold = contents.fold or (users is not None and users.fold)
        _fill_items(db, contents, fold)
        if users is not None:
            _fill_users(db, users, fold)
        db.execute("COMMIT")
    with path.open("rb+") as file:
        sync(file)


def _fill_items(db: sqlite3.Connection, contents: CatalogRows, fold: bool) -> None:
    """Create and fill the tables of items."""
    (_, id_type), *others = contents.columns
    declared = ", ".join(f"{sql_name(name)} {sql_type}" for name, sql_type in others)
    db.execute(
        f"CREATE TABLE items (_position INTEGER PRIMARY KEY, id {id_type} NOT NULL UNIQUE, "
        f"{declared})"
    )
    values = ", ".join("?" * (len(contents.columns) + 1))
    numbered = ((row, *cells) for row, cells in enumerate(contents.rows))
    db.executemany(f"INSERT INTO items VALUES ({values})", numbered)
    if contents.varying:
        types = dict(others)
        declared = ", ".join(f"{sql_name(name)} {types[name]}" for name in contents.varying)
        values = ", ".join("?" * (len(contents.varying) + 1))
        db.execute(f"CREATE TABLE variants (_position INTEGER, {declared})")
        db.executemany(f"INSERT INTO variants VALUES ({values})", contents.variants)
        db.execute("CREATE INDEX variants_position ON variants (_position)")

    db.execute(
        "CREATE TABLE originals (_position INTEGER, name TEXT, text TEXT, "
        "PRIMARY KEY (_position, name)) WITHOUT ROWID"
    )
    db.executemany("INSERT INTO originals VALUES (?, ?, ?)", contents.originals)

    db.create_function("qkv_title_key", 1, lambda title: title_key(str(title)), deterministic=True)
    db.execute("CREATE TABLE titles (key TEXT NOT NULL, position INTEGER PRIMARY KEY)")
    with held_interrupts():
        db.execute("INSERT INTO titles SELECT qkv_title_key(title), _position FROM items")
    db.execute("CREATE INDEX titles_key ON titles (key)")
    if fold:
        # To find ids in another case.
        db.execute(
            "CREATE TABLE folded (kind TEXT, key TEXT, position INTEGER, "
            "PRIMARY KEY (kind, key)) WITHOUT ROWID"
        )
        _fold_ids(db, "items")


def _fill_users(db: sqlite3.Connection, users: Ids, fold: bool) -> None:
    id_type = "INTEGER" if users.integer else "TEXT"
    db.execute(f"CREATE TABLE users (_position INTEGER PRIMARY KEY, id {id_type} NOT NULL UNIQUE)")
    db.executemany("INSERT INTO users VALUES (?, ?)", enumerate(users))
    if fold:
        _fold_ids(db, "users")


def _fold_ids(db: sqlite3.Connection, kind: str) -> None:
    db.create_function("qkv_casefold", 1, str.casefold, deterministic=True)
    db.execute(
        f"INSERT INTO folded SELECT '{kind}', qkv_casefold(CAST(id AS TEXT)), _position "
        f"FROM {kind} ORDER BY 2"
    )


def _cells(catalog: Catalog) -> Iterable[tuple[Any, ...]]:
    others = stored_columns(catalog.frame.iloc[:, 1:])
    return zip(catalog.ids, *others, strict=True)


def _variants(catalog: Catalog) -> tuple[list[str], Iterable[tuple[Any, ...]]]:
    frame = catalog.variants
    return list(frame), zip(map(int, frame.index), *stored_columns(frame), strict=True)


def _originals(catalog: Catalog) -> list[tuple[int, str, str]]:
    """Return row, column and text of the cells that are not shown as they were, sorted."""
    return sorted(
        (row, name, text)
        for name, originals in catalog.originals.items()
        for row, text in zip(originals.index.tolist(), originals, strict=True)
    )


def stored_columns(frame: Any) -> list[Any]:
    """Return the columns of a frame as cells that are stored, None for a blank one."""
    return [frame[name].astype(object).where(frame[name].notna(), None) for name in frame]


def _sql_type(column: Any) -> str:
    kind = column.dtype.kind
    return "INTEGER" if kind == "i" else "REAL" if kind == "f" else "TEXT"
