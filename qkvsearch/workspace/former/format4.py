"""Format 4, read only: a database with the catalogs of all builds, and a folder of arrays each."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.workspace.checksums import check_size
from qkvsearch.workspace.segment_catalog import SegmentCatalog
from qkvsearch.workspace.segments import BUILDS_FOLDER, FORMAT_VERSION, MANIFEST, OWN_NAME, Segment

FORMAT = 4
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


class FormerSegment(Segment):
    """A whole build of format 4 as the one segment that it would be today."""

    def __init__(self, workspace: Path, build: FormerBuild, *, trust: bool = False) -> None:
        """Raises `DamagedError`, and `WorkspaceError` for the formats before."""
        self.folder, self.trust = workspace / BUILDS_FOLDER / build.name, trust
        self.checksum = ""
        self.database, self.number = workspace / DATABASE, build.number
        facts = read_manifest(self.folder)
        try:
            files = facts.pop("files")
            self.n_rows = int(facts["n_items"])
            self.files: Mapping[str, Mapping[str, Any]] = {
                f"{name}.npy": {"bytes": entry["bytes"], "sha256": str(entry["sha256"])}
                for name, entry in files.items()
            }
        except (AttributeError, LookupError, TypeError, ValueError):
            raise _no_manifest(self.folder) from None
        self.manifest = {"format": facts.pop("format"), "facts": facts, "below": []}
        for name, entry in self.files.items():
            if "/" in name or "\\" in name or name.startswith("."):
                raise _no_manifest(self.folder)
            check_size(self.folder / name, entry)

    @cached_property
    def catalog(self) -> SegmentCatalog:
        """Its tables among those of all builds."""
        return FormerCatalog(self.database, f"_{self.number}")


class FormerCatalog(SegmentCatalog):
    """The tables of one build in the database of all."""

    def connect(self) -> sqlite3.Connection:
        """Another connection. Raises `WorkspaceError`."""
        return connect(self.path)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Of format 4. Raises `DamagedError`, and `WorkspaceError` for any other format."""
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = int(manifest["format"])
    except OSError as error:
        raise DamagedError(path, error.strerror or str(error), AGAIN) from None
    except (ValueError, LookupError, TypeError, RecursionError):
        raise _no_manifest(folder) from None
    if version > FORMAT:
        raise WorkspaceError(
            f"{folder}: written in format {version}, this version reads up to "
            f"{FORMAT_VERSION}; upgrade with pip install -U qkvsearch"
        )
    if version < FORMAT:
        raise WorkspaceError(
            f"{folder}: written in format {version}, this version reads {FORMAT} and "
            f"{FORMAT_VERSION}; {AGAIN}"
        )
    return manifest


def read_current(db: sqlite3.Connection, workspace: Path) -> FormerBuild:
    """Which build is the current one. Raises `WorkspaceError`."""
    try:
        sql = "SELECT id, folder, created FROM builds WHERE is_current"
        build = FormerBuild(*db.execute(sql).fetchone())
    except (sqlite3.DatabaseError, TypeError) as error:
        nothing = isinstance(error, TypeError) or "no such table" in str(error)
        said = "no build was finished here" if nothing else str(error)
        raise WorkspaceError(f"{workspace / DATABASE}: {said}; {AGAIN}") from None
    if not OWN_NAME.fullmatch(build.name):
        raise DamagedError(workspace / DATABASE, f"{build.name!r} is no build", AGAIN)
    return build


def connect(database: Path) -> sqlite3.Connection:
    """Read only, also where nothing can be written beside the database. Raises `WorkspaceError`."""
    try:
        try:
            return _opened(database, "mode=ro")
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in NO_ROOM:
                raise
            return _copied(database)
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise _in_use(database) from None
        raise DamagedError(database, str(error), AGAIN) from None


def _copied(database: Path) -> sqlite3.Connection:
    """A copy in memory, of what waits in SQLite's log too."""
    before = _state(database)
    *_, log = before
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    with closing(_opened(database, ALONE if log and log[0] else "mode=ro&immutable=1")) as db:
        db.backup(copy)
    if _state(database) != before:  # nothing else says that somebody writes here
        copy.close()
        raise _in_use(database)
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


def _state(database: Path) -> list[tuple[int, int] | None]:
    """Size and time of the database, and of SQLite's log; None for one that is not there."""
    found = []
    for path in (database, database.with_name(f"{DATABASE}-wal")):
        stat = path.stat() if path.exists() else None
        found.append(None if stat is None else (stat.st_size, stat.st_mtime_ns))
    return found


def _in_use(database: Path) -> WorkspaceError:
    return WorkspaceError(f"{database}: in use by another program; try again")


def _no_manifest(folder: Path) -> DamagedError:
    return DamagedError(folder / MANIFEST, "it is no manifest", AGAIN)
