"""One build as readers see it: opened once, and unchanged whatever is published meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace.arrays import StoredFile, checksum, read_array, read_manifest
from qkvsearch.workspace.records import RecordsDatabase
from qkvsearch.workspace.schema import CURRENT_BUILD, DATABASE, HAS_TABLE
from qkvsearch.workspace.tables import Tables


@dataclass(frozen=True)
class Snapshot:
    """One build, as it was when it was opened."""

    folder: Path
    created: str
    facts: Mapping[str, Any]
    tables: Tables

    @classmethod
    def current(cls, workspace: Path) -> Snapshot:
        """The current build. Raises `WorkspaceError` where there is none or it is damaged."""
        tables, name, created = read_current(workspace)
        folder = workspace / "builds" / name
        try:
            facts = read_manifest(folder)
            learned = facts.get("learned_records", 0)
            tables = replace(tables, column_facts=facts.get("columns", ()), learned=learned)
            return cls(folder, created, facts, tables)
        except WorkspaceError:
            tables.close()
            raise

    @property
    def workspace(self) -> Path:
        """The folder of the workspace that it is a build of."""
        return self.folder.parent.parent

    def array(self, name: str) -> np.ndarray:
        """A stored array, memory-mapped."""
        return read_array(self.folder, name)

    def file(self, name: str) -> StoredFile:
        """An array's file, with its size and checksum."""
        return StoredFile(self.folder / f"{name}.npy", self.facts["files"][name])

    def __contains__(self, name: str) -> bool:
        return name in self.facts["files"]

    def close(self) -> None:
        """Close the database."""
        self.tables.close()

    def damaged_files(self) -> list[str]:
        """Names of the arrays whose checksum is not the one in the manifest."""
        files = self.facts["files"].items()
        return [
            name for name, file in files if checksum(self.folder / f"{name}.npy") != file["sha256"]
        ]


def read_current(workspace: Path) -> tuple[Tables, str, str]:
    """The current build's tables, its folder's name and when it was built."""
    database = workspace / DATABASE
    # A read-only folder has no room for the WAL index, but nobody can be writing there either.
    error: sqlite3.Error | None = None
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        try:
            return _read_with(workspace, f"{database.absolute().as_uri()}?{mode}")
        except sqlite3.Error as caught:
            error = caught
            if not _is_read_only(database, caught):
                break
    if error is not None and "locked" in str(error):
        raise WorkspaceError(f"{database}: in use by another program; try again")
    raise WorkspaceError(f"{database}: {error}; build the workspace again")


def _is_read_only(database: Path, error: sqlite3.Error) -> bool:
    """True where SQLite only lacks a place for the WAL index, and no change waits in a WAL."""
    kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
    log = database.with_name(f"{DATABASE}-wal")
    waiting = log.exists() and log.stat().st_size > 0
    return kind in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) and not waiting


def _read_with(workspace: Path, uri: str) -> tuple[Tables, str, str]:
    db = sqlite3.connect(uri, uri=True, check_same_thread=False)
    try:
        has_builds = db.execute(HAS_TABLE, ("builds",)).fetchone()
        row = db.execute(CURRENT_BUILD).fetchone() if has_builds else None
        if row is None:
            raise WorkspaceError(f"{workspace}: no build was finished here; build it again")
    except BaseException:
        db.close()
        raise
    build, name, created = row
    return Tables(db, build, uri, RecordsDatabase.of(workspace)), name, created
