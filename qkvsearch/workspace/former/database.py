"""`workspace.db` of the formats before 5: read also where nothing can be written beside it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.workspace.segments import OWN_NAME

DATABASE = "workspace.db"
AGAIN = "build the workspace again"
# What SQLite says where it may not write its index of the log beside the database, or cannot.
NO_ROOM = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL,
           sqlite3.SQLITE_IOERR)  # fmt: skip
# Without locks, and with that index in memory.
ALONE = f"mode=ro&vfs={'win32' if os.name == 'nt' else 'unix'}-none"


class FormerBuild(NamedTuple):
    """The current build: the number that its tables end with, its folder's name, and its time."""

    number: int
    name: str
    created: str


def read_current(db: sqlite3.Connection, workspace: Path) -> FormerBuild:
    """Which build is the current one. Raises `WorkspaceError`."""
    try:
        sql = "SELECT id, folder, created FROM builds WHERE is_current"
        build = FormerBuild(*db.execute(sql).fetchone())
    except (sqlite3.DatabaseError, TypeError) as error:
        if isinstance(error, TypeError) or "no such table" in str(error):
            raise WorkspaceError(
                f"{workspace}: no build was finished here; build it again"
            ) from None
        raise damaged(workspace / DATABASE, error) from None
    if not OWN_NAME.fullmatch(build.name):
        raise DamagedError(workspace / DATABASE, f"{build.name!r} is no build", AGAIN)
    return build


def check(db: sqlite3.Connection, path: Path) -> None:
    """As far as a database without checksums can be. Raises `DamagedError`."""
    try:
        (said,) = db.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        raise damaged(path, error) from None
    if said != "ok":
        raise DamagedError(path, " ".join(said.split()), AGAIN)


def connect(database: Path) -> sqlite3.Connection:
    """Read only, also where nothing can be written beside the database. Raises `WorkspaceError`."""
    require_file(database)
    try:
        try:
            return _opened(database, "mode=ro")
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in NO_ROOM:
                raise
            return _copied(database)
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise in_use(database) from None
        raise damaged(database, error) from None


def require_file(database: Path) -> None:
    """Raise `DamagedError` for a link, which could lead anywhere."""
    if database.is_symlink():
        raise DamagedError(database, "it is a link, and was written as a file", AGAIN)


def _copied(database: Path) -> sqlite3.Connection:
    """A copy in memory, of what waits in SQLite's log too."""
    before = state(database)
    *_, log = before
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    with closing(_opened(database, ALONE if log else "mode=ro&immutable=1")) as db:
        db.backup(copy)
    if state(database) != before:  # nothing else says that somebody writes here
        copy.close()
        raise in_use(database)
    return copy


def _opened(database: Path, mode: str) -> sqlite3.Connection:
    uri = f"{database.absolute().as_uri()}?{mode}"
    db = sqlite3.connect(uri, uri=True, check_same_thread=False)
    try:
        if mode == ALONE:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        db.close()
        raise
    return db


def state(database: Path) -> list[tuple[int, int] | None]:
    """Size and time of the database, and of SQLite's log; None for one without anything in it."""
    found = []
    for path in (database, database.with_name(f"{DATABASE}-wal")):
        stat = path.stat() if path.exists() else None
        found.append((stat.st_size, stat.st_mtime_ns) if stat and stat.st_size else None)
    return found


def damaged(database: Path, error: Exception) -> DamagedError:
    """The error that names the file."""
    return DamagedError(database, str(error), AGAIN)


def in_use(database: Path) -> WorkspaceError:
    """The error for whoever does not wait longer."""
    return WorkspaceError(f"{database}: in use by another program; try again")
