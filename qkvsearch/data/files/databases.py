"""Tables and queries of a database to frames: a SQLite file, or any URL that SQLAlchemy opens."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from qkvsearch._utils.limits import CELL, QUERY_MEMORY, QUERY_SECONDS, QUERY_TEXT
from qkvsearch.data.files.frames import (
    Piece,
    batched,
    cells_size,
    check_names,
    distinct,
    pick_name,
    text_of_rows,
)
from qkvsearch.data.files.unpacking import TableFile
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, need

URL = re.compile(r"[A-Za-z][A-Za-z0-9+._-]*://")
WEB = ("http", "https", "ftp", "s3", "gs", "file")
QUERY = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)
# The actions that a query may take.
READS = {
    getattr(sqlite3, name)
    for name in ("SQLITE_SELECT", "SQLITE_READ", "SQLITE_FUNCTION", "SQLITE_RECURSIVE")
}
# How files begin, and what those in WAL mode have from byte 18 on.
SQLITE, WAL = b"SQLite format 3\0", b"\2\2"
# Operations of SQLite's machine between two checks of the time.
OPERATIONS = 1_000
# Bytes of a pattern of LIKE: each may be compared with each byte of a text.
MAX_PATTERN = 250
# The operations of SQLite's machine that call functions begin with one of these.
COMPUTING = ("Function", "PureFunc", "Agg")
MAX_LETTER_BYTES = 4


def is_url(source: str) -> bool:
    """Return True for `postgresql://…`, False for a path."""
    return URL.match(source) is not None


def read_sqlite(file: TableFile) -> Iterator[Piece]:
    """Read the named table, or a SELECT, or the only table. Raises `DataError`.

    A view, or a column that is computed, is a program of whoever made the file: it has limits of
    time and memory.
    """
    end, longest = time.monotonic() + QUERY_SECONDS.value, MAX_LETTER_BYTES * CELL.value
    try:
        uri = f"{file.path.absolute().as_uri()}?mode=ro"
        if file.start()[18:20] == WAL and not Path(f"{file.path}-wal").exists():
            uri += "&immutable=1"  # or SQLite would leave two files beside it
        with closing(sqlite3.connect(uri, uri=True)) as database:
            query, is_stored = file.fragment, False
            if not QUERY.match(query):
                names = database.execute(
                    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                    "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
                )
                table = pick_name(query, [name for (name,) in names], "table", file.label)
                is_stored = _is_stored(database, table)
                query = 'SELECT * FROM "{}"'.format(table.replace('"', '""'))
            if is_stored:
                _only_reading(database)
            else:
                _limit(database, end)
                steps = [step for _, step, *_ in database.execute(f"EXPLAIN {query}")]
                # One function of long texts may take hours, and nothing can stop it.
                if any(step.startswith(COMPUTING) for step in steps):
                    longest = QUERY_TEXT.value
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
            database.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN)
            cursor = database.execute(query)
            columns = [column[0] for column in cursor.description]
            name = Path(file.label.partition("#")[0]).name
            report = ReadReport(f"{name}#{file.fragment}".rstrip("#"))
            yield from _pieces(cursor, columns, file.label, report)
    except MemoryError:
        raise DataError(
            f"{file.label}: the query takes more than {QUERY_MEMORY.value:,} bytes of memory"
        ) from None
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = f"{error}"
        if time.monotonic() > end:
            reason = (
                f"the query took more than {QUERY_SECONDS.value:,} seconds, and was stopped "
                f"({QUERY_SECONDS.raised_by}=N in the environment allows more)"
            )
        elif isinstance(error, sqlite3.DataError):
            reason = f"{error}: more than {longest:,} bytes"
        raise DataError(f"{file.label}: {reason}") from None


def _is_stored(database: sqlite3.Connection, table: str) -> bool:
    """Return whether reading computes nothing: it is a table without generated columns."""
    ((kind, sql),) = database.execute(
        "SELECT type, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?", [table]
    )
    # SQLite expands a view, and perhaps the views that it is made of, to list its columns.
    if kind == "view" or re.search(r"(?i)\bvirtual\b", sql or ""):
        return False
    (n_generated,) = database.execute(
        "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden IN (2, 3)", [table]
    ).fetchone()
    return not n_generated


def _only_reading(database: sqlite3.Connection) -> None:
    """Refuse all statements but those that read."""
    database.text_factory = lambda text: text.decode(errors="replace")
    database.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_OK if action in READS else sqlite3.SQLITE_DENY
    )


def _limit(database: sqlite3.Connection, end: float) -> None:
    """Limit the time, up to `end`, and the memory of a view or a query."""
    database.set_authorizer(None)
    # The limit is one of all connections of this process. What is sorted stays in memory, or it
    # would fill the disk.
    database.execute(f"PRAGMA hard_heap_limit = {QUERY_MEMORY.value}")
    database.execute("PRAGMA temp_store = MEMORY")
    _only_reading(database)
    database.set_progress_handler(lambda: time.monotonic() > end, OPERATIONS)


def read_url(source: str) -> Iterator[Piece]:
    """Read `dialect://user:password@host/database#table`, or `#SELECT …`. Raises `DataError`.

    Only that SELECT runs, in a transaction that is rolled back. No message has the password.
    """
    address, _, fragment = source.partition("#")
    scheme = address.partition(":")[0]
    if scheme.lower() in WEB:
        raise DataError(f"{scheme}://…: not a database; download the file, and give its path")
    sqlalchemy = need("sqlalchemy", "sql", f"{scheme}://…: reading a database", error=DataError)
    try:
        url = sqlalchemy.make_url(re.sub(r"^postgres\b", "postgresql", address))
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise DataError(
            f"{scheme}://…: not the address of a database; write "
            "dialect://user:password@host/database#table, the password URL-encoded"
        ) from None
    label = f"{url.drivername}://{url.host or ''}/{url.database or ''}"
    if url.get_backend_name() == "sqlite" and url.database:
        if not Path(url.database).is_file():
            raise DataError(f"{url.database}: no such file")
        path = Path(url.database)
        yield from read_sqlite(
            TableFile(url.database, path.name, path, path.stat().st_size, fragment)
        )
        return
    try:
        engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool)
        with engine.connect() as plain:
            options = {"postgresql_readonly": True, "no_parameters": True}
            cursor = _select(sqlalchemy, plain.execution_options(**options), fragment, label)
            report = ReadReport(f"{label}#{fragment}".rstrip("#"))
            rows = (tuple(row) for row in cursor)
            yield from _pieces(rows, list(cursor.keys()), label, report)
    except DataError:
        raise
    except ImportError as error:
        raise DataError(f"{label}: its driver is missing: {error}; install it with pip") from None
    except Exception as error:  # each driver has errors of its own
        raise DataError(f"{label}: {_without_secrets(error, url)}") from None


def _select(sqlalchemy: Any, connection: Any, fragment: str, label: str) -> Any:
    """Return the cursor of the query, or of all rows of the table."""
    if QUERY.match(fragment):
        query = fragment.strip().rstrip(";")
        if ";" in query:
            raise DataError(f"{label}: one SELECT, without `;` in it")
        return connection.exec_driver_sql(query)
    inspector = sqlalchemy.inspect(connection)
    schema, _, name = fragment.rpartition(".")
    if not (fragment and inspector.has_table(name, schema or None)):
        tables = [*inspector.get_table_names(), *inspector.get_view_names()]
        schema, name = "", pick_name(fragment, tables, "table", label)
    table = sqlalchemy.table(name, schema=schema or None)
    return connection.execute(sqlalchemy.select(sqlalchemy.text("*")).select_from(table))


def _pieces(
    rows: Iterable[Sequence[Any]], names: Sequence[str], label: str, report: ReadReport
) -> Iterator[Piece]:
    """Read rows in batches: those of a view may never end."""
    check_names(distinct(names), label)
    sized = ((number, row, cells_size(row)) for number, row in enumerate(rows, 1))
    for numbers, group in batched(sized):
        report.read += len(group)
        yield text_of_rows(group, numbers, names, report), report


def _without_secrets(error: Exception, url: Any) -> str:
    """Return the first line of the driver's message, without passwords."""
    message = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    secrets = [url.password, *(value for value in url.query.values() if isinstance(value, str))]
    for secret in filter(None, map(str, secrets)):
        message = message.replace(secret, "***")
    return message
