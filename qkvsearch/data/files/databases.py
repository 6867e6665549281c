"""Tables and queries of a database to a frame: a SQLite file, or any URL that SQLAlchemy opens."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd

from qkvsearch.data.files.frames import picked, table_of
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, need
from qkvsearch.limits import ROWS

URL = re.compile(r"[A-Za-z][A-Za-z0-9+._-]*://")
WEB = ("http", "https", "ftp", "s3", "gs", "file")
QUERY = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)
# What a query may do: read.
READS = {
    getattr(sqlite3, name)
    for name in ("SQLITE_SELECT", "SQLITE_READ", "SQLITE_FUNCTION", "SQLITE_RECURSIVE")
}
SQLITE = b"SQLite format 3\0"
# Rows that are taken at a time.
FETCHED = 100_000


def is_url(source: str) -> bool:
    """True for `postgresql://…`, False for a path."""
    return URL.match(source) is not None


def read_sqlite(label: str, path: Path, part: str) -> tuple[pd.DataFrame, ReadReport]:
    """part: a table, a SELECT, or nothing where there is one table. Raises `DataError`."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.text_factory = lambda text: text.decode(errors="replace")
            database.set_authorizer(
                lambda action, *_: sqlite3.SQLITE_OK if action in READS else sqlite3.SQLITE_DENY
            )
            tables = [
                name
                for (name,) in database.execute(
                    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                    "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
                )
            ]
            query = part
            if not QUERY.match(part):
                table = picked(part, tables, "table", label).replace('"', '""')
                query = f'SELECT * FROM "{table}"'
            cursor = database.execute(query)
            names = [column[0] for column in cursor.description]
            name = Path(label.partition("#")[0]).name
            return table_of(_fetched(cursor, label), names, label, f"{name}#{part}".rstrip("#"))
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{label}: {error}") from None


def read_url(source: str) -> tuple[pd.DataFrame, ReadReport]:
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
        return read_sqlite(url.database, Path(url.database), part)
    try:
        engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool)
        with engine.connect() as plain:
            options = {"postgresql_readonly": True, "no_parameters": True}
            cursor = _select(sqlalchemy, plain.execution_options(**options), part, label)
            rows, names = _fetched(cursor, label), list(cursor.keys())
    except DataError:
        raise
    except ImportError as error:
        raise DataError(f"{label}: its driver is missing: {error}; install it with pip") from None
    except Exception as error:  # each driver has errors of its own
        raise DataError(f"{label}: {_without_secrets(error, url)}") from None
    return table_of([tuple(row) for row in rows], names, label, f"{label}#{part}".rstrip("#"))


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


def _fetched(cursor: Any, label: str) -> list[Any]:
    """All rows, while there are not too many: those of a view may never end."""
    rows: list[Any] = []
    while piece := cursor.fetchmany(FETCHED):
        rows += piece
        ROWS.check(len(rows), label)
    return rows


def _without_secrets(error: Exception, url: Any) -> str:
    """The first line of what the driver says."""
    said = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    secrets = [url.password, *(value for value in url.query.values() if isinstance(value, str))]
    for secret in filter(None, map(str, secrets)):
        said = said.replace(secret, "***")
    return said
