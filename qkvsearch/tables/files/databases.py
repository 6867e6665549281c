"""Tables of a SQLite file to frames."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from qkvsearch._utils.limits import CELL
from qkvsearch._utils.sqlite import connect
from qkvsearch.errors import DataError
from qkvsearch.tables.catalog_columns import quoted
from qkvsearch.tables.files.file_format import BinaryFormat, add_pieces
from qkvsearch.tables.files.unpacking import TableFile
from qkvsearch.tables.frames import (
    Piece,
    batched,
    cells_size,
    check_names,
    distinct,
    pick_name,
    text_of_rows,
)
from qkvsearch.tables.report import ReadReport

# How files begin, and what those in WAL mode have from byte 18 on.
MARK, WAL = b"SQLite format 3\0", b"\2\2"
READS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
MAX_LETTER_BYTES = 4


def read_sqlite(file: TableFile) -> Iterator[Piece]:
    """Read the named table, or the only one. Raises `DataError`.

    A view, or a column that is computed, is a program by the author of the file, and is refused.
    """
    try:
        uri = f"{file.path.absolute().as_uri()}?mode=ro"
        if file.start()[18:20] == WAL and not Path(f"{file.path}-wal").exists():
            uri += "&immutable=1"  # or SQLite would leave two files beside it
        with closing(connect(uri, uri=True)) as database:
            kinds = database.execute(
                "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
            ).fetchall()
            tables = [name for name, kind in kinds if kind == "table"]
            names = tables if tables and not file.fragment else [name for name, _ in kinds]
            table = pick_name(file.fragment, names, "table", file.label)
            _refuse_programs(database, table, file.label)
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LETTER_BYTES * CELL.value)
            database.text_factory = lambda text: text.decode(errors="replace")
            database.set_authorizer(
                lambda action, *_: sqlite3.SQLITE_OK if action in READS else sqlite3.SQLITE_DENY
            )
            rows = database.execute(f"SELECT * FROM {quoted(table)}")
            columns = [column[0] for column in rows.description]
            check_names(distinct(columns), file.label)
            name = Path(file.label.partition("#")[0]).name
            report = ReadReport(f"{name}#{file.fragment}".rstrip("#"))
            sized = ((number, row, cells_size(row)) for number, row in enumerate(rows, 1))
            for numbers, group in batched(sized):
                report.read += len(group)
                yield text_of_rows(group, numbers, columns, report), report
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        is_long = isinstance(error, sqlite3.DataError)
        limit = f": more than {MAX_LETTER_BYTES * CELL.value:,} bytes" if is_long else ""
        raise DataError(f"{file.label}: {error}{limit}") from None


def _refuse_programs(database: sqlite3.Connection, table: str, label: str) -> None:
    """Raise `DataError` for a view, a virtual table, and a table with generated columns."""
    ((kind, sql),) = database.execute(
        "SELECT type, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?", [table]
    )
    # SQLite expands a view, and perhaps the views that it is made of, to list its columns.
    is_stored = kind == "table" and not re.search(r"(?i)\bvirtual\b", sql or "")
    if is_stored:
        hidden = "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden IN (2, 3)"
        ((n_generated,),) = database.execute(hidden, [table])
        is_stored = not n_generated
    if not is_stored:
        raise DataError(
            f"{label}: {table} is computed when it is read, and only stored tables are read; store "
            f"it with CREATE TABLE … AS SELECT * FROM {table}, or export it as CSV"
        )


SQLITE = BinaryFormat(
    name="SQLite file",
    recognized_by="its first bytes",
    notes="`shop.db#orders`; a single table needs no name",
    fits=lambda file, start: start.startswith(MARK),
    add=lambda file, limit, encoder: add_pieces(read_sqlite(file), file, limit, encoder),
)
