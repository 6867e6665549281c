"""Read the committed records, whatever a writer does meanwhile. Readers take no lock.

A reader looks at the version of the files, reads, and looks again: where they have changed, it
reads once more. While a writer is at work, it reads a copy in memory, in which SQLite has undone
what is not committed. The checksum in `records.json` shows that the copy is what was there before.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar
from weakref import WeakValueDictionary

from qkvsearch._utils.forks import Connection, fork_lock
from qkvsearch._utils.sqlite import connect
from qkvsearch.errors import BusyError, DamagedError, QkvError, WorkspaceError
from qkvsearch.store.checksums import checksum, file_status
from qkvsearch.store.locks import is_free
from qkvsearch.store.records.record_rows import create
from qkvsearch.store.records.records_file import CASEFOLD, NAME, READ_ONLY, RecordsFile

T = TypeVar("T")
# A query in SQL, and the values of its parameters.
SqlQuery = tuple[str, Sequence[Any]]
# How often a reader that meets writers reads again, and the pause in seconds.
ATTEMPTS, PAUSE = 20, 0.05
# Seconds that a reader gives a writer to end, before it copies the file: most need a few
# milliseconds.
GRACE = 0.2
# Seconds after which a reader that always met a writer gives up.
PATIENCE = 10.0
_in_use: WeakValueDictionary[tuple[str, str], CommittedRecords] = WeakValueDictionary()


class CommittedRecords(RecordsFile):
    """The committed records of one workspace, one object for all readers of this process."""

    def __init__(self, workspace: Path) -> None:
        super().__init__(workspace)
        self._mutex = fork_lock()
        # The connection, and the version of the files that it reads.
        self._open = Connection()
        self._opened_version: object = None
        # Whether there is a connection, and to a copy, which no writer changes.
        self._opened_has_rows = False
        self._is_copy = False
        # The last version that was compared with its checksum, by a reader or a writer.
        self.sound_version: object = None
        # The version at which a reader has waited for the writer.
        self._waited_in: object = None

    @classmethod
    def of(cls, workspace: Path) -> CommittedRecords:
        """Return the object in use, or a new one: a process checks a file once."""
        # Messages show the path as it is given, which means another folder after `chdir`.
        return _in_use.setdefault((os.path.abspath(workspace), str(workspace)), cls(workspace))

    def __del__(self) -> None:
        if hasattr(self, "_open"):
            self._open.close()

    def rows_of_all(self, queries: Sequence[SqlQuery]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of several queries, all of one committed state; none without records.
        Raises `DamagedError`, and `BusyError` where the records change faster than they can be
        read.
        """

        def read(db: sqlite3.Connection | None) -> list[list[tuple[Any, ...]]]:
            if db is None:
                return [[] for _ in queries]
            return [db.execute(sql, values).fetchall() for sql, values in queries]

        return self._settled(read)

    def check(self) -> None:
        """Compare file and rows with their checksums, even again. Raises `DamagedError`."""

        def check(db: sqlite3.Connection | None) -> None:
            if db is not None:
                self.require_whole(db)

        self._settled(check, anew=True)

    def _settled(self, read: Callable[[sqlite3.Connection | None], T], *, anew: bool = False) -> T:
        """Return what `read` reads of one committed state. anew: connect and compare again."""
        with self._mutex:
            if anew:
                self._close()
                self.sound_version = None
            for attempt in range(ATTEMPTS):
                with suppress(_ChangedError):
                    return self._read_once(read)
                if attempt:  # mostly the writer has ended, and the next reading is right
                    time.sleep(PAUSE)
            with self._without_writers(), suppress(_ChangedError):
                return self._read_once(read)
        raise self._busy()

    def _read_once(self, read: Callable[[sqlite3.Connection | None], T]) -> T:
        """Read, and raise `_ChangedError` where the files have changed meanwhile: then what was
        read may be of two states, and an error may be none.
        """
        version = self.version()
        try:
            found = read(self._connected(version))
        except (QkvError, sqlite3.Error, OSError) as error:
            self._close()
            if self.version() != version:
                raise _ChangedError from None
            if isinstance(error, sqlite3.Error):
                raise self.damaged(str(error)) from None
            if isinstance(error, OSError):
                raise WorkspaceError(f"{self.path}: cannot read: {error}") from None
            raise
        if not self._is_copy and self.version() != version:
            raise _ChangedError
        return found

    def _connected(self, version: tuple[Any, ...]) -> sqlite3.Connection | None:
        """Return a connection to this version of the file, or to a copy; None for no records."""
        db = self._open.db
        if version != self._opened_version or (db is None and self._opened_has_rows):
            self._close()
            db = self._open.db = self._connect(version)
            self._opened_version, self._opened_has_rows = version, db is not None
        return db

    def _connect(self, version: tuple[Any, ...]) -> sqlite3.Connection | None:
        content = self.read_state()
        self._is_copy = content["state"] == "writing"
        if self._is_copy:
            self._give_a_moment(version)
            return self._copied(content, version)
        if version != self.sound_version:
            self.require_entry(content)
            self.sound_version = version
        return self.connect(self.path, READ_ONLY) if self.size() else None

    def _close(self) -> None:
        """Close the connection."""
        self._opened_version = None
        self._open.close()

    # --- while a writer is at work, or after it was killed ---

    def _give_a_moment(self, version: tuple[Any, ...]) -> None:
        """Raise `_ChangedError` as soon as the writer goes on, if there is one and it does so
        within a moment. Wait once for each step of a writer. Rows that are committed and not yet
        signed, in the last step, would be compared one by one.
        """
        if version == self._waited_in:
            return
        self._waited_in = version
        end = time.monotonic() + GRACE
        while self._has_writer() and time.monotonic() < end:
            time.sleep(PAUSE / 10)
            if self.version() != version:
                raise _ChangedError

    def _has_writer(self) -> bool:
        try:
            with self._opened_lock() as file:
                return not is_free(file, 0, shared=True)
        except OSError:  # nobody can write here
            return False

    def _copied(
        self, content: dict[str, Any], version: tuple[Any, ...]
    ) -> sqlite3.Connection | None:
        """Return a copy in memory of the last committed state; None where nothing is committed.

        SQLite undoes in it what is not committed. It would write to the file itself, and a writer
        may be at work, or the folder read-only. Raises `DamagedError`.
        """
        try:
            with tempfile.TemporaryDirectory() as name:
                copy = Path(name) / NAME
                # The file before its journal: what changes meanwhile is in the journal then.
                shutil.copyfile(self.path, copy)
                with suppress(FileNotFoundError):
                    shutil.copyfile(self.journal, copy.with_name(self.journal.name))
                with closing(self.connect(copy)) as db:
                    if not _is_entry_of(content, copy):
                        # It is committed and not yet signed. Or the journal is gone because the
                        # writer gave up meanwhile: then the rows were never committed.
                        if self.version() != version:
                            raise _ChangedError
                        self.require_whole(db)
                    memory = connect(":memory:", check_same_thread=False)
                    db.backup(memory)
        except FileNotFoundError:
            if content["bytes"]:
                raise self.damaged("it is missing") from None
            return None
        except (OSError, sqlite3.Error) as error:
            raise WorkspaceError(f"{self.path}: cannot restore a copy: {error}") from None
        create(memory)
        memory.create_function(CASEFOLD, 1, str.casefold, deterministic=True)
        return memory

    @contextmanager
    def _without_writers(self) -> Iterator[None]:
        """Keep writers out in the block. Raises `BusyError` where one does not end."""
        try:
            file = self._opened_lock()
        except OSError:  # nobody can write here
            yield
            return
        with file:
            if not is_free(file, PATIENCE, shared=True):
                raise self._busy()
            yield

    def _busy(self) -> BusyError:
        return BusyError(
            f"{self.path}: it changes faster than it can be read; try again in a moment"
        )

    def _opened_lock(self) -> IO[bytes]:
        """Open the file that writers lock. Raises `OSError`."""
        try:
            file_status(self.lock_file)
        except DamagedError as error:
            raise FileNotFoundError(str(error)) from None
        return self.lock_file.open("rb")


def _is_entry_of(content: dict[str, Any], file: Path) -> bool:
    """Return whether a file has the size and the checksum in `content`."""
    return file.stat().st_size == content["bytes"] and checksum(file) == content["xxh3"]


class _ChangedError(QkvError):
    """A writer has changed the files while they were read."""
