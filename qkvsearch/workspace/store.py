"""The workspace folder: builds are published in one transaction and read as snapshots."""

from __future__ import annotations

import errno
import re
import shutil
import sqlite3
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace import records
from qkvsearch.workspace.arrays import (
    StoredFile,
    checksum,
    read_array,
    read_manifest,
    write_build,
)
from qkvsearch.workspace.tables import Tables, drop_tables, write_tables

if TYPE_CHECKING:
    from qkvsearch.data.catalog import Catalog
    from qkvsearch.data.ids import Ids

Answer = TypeVar("Answer")

DATABASE = "workspace.db"
# A reader may still be at work on the build before the current one, and on any that was replaced
# less than so many seconds ago: items can join one after another.
KEPT_BUILDS, KEPT_SECONDS = 2, 300
# Whoever publishes in between makes a revision start again; so often it is not by chance.
ATTEMPTS = 5
ORPHAN_SECONDS = 24 * 3600
# NumPy raises an OSError without a number where it could not write all of an array.
NO_ROOM = (None, errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
# A workspace may share its folder with other things, among them other folders in `builds/`.
OWN_NAME = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
SCHEMA = """
CREATE TABLE IF NOT EXISTS builds (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    folder TEXT NOT NULL UNIQUE,
    created TEXT NOT NULL,
    is_current INTEGER NOT NULL
)
"""
CURRENT = "SELECT id, folder, created FROM builds WHERE is_current"
HAS_BUILDS = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'builds'"


@dataclass
class BuildContents:
    """What a build publishes: catalogue, users, arrays by name, facts for the manifest.

    One that is derived from another build names it as `base`, and in `shared` the arrays that it
    has in common with it.
    """

    catalog: Catalog
    users: Ids | None = None
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    base: Snapshot | None = None
    shared: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Snapshot:
    """One build, as it was when it was opened, whatever is published meanwhile."""

    folder: Path
    created: str
    facts: Mapping[str, Any]
    tables: Tables

    def array(self, name: str) -> np.ndarray:
        """A stored array, memory-mapped."""
        return read_array(self.folder, name)

    def file(self, name: str) -> StoredFile:
        """Where an array lies, and its size and checksum."""
        return StoredFile(self.folder / f"{name}.npy", self.facts["files"][name])

    def __contains__(self, name: str) -> bool:
        return name in self.facts["files"]

    def close(self) -> None:
        """Let go of the database."""
        self.tables.close()

    def damaged_files(self) -> list[str]:
        """Names of the arrays whose checksum is not the one in the manifest."""
        files = self.facts["files"].items()
        return [
            name for name, file in files if checksum(self.folder / f"{name}.npy") != file["sha256"]
        ]


class Workspace:
    """A folder with `workspace.db` and `builds/<id>/`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        return (self.path / DATABASE).is_file()

    def publish(self, contents: BuildContents) -> None:
        """Write a build to a folder of its own, then make it current in one transaction.

        A crash at any point leaves the former build current. Raises `WorkspaceError` where the
        folder cannot be written, or where the build's base is no longer the current one.
        """
        name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:6]}"
        folder = self.path / "builds" / name
        base = contents.base
        shared = {name: base.file(name) for name in sorted(contents.shared)} if base else {}
        try:
            write_build(folder, contents.arrays, contents.facts, shared)
            self._make_current(name, contents)
        except (OSError, sqlite3.Error) as error:
            self._discard(name)
            room = isinstance(error, OSError) and error.errno in NO_ROOM
            advice = "; is the disk full? The former build stays" if room else ""
            raise WorkspaceError(f"{self.path}: cannot write the build: {error}{advice}") from error
        except BaseException:
            self._discard(name)
            raise
        # The build is current whatever happens now; what is left over goes at the next publish.
        with suppress(OSError, sqlite3.Error):
            self._prune()

    def revise(self, derive: Callable[[Snapshot], Answer]) -> Answer:
        """What `derive` answers, which makes a build of the current one and publishes it. Called
        again where another was published in between, so that of two revisions at once neither is
        lost. Raises what `derive` does, `WorkspaceError` where that never ends.
        """
        for _ in range(ATTEMPTS):
            build = self.open()
            try:
                return derive(build)
            except WorkspaceError as caught:
                if self.is_current(build):
                    raise
                error = caught
            finally:
                build.close()
        raise error

    def record(self, user: str, item: str, rating: float | None) -> None:
        """One more interaction, by ids; what is open sees it at once. Raises `WorkspaceError`."""
        records.append(self.path / DATABASE, user, item, rating)

    def is_current(self, snapshot: Snapshot) -> bool:
        """False where another build was published since. Raises `WorkspaceError`."""
        tables, name, _ = self._read_current()
        tables.close()
        return name == snapshot.folder.name

    def open(self) -> Snapshot:
        """The current build. Raises `WorkspaceError` where there is none or it is damaged."""
        if not self.exists:
            raise WorkspaceError(
                f"{self.path}: no workspace here; make one with qkvsearch -w {self.path} build …"
            )
        tables, name, created = self._read_current()
        folder = self.path / "builds" / name
        try:
            return Snapshot(folder, created, read_manifest(folder), tables)
        except WorkspaceError:
            tables.close()
            raise

    def _read_current(self) -> tuple[Tables, str, str]:
        """The current build's tables, its folder's name and when it was built."""
        # A read-only folder has no room for the WAL index, but nobody can be writing there either.
        error: sqlite3.Error | None = None
        for mode in ("mode=ro", "mode=ro&immutable=1"):
            uri = f"{(self.path / DATABASE).absolute().as_uri()}?{mode}"
            try:
                return self._read_with(uri)
            except sqlite3.Error as caught:
                error = caught
                if not self._is_read_only(caught):
                    break
        if error is not None and "locked" in str(error):
            raise WorkspaceError(f"{self.path / DATABASE}: in use by another program; try again")
        raise WorkspaceError(f"{self.path / DATABASE}: {error}; build the workspace again")

    def _is_read_only(self, error: sqlite3.Error) -> bool:
        """True where SQLite only lacks a place for the WAL index, and no change waits in a WAL."""
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
        waiting = (self.path / f"{DATABASE}-wal").exists() and (
            (self.path / f"{DATABASE}-wal").stat().st_size > 0
        )
        return kind in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) and not waiting

    def _read_with(self, uri: str) -> tuple[Tables, str, str]:
        db = sqlite3.connect(uri, uri=True, check_same_thread=False)
        try:
            row = db.execute(CURRENT).fetchone() if db.execute(HAS_BUILDS).fetchone() else None
            if row is None:
                raise WorkspaceError(f"{self.path}: no build was finished here; build it again")
        except BaseException:
            db.close()
            raise
        build, name, created = row
        return Tables(db, build, uri), name, created

    def _make_current(self, name: str, contents: BuildContents) -> None:
        db = sqlite3.connect(self.path / DATABASE, timeout=60, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("BEGIN IMMEDIATE")
            db.execute(SCHEMA)
            db.execute(records.SCHEMA)
            self._require_base(db, contents.base)
            db.execute("UPDATE builds SET is_current = 0")
            created = datetime.now(UTC).isoformat(timespec="seconds")
            cursor = db.execute(
                "INSERT INTO builds (folder, created, is_current) VALUES (?, ?, 1)", (name, created)
            )
            assert cursor.lastrowid is not None
            write_tables(db, cursor.lastrowid, contents.catalog, contents.users)
            db.execute("COMMIT")
        finally:
            db.close()

    def _require_base(self, db: sqlite3.Connection, base: Snapshot | None) -> None:
        """In the transaction that publishes: what another one did meanwhile must not be lost."""
        if base is None:
            return
        current = db.execute(CURRENT).fetchone()
        if current is None or current[1] != base.folder.name:
            raise WorkspaceError(
                f"{self.path}: another build was published meanwhile, and is the current one; "
                "try again"
            )

    def _discard(self, name: str) -> None:
        """Remove a build's folder, unless it became current just before the interruption."""
        folder = self.path / "builds" / name
        with suppress(WorkspaceError):
            tables, current, _ = self._read_current()
            tables.close()
            if current == name:
                return
        shutil.rmtree(folder, ignore_errors=True)

    def _prune(self) -> None:
        """Remove builds that nobody can still be reading, and what crashed builds left behind."""
        db = sqlite3.connect(self.path / DATABASE, timeout=60, isolation_level=None)
        try:
            rows = "SELECT id, folder, created FROM builds ORDER BY id DESC"
            builds = db.execute(rows).fetchall()
            just_now = datetime.now(UTC) - timedelta(seconds=KEPT_SECONDS)
            for (_, _, replaced), (build, name, _) in pairwise(builds[KEPT_BUILDS - 1 :]):
                if datetime.fromisoformat(replaced) > just_now:
                    continue
                db.execute("BEGIN IMMEDIATE")
                drop_tables(db, build)
                db.execute("DELETE FROM builds WHERE id = ?", (build,))
                db.execute("COMMIT")
                shutil.rmtree(self.path / "builds" / name, ignore_errors=True)
        finally:
            db.close()
        listed = {name for _, name, _ in builds}
        for folder in (self.path / "builds").iterdir():
            age = time.time() - folder.stat().st_mtime
            ours = OWN_NAME.fullmatch(folder.name) and folder.name not in listed
            if ours and age > ORPHAN_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
