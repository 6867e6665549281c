"""Where a build becomes current: its files are written, then one transaction switches to it."""

from __future__ import annotations

import errno
import re
import shutil
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace import records
from qkvsearch.workspace.arrays import write_build
from qkvsearch.workspace.records import Record, Recorded, RecordsDatabase
from qkvsearch.workspace.schema import (
    BUILDS,
    CURRENT_BUILD,
    DATABASE,
    drop_tables,
    write_tables,
)
from qkvsearch.workspace.snapshot import Snapshot, read_current

if TYPE_CHECKING:
    from qkvsearch.data.catalog import Catalog
    from qkvsearch.data.ids import Ids

Answer = TypeVar("Answer")

# An update starts again where another build was published meanwhile, at most this many times.
ATTEMPTS = 5
# Readers may still use the build before the current one, and any that was replaced less than this
# many seconds ago: several incremental updates may follow one another quickly.
KEPT_BUILDS, KEPT_SECONDS = 2, 300
ORPHAN_SECONDS = 24 * 3600
# NumPy raises an OSError without a number where it could not write all of an array.
NO_SPACE = (None, errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
# A workspace may share its folder with other things, such as other folders in `builds/`.
OWN_NAME = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")


@dataclass
class BuildContents:
    """What a build publishes: catalog, users, arrays by name, facts for the manifest.

    One that is derived from another build names it as `base`, and in `shared` the arrays that both
    have in common.
    """

    catalog: Catalog
    users: Ids | None = None
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    base: Snapshot | None = None
    shared: set[str] = field(default_factory=set)


class Workspace:
    """A folder with `workspace.db` and `builds/<id>/`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        return (self.path / DATABASE).is_file()

    def open(self) -> Snapshot:
        """The current build. Raises `WorkspaceError` where there is none or it is damaged."""
        if not self.exists:
            raise WorkspaceError(
                f"{self.path}: no workspace here; make one with qkvsearch -w {self.path} build …"
            )
        return Snapshot.current(self.path)

    def publish(self, contents: BuildContents) -> None:
        """Write a build to a folder of its own, then make it current in one transaction.

        A crash at any point leaves the former build current. Raises `WorkspaceError` where the
        folder cannot be written, or where the build's base is no longer the current one.
        """
        name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:6]}"
        base = contents.base
        shared = {name: base.file(name) for name in sorted(contents.shared)} if base else {}
        try:
            write_build(self.path / "builds" / name, contents.arrays, contents.facts, shared)
            make_current(self.path, name, contents)
        except (OSError, sqlite3.Error) as error:
            _discard(self.path, name)
            no_space = isinstance(error, OSError) and error.errno in NO_SPACE
            advice = "; is the disk full? The former build stays" if no_space else ""
            message = f"{self.path}: cannot write the build: {error}{advice}"
            raise WorkspaceError(message) from error
        except BaseException:
            _discard(self.path, name)
            raise
        # The build is current, whatever fails from here on; the next publish removes what is left.
        with suppress(OSError, sqlite3.Error):
            _prune(self.path)

    def revise(self, derive: Callable[[Snapshot], Answer]) -> Answer:
        """The answer of `derive`, which makes a build from the current one and publishes it.

        `derive` is called again where another build was published meanwhile, so that of two
        simultaneous updates neither is lost. Raises what `derive` raises, and `WorkspaceError`
        where every attempt comes too late.
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

    @property
    def records(self) -> RecordsDatabase:
        """What was recorded, whatever is built."""
        return RecordsDatabase.of(self.path)

    def record(self, rows: Iterable[Recorded], after: int | None = None) -> list[Record]:
        """Interactions, all or none, those without a time now or just after the time `after`; open
        builds see them at once. Raises `WorkspaceError`.
        """
        return records.append(self.records, rows, after)

    def undo_record(self, learned: int = 0) -> list[Record]:
        """Take back what was recorded together last, unless it is one of the first `learned`
        records, which the build's log contains. Raises `QkvError`.
        """
        return records.undo(self.records, learned)

    def forget_records(self, user: str, *, fold: bool) -> int:
        """Delete a user's records by the id, and every trace of them. Raises `WorkspaceError`."""
        return records.forget(self.records, user, fold=fold)

    def is_current(self, snapshot: Snapshot) -> bool:
        """False where another build was published since. Raises `WorkspaceError`."""
        tables, name, _ = read_current(self.path)
        tables.close()
        return name == snapshot.folder.name


def make_current(workspace: Path, name: str, contents: BuildContents) -> None:
    """The transaction: write the build's tables and mark its folder `name` as the current one."""
    db = sqlite3.connect(workspace / DATABASE, timeout=60, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("BEGIN IMMEDIATE")
        db.execute(BUILDS)
        if contents.base is not None:
            # An update of a build that is no longer current would undo what came between.
            current = db.execute(CURRENT_BUILD).fetchone()
            if current is None or current[1] != contents.base.folder.name:
                raise WorkspaceError(
                    f"{workspace}: another build was published meanwhile, and is the current one; "
                    "try again"
                )
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


def _discard(workspace: Path, name: str) -> None:
    """Remove a build's folder, unless it became current just before the interruption."""
    with suppress(WorkspaceError):
        tables, current, _ = read_current(workspace)
        tables.close()
        if current == name:
            return
    shutil.rmtree(workspace / "builds" / name, ignore_errors=True)


def _prune(workspace: Path) -> None:
    """Remove builds that no reader can still use, and the folders of builds that crashed."""
    db = sqlite3.connect(workspace / DATABASE, timeout=60, isolation_level=None)
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
            shutil.rmtree(workspace / "builds" / name, ignore_errors=True)
    finally:
        db.close()
    listed = {name for _, name, _ in builds}
    for folder in (workspace / "builds").iterdir():
        age = time.time() - folder.stat().st_mtime
        ours = OWN_NAME.fullmatch(folder.name) and folder.name not in listed
        if ours and age > ORPHAN_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
