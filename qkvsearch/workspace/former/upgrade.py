"""What the first writer takes over from an older workspace, and what it removes then."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.workspace.former import is_former
from qkvsearch.workspace.former.database import (
    DATABASE,
    check,
    connect,
    damaged,
    in_use,
    read_current,
    require_file,
)
from qkvsearch.workspace.former.format4 import any_manifest, are_settings, open_former
from qkvsearch.workspace.former.records import fill, in_memory, read_records
from qkvsearch.workspace.records import RecordsDatabase
from qkvsearch.workspace.root import ROOT
from qkvsearch.workspace.segments import BUILDS_FOLDER
from qkvsearch.workspace.snapshot import Snapshot

# How the database of an older version is called from now on where nobody could read it.
UNREAD = f"{DATABASE}.unread"
LOST_RECORDS = f"what was recorded cannot be read, and stays in {UNREAD}"
LOST_FACTS = "settings that tune found, if it did, cannot be read"
# What SQLite keeps beside a database, and then the database, which tells that they may be there.
BESIDE = ("-wal", "-shm", "")
# A program of an older version that is still running finds nothing to write to.
CLOSED = "ALTER TABLE builds RENAME TO builds_of_an_older_format"
# In seconds, for writers of older versions, who know of no other lock.
WAIT = 60


@contextmanager
def upgrading(workspace: Path) -> Iterator[Snapshot]:
    """The current build of a workspace of format 4, whose records are copied already, while no
    older version can write there: who publishes it meanwhile makes the workspace one of today.

    Raises `WorkspaceError`, also for the formats before, and `DamagedError` where a file is not as
    it was written; then nothing has changed.
    """
    with _locked(workspace) as db:
        build = open_former(workspace)
        assert build is not None
        with closing(build):
            check(db, workspace / DATABASE)
            try:
                _copy_records(db, workspace)
                yield build
            except BaseException:
                if is_former(workspace):
                    _remove_copies(workspace)
                raise
        _close(db, workspace)


@contextmanager
def replacing(workspace: Path) -> Iterator[None]:
    """While a build is published over an older workspace that cannot be upgraded, whose records are
    copied already, if they can be read. Raises `WorkspaceError` where another program writes there.
    """
    with ExitStack() as stack:
        try:
            db = stack.enter_context(_locked(workspace))
            _copy_records(db, workspace)
        except DamagedError as error:
            if error.file != workspace / DATABASE:
                raise
            stack.close()
            yield
        else:
            yield
            _close(db, workspace)


def known_facts(workspace: Path) -> tuple[dict[str, Any], list[str]]:
    """What the current build of an older workspace, whatever its format, knew of itself; and what
    a build in its place cannot take over.
    """
    facts: dict[str, Any] = {}
    lost = []
    try:
        in_memory(workspace / DATABASE).close()
    except DamagedError as error:
        lost.append(f"{LOST_RECORDS} ({error.file}: {error.what})")
    try:
        with closing(connect(workspace / DATABASE)) as db:
            build = read_current(db, workspace)
        facts, _ = any_manifest(workspace / BUILDS_FOLDER / build.name)
        if not are_settings(facts.get("tuned")):
            lost.append(f"{LOST_FACTS} ({facts.pop('tuned')!r:.80})")
    except DamagedError as error:
        lost.append(f"{LOST_FACTS} ({error.file}: {error.what})")
    except WorkspaceError:
        pass  # nothing was ever built here
    return facts, lost


def older_builds(builds: Path, names: Iterable[str]) -> set[str]:
    """Those of the builds, by the names of their folders, that older versions wrote."""
    found = set()
    for name in names:
        with suppress(DamagedError):
            any_manifest(builds / name)
            found.add(name)
    return found


def clear(workspace: Path) -> None:
    """Remove the database, where a build of today is the current one and nobody reads that of an
    older version; with records that cannot be read, it stays under another name.
    """
    database = workspace / DATABASE
    if not database.exists():
        return
    try:
        in_memory(database).close()
    except DamagedError:
        for end in BESIDE:
            with suppress(FileNotFoundError):
                os.replace(f"{database}{end}", f"{workspace / UNREAD}{end}")
    else:
        for end in BESIDE:
            Path(f"{database}{end}").unlink(missing_ok=True)


@contextmanager
def _locked(workspace: Path) -> Iterator[sqlite3.Connection]:
    """In a transaction, so that no older version can write. Raises `WorkspaceError`."""
    path = workspace / DATABASE
    require_file(path)
    uri = f"{path.absolute().as_uri()}?mode=rw"
    try:
        db = sqlite3.connect(uri, uri=True, timeout=WAIT, isolation_level=None)
    except sqlite3.Error as error:
        raise WorkspaceError(f"{path}: {error}") from None
    with closing(db):
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise in_use(path) from None
            raise WorkspaceError(f"{path}: cannot upgrade: {error}") from None
        except sqlite3.DatabaseError as error:
            raise damaged(path, error) from None
        yield db


def _copy_records(db: sqlite3.Connection, workspace: Path) -> None:
    """All of them, in the place of what an upgrade that was interrupted may have copied. Raises
    `DamagedError`, `WorkspaceError`.
    """
    try:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'builds'").fetchone():
            return  # no build was ever finished, or the database is what an upgrade left
        records, last = read_records(db)
    except (sqlite3.DatabaseError, TypeError) as error:
        raise damaged(workspace / DATABASE, error) from None
    _remove_copies(workspace)
    if last:
        with RecordsDatabase.of(workspace).writing("upgrade") as copied:
            fill(copied, records, last)


def _remove_copies(workspace: Path) -> None:
    copied = RecordsDatabase.of(workspace)
    copied.close()
    for path in (copied.signature, copied.path, copied.journal):
        path.unlink(missing_ok=True)


def _close(db: sqlite3.Connection, workspace: Path) -> None:
    """Where a build of today is the current one, what is left of the database is of no use."""
    if (workspace / ROOT).exists():
        with suppress(sqlite3.Error):
            db.execute(CLOSED)
            db.execute("COMMIT")
