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
    picked,
    text_of_rows,
)
from qkvsearch.data.files.unpacking import Place
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, need

URL = re.compile(r"[A-Za-z][A-Za-z0-9+._-]*://")
WEB = ("http", "https", "ftp", "s3", "gs", "file")
QUERY = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)
# What a query may do: read.
READS = {
    getattr(sqlite3, name)
    for name in ("SQLITE_SELECT", "SQLITE_READ", "SQLITE_FUNCTION", "SQLITE_RECURSIVE")
}
SQLITE = b"SQLite format 3\0"
# Operations of SQLite's machine between two looks at the clock.
OPERATIONS = 1_000
# Bytes of a pattern of LIKE, of which each may be compared with each of a text.
MAX_PATTERN = 250
# How operations of functions begin.
COMPUTING = ("Function", "PureFunc", "Agg")
MAX_LETTER_BYTES = 4


def is_url(source: str) -> bool:
    """True for `postgresql://…`, False for a path."""
    return URL.match(source) is not None


def read_sqlite(place: Place) -> Iterator[Piece]:
    """Read the table that `place.part` names, or its SELECT, or the only table. Raises `DataError`.

    A view is a program of whoever made the file, so that it has limits of time and memory.
    """
    watch, longest = _Watch(), MAX_LETTER_BYTES * CELL.value
    try:
        uri = f"{place.path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            _only_reading(database)
            tables = dict(
                database.execute(
                    "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') "
                    "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
                )
            )
            query, is_table = place.part, False
            if not QUERY.match(query):
                table = picked(query, list(tables), "table", place.label)
                is_table = tables[table] == "table"
                query = 'SELECT * FROM "{}"'.format(table.replace('"', '""'))
            if not is_table:
                _limit(database, watch)
            steps = [step for _, step, *_ in database.execute(f"EXPLAIN {query}")]
            # One function of long texts may take hours, and nothing can stop it.
            if any(step.startswith(COMPUTING) for step in steps):
                longest = QUERY_TEXT.value
                _limit(database, watch)  # a table may compute as well
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
            database.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN)
            cursor = database.execute(query)
            names = [column[0] for column in cursor.description]
            name = Path(place.label.partition("#")[0]).name
            report = ReadReport(f"{name}#{place.part}".rstrip("#"))
            yield from _pieces(cursor, names, place.label, report)
    except MemoryError:
        most = f"{QUERY_MEMORY.value:,} bytes of memory"
        raise DataError(f"{place.label}: the query takes more than {most}") from None
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = f"{error}"
        if watch.is_late():
            reason = (
                f"the query took more than {QUERY_SECONDS.value:,} seconds, and was stopped "
                f"({QUERY_SECONDS.raised_by}=N in the environment allows more)"
            )
        elif isinstance(error, sqlite3.DataError):
            reason = f"{error}: more than {longest:,} bytes"
        raise DataError(f"{place.label}: {reason}") from None


class _Watch:
    """The time that a query has."""

    def __init__(self) -> None:
        self._end = time.monotonic() + QUERY_SECONDS.value

    def is_late(self) -> bool:
        return time.monotonic() > self._end


def _only_reading(database: sqlite3.Connection) -> None:
    """Refuse all statements but those that read."""
    database.text_factory = lambda text: text.decode(errors="replace")
    database.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_OK if action in READS else sqlite3.SQLITE_DENY
    )


def _limit(database: sqlite3.Connection, watch: _Watch) -> None:
    """Limit the time and the memory of a view or a query."""
    database.set_authorizer(None)
    # The limit is one of all connections of this process. What is sorted stays in memory, or it
    # would fill the disk.
    database.execute(f"PRAGMA hard_heap_limit = {QUERY_MEMORY.value}")
    database.execute("PRAGMA temp_store = MEMORY")
    _only_reading(database)
    database.set_progress_handler(watch.is_late, OPERATIONS)


def read_url(source: str) -> Iterator[Piece]:
    """`dialect://user:password@host/database#table`, or `#SELECT …`. Raises `DataError`.

    Nothing but that SELECT runs, in a transaction that is rolled back. No message has the password.
    """
    address, _, part = source.partition("#")
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
        yield from read_sqlite(Place(url.database, path.name, path, path.stat().st_size, part))
        return
    try:
        engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool)
        with engine.connect() as plain:
            options = {"postgresql_readonly": True, "no_parameters": True}
            cursor = _select(sqlalchemy, plain.execution_options(**options), part, label)
            report = ReadReport(f"{label}#{part}".rstrip("#"))
            rows = (tuple(row) for row in cursor)
            yield from _pieces(rows, list(cursor.keys()), label, report)
    except DataError:
        raise
    except ImportError as error:
        raise DataError(f"{label}: its driver is missing: {error}; install it with pip") from None
    except Exception as error:  # each driver has errors of its own
        raise DataError(f"{label}: {_without_secrets(error, url)}") from None


def _select(sqlalchemy: Any, connection: Any, part: str, label: str) -> Any:
    """The cursor of the query, or of all rows of the table."""
    if QUERY.match(part):
        query = part.strip().rstrip(";")
        if ";" in query:
            raise DataError(f"{label}: one SELECT, without `;` in it")
        return connection.exec_driver_sql(query)
    inspector = sqlalchemy.inspect(connection)
    schema, _, name = part.rpartition(".")
    if not (part and inspector.has_table(name, schema or None)):
        tables = [*inspector.get_table_names(), *inspector.get_view_names()]
        schema, name = "", picked(part, tables, "table", label)
    table = sqlalchemy.table(name, schema=schema or None)
    return connection.execute(sqlalchemy.select(sqlalchemy.text("*")).select_from(table))


def _pieces(
    rows: Iterable[Sequence[Any]], names: Sequence[str], label: str, report: ReadReport
) -> Iterator[Piece]:
    """Read rows some at a time: those of a view may never end."""
    check_names(distinct(names), label)
    sized = ((number, row, cells_size(row)) for number, row in enumerate(rows, 1))
    for numbers, group in batched(sized):
        report.read += len(group)
        yield text_of_rows(group, numbers, names, report), report


def _without_secrets(error: Exception, url: Any) -> str:
    """The first line of what the driver says."""
    said = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    secrets = [url.password, *(value for value in url.query.values() if isinstance(value, str))]
    for secret in filter(None, map(str, secrets)):
        said = said.replace(secret, "***")
    return said
