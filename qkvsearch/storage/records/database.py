"""`records.db` with its checksum and its lock: checked before it is read.

`records.json` has the checksum of the file ("clean"), or says that a writer is active or was killed
("writing"). In the second case SQLite's journal restores the file, and every row is compared with
its own checksum. Readers share the lock and write nothing; a writer has it alone.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from qkvsearch.collaborative.user_history import NOW, readable_time
from qkvsearch.errors import DamagedError, QkvError, WorkspaceError
from qkvsearch.storage.checksums import checksum, file_status, read_checksummed, write_checksummed
from qkvsearch.storage.locks import exclusive, lock
from qkvsearch.storage.records.record_rows import (
    MOMENT,
    PAGE_SIZE,
    RECORD,
    NewRecord,
    Origin,
    Record,
    create,
    delete,
    insert,
    is_empty,
    is_user,
    require_whole,
    totals,
)

NAME = "records.db"
CASEFOLD = "casefold"
READ_ONLY = "mode=ro&immutable=1"
# Permissions of new files: only the owner may read who did what.
PRIVATE = 0o600
NOTHING = {"bytes": 0, "xxh3": ""}
# A reader that could not lock, in a read-only folder, may meet a writer: it tries again.
ATTEMPTS, PAUSE = 20, 0.05
# The errors of SQLite that are the fault of the file, and not of the disk or of other processes.
DAMAGED = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# A query in SQL, and the values of its parameters.
Query = tuple[str, Sequence[Any]]
_in_use: WeakValueDictionary[tuple[str, str], RecordsDatabase] = WeakValueDictionary()


class AlreadyRecordedError(QkvError):
    """The same file, or the same request, is recorded already."""


class RecordsDatabase:
    """The records of one workspace, one object for all readers and writers in this process."""

    def __init__(self, workspace: Path) -> None:
        self.path = workspace / NAME
        self.state_file = self.path.with_suffix(".json")
        self.journal = self.path.with_name(f"{NAME}-journal")
        self._lock_file = self.path.with_suffix(".lock")
        self._mutex = threading.RLock()
        # For writers, as in `writer_lock`.
        self.wait: float | None = None
        self.notify: Callable[[str], None] | None = None
        self._trusted: object = None
        self._db: sqlite3.Connection | None = None

    @classmethod
    def of(cls, workspace: Path) -> RecordsDatabase:
        """Return the object in use, or a new one: a process checks a file once."""
        # Messages show the path as it is given, which means another folder after `chdir`.
        return _in_use.setdefault((os.path.abspath(workspace), str(workspace)), cls(workspace))

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query; none without records. Raises `DamagedError`."""
        (rows,) = self.rows_of_all([(sql, values)])
        return rows

    def rows_of_all(self, queries: Sequence[Query]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of several queries, read at one moment: no writer comes between them.
        Raises `DamagedError`.
        """
        with self._mutex, self._locked(alone=False):
            try:
                db = self._current()
                if db is None:
                    return [[] for _ in queries]
                return [db.execute(sql, values).fetchall() for sql, values in queries]
            except sqlite3.Error as error:
                raise self.damaged(str(error)) from None
            except OSError as error:
                raise WorkspaceError(f"{self.path}: cannot read: {error}") from None

    def append(
        self,
        rows: Iterable[NewRecord],
        origin: Origin,
        after: int | None = None,
        learned: int = 0,
    ) -> list[Record]:
        """Write interactions, all or none, to the disk, and return their records. One `undo`
        deletes them together. Raises `WorkspaceError`, and `AlreadyRecordedError` for content that
        is recorded already.

        The present time is a later one if the clock was set back: after the time `after`, and not
        before the last record. learned: number of the last record that a build learned from. New
        numbers are greater, even if earlier records were lost.
        """
        moment = max(int(time.time()), -1 if after is None else after + 1)
        last = f"SELECT {MOMENT} FROM recorded ORDER BY number DESC LIMIT 1"
        with self.writing("record") as db:
            _require_new(db, origin)
            moment = max([moment, *(before for (before,) in db.execute(last))])
            batch = max(totals(db).last, learned) + 1
            records = [
                Record(
                    number, _text(row.user), row.item, _number(row.rating), _number(row.weight),
                    moment if row.time == NOW else row.time, batch, moment, origin.client,
                    origin.content,
                )
                for number, row in enumerate(rows, batch)
            ]  # fmt: skip
            insert(db, records)
        return records

    def undo(
        self, learned: int = 0, client: str | None = None, batch: int | None = None
    ) -> list[Record]:
        """Delete the records of a batch, by default the last one, and return them; none where there
        is no such batch.

        learned: the number of the last record that the current build learned from. client: only a
        batch of this client. Raises `QkvError` where the build has learned from these records,
        `WorkspaceError` where nothing can be written.
        """
        last = f"SELECT {RECORD} FROM recorded WHERE batch = (SELECT batch FROM recorded WHERE "
        last += "client = coalesce(?1, client) AND batch = coalesce(?2, batch) "
        last += "ORDER BY number DESC LIMIT 1) ORDER BY number"
        with self.writing("undo") as db:
            records = [Record(*row) for row in db.execute(last, (client, batch))]
            if records and records[0].number <= learned:
                raise QkvError(
                    f"the build has learned from batch {records[0].batch}; "
                    "rollback returns to the previous build, in which it can be undone"
                )
            delete(db, records)
        return records

    def forget(self, user: str, *, fold: bool) -> int:
        """Delete the records of a user by the text of the id, and every trace of them in the file.
        Return how many there were. fold: ids that differ only in case are the same. Raises
        `WorkspaceError`.
        """
        with self.writing("forget", vacuum=True) as db:
            rows = db.execute(f"SELECT {RECORD} FROM recorded WHERE {is_user(fold)}", (user,))
            records = [Record(*row) for row in rows]
            delete(db, records)
        return len(records)

    @contextmanager
    def writing(self, what: str, vacuum: bool = False) -> Iterator[sqlite3.Connection]:
        """Hold a transaction on the tables, which is on disk when the block ends. vacuum: rewrite
        the file, so that nothing deleted is left in it. Raises `DamagedError` where the records are
        damaged, and `WorkspaceError` where they cannot be written.
        """
        with self.alone(what):
            previous = self.require_sound()
            if vacuum:
                self._remove_leftovers()
            try:
                self.write_state("writing", previous)
                with closing(self.connect(self.path)) as db:
                    db.execute("BEGIN IMMEDIATE")
                    create(db)
                    yield db
                    db.execute("COMMIT")
                    if vacuum:
                        db.execute("PRAGMA temp_store = MEMORY")
                        db.execute("VACUUM")
            except BaseException:
                with suppress(OSError):
                    if not self.journal.exists() and self._entry() == previous:
                        self.mark_clean()
                raise
            # All is on disk: after an error people would record it twice. The next writer marks it.
            with suppress(OSError):
                self.mark_clean()

    @contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Lock out all others in a `with` block. Errors of the disk become `WorkspaceError`."""
        try:
            with self._mutex, self._locked(alone=True):
                yield
        except (OSError, sqlite3.Error) as error:
            raise WorkspaceError(f"{self.path}: cannot {what}: {error}") from None

    def check(self) -> None:
        """Compare file and rows with their checksums, even again. Raises `DamagedError`."""
        with self._mutex, self._locked(alone=False):
            self.close()
            db = self._current()
            if db is not None:
                self.require_whole(db)

    def mark_clean(self) -> None:
        """Write the checksum of the file as it is now."""
        self.write_state("clean", self._entry())
        self._trusted = self._key()

    def write_state(self, state: str, entry: dict[str, Any]) -> None:
        """Write `records.json`: whether a writer is at work, and the file's size and checksum."""
        write_checksummed(self.state_file, {"state": state, **entry}, PRIVATE)

    def close(self) -> None:
        """Close the connection and forget what was checked."""
        with self._mutex:
            if self._db is not None:
                self._db.close()
            self._db = self._trusted = None

    def __del__(self) -> None:
        if self._db is not None:
            self._db.close()

    def _current(self) -> sqlite3.Connection | None:
        """Return a connection to the file, checked if it changed; None for an empty one."""
        for attempt in range(ATTEMPTS):
            key = self._key()
            if key == self._trusted:
                break
            try:
                self.close()
                self._db = self._checked()
                self._trusted = key
            except DamagedError:
                if attempt + 1 == ATTEMPTS or self._key() == key:
                    raise
                time.sleep(PAUSE)
        if self._db is None and self.size():
            self._db = self.connect(self.path, READ_ONLY)
        return self._db

    def _checked(self) -> sqlite3.Connection | None:
        content = self._check_state()
        if not self.size():
            return None
        if content["state"] == "writing" and self.journal.exists():
            return self._restored()
        db = self.connect(self.path, READ_ONLY)
        if content["state"] == "writing":
            self.require_whole(db)
        return db

    def _restored(self) -> sqlite3.Connection | None:
        """Restore a copy in memory by the journal of a killed writer: SQLite would write to the
        file itself, and the folder may be read-only.
        """
        try:
            with tempfile.TemporaryDirectory() as name:
                copy = Path(name) / NAME
                shutil.copyfile(self.path, copy)
                shutil.copyfile(self.journal, copy.with_name(self.journal.name))
                with closing(self.connect(copy)) as db:
                    self.require_whole(db)
                    memory = sqlite3.connect(":memory:", check_same_thread=False)
                    db.backup(memory)
        except (OSError, sqlite3.Error) as error:
            raise WorkspaceError(f"{self.path}: cannot restore a copy: {error}") from None
        create(memory)
        memory.create_function(CASEFOLD, 1, str.casefold, deterministic=True)
        return memory

    def require_sound(self) -> dict[str, Any]:
        """Check the file before a change, restore it where a writer was killed, and return its size
        and checksum. Requires `alone`. Raises `DamagedError`.
        """
        is_checked = self._key() == self._trusted
        self.close()
        content = self.read_state() if is_checked else self._check_state()
        if content["state"] == "clean":
            # The transaction is complete: a journal restored after a power loss must not be used.
            self.journal.unlink(missing_ok=True)
            return {name: content[name] for name in NOTHING}
        self._remove_leftovers()
        with closing(self.connect(self.path)) as db:
            self.require_whole(db)
        return self._entry()

    def read_state(self) -> dict[str, Any]:
        """Read `records.json`. Raises `DamagedError`."""
        try:
            content = read_checksummed(self.state_file)
            if content["state"] in ("clean", "writing") and content.keys() >= NOTHING.keys():
                return dict(content)
        except FileNotFoundError:
            if not self.size():
                return {"state": "clean", **NOTHING}
            raise self.damaged("it is missing", self.state_file) from None
        except (AttributeError, LookupError, TypeError):
            pass
        raise self.damaged("it is not what was written", self.state_file)

    def _check_state(self) -> dict[str, Any]:
        """Compare the file with `records.json`, if no writer was killed. Raises `DamagedError`."""
        content = self.read_state()
        if content["bytes"] and not self.size():
            raise self.damaged("it is missing")
        is_clean = content["state"] == "clean"
        if is_clean and self._entry() != {name: content[name] for name in NOTHING}:
            raise self.damaged("its checksum is not the one that was written")
        return content

    def require_whole(self, db: sqlite3.Connection) -> None:
        """Compare every row with its checksum. Raises `DamagedError`."""
        try:
            require_whole(db)
        except (sqlite3.DatabaseError, ValueError) as error:
            raise self.damaged(str(error)) from None

    def damaged(self, reason: str, file: Path | None = None) -> DamagedError:
        """Return the error that names the file, what is wrong, and what to do."""
        advice = "what is not about users still works; repair keeps the records that can be read"
        return DamagedError(file or self.path, reason, advice)

    def size(self) -> int:
        """Return the size in bytes, 0 for no file. Raises `DamagedError` for a link or folder."""
        try:
            return file_status(self.path).st_size
        except FileNotFoundError:
            return 0
        except DamagedError as error:
            raise self.damaged(error.what) from None

    def _remove_leftovers(self) -> None:
        """Remove the temporary files of killed writers."""
        for path in self.path.parent.glob(".records.*-*"):
            path.unlink(missing_ok=True)

    def _entry(self) -> dict[str, Any]:
        size = self.size()
        return {"bytes": size, "xxh3": checksum(self.path)} if size else NOTHING

    def _key(self) -> object:
        """Return a value that changes with every change of the files."""
        state: bytes | None
        try:
            file_status(self.state_file)
            state = self.state_file.read_bytes()
        except FileNotFoundError:
            state = b""
        except (DamagedError, OSError):  # a folder, say: `_check_state` raises the error
            state = None
        status = self.path.stat() if self.size() else None
        version = status and (status.st_ino, status.st_mtime_ns, status.st_size)
        return state, version, self.journal.exists()

    def connect(self, path: Path, options: str = "") -> sqlite3.Connection:
        """Connect to a file. Raises `DamagedError` where it is not a database of records."""
        if path == self.path:
            self.size()
        if options != READ_ONLY:
            # SQLite would let everybody read a new file; the journal gets the same permissions.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE))
        db = sqlite3.connect(
            f"{path.absolute().as_uri()}?{options}",
            uri=True, timeout=60, isolation_level=None, check_same_thread=False,
        )  # fmt: skip
        try:
            db.create_function(CASEFOLD, 1, str.casefold, deterministic=True)
            if options != READ_ONLY:
                db.execute(f"PRAGMA page_size = {PAGE_SIZE}")
                db.execute("PRAGMA journal_mode = DELETE")
                db.execute("PRAGMA synchronous = FULL")
                db.execute("PRAGMA secure_delete = ON")
            is_empty(db)
        except (sqlite3.Error, ValueError) as error:
            db.close()
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
            if code & 0xFF not in DAMAGED:
                raise
            raise self.damaged(str(error)) from None
        return db

    @contextmanager
    def _locked(self, alone: bool) -> Iterator[None]:
        if alone:
            with exclusive(self._lock_file, self.wait, self.notify, PRIVATE):
                yield
            return
        try:
            file_status(self._lock_file)
            file = self._lock_file.open("rb")
        except OSError:
            yield  # nobody has written here yet, or nobody can
            return
        with file:
            lock(file, shared=True)
            yield


def _require_new(db: sqlite3.Connection, origin: Origin) -> None:
    """Raise `AlreadyRecordedError` where the content is recorded already, unless `again`."""
    same = "SELECT batch, recorded FROM recorded WHERE content = ? ORDER BY number DESC LIMIT 1"
    batches = [] if origin.again else db.execute(same, (origin.content,)).fetchall()
    for batch, moment in batches:
        raise AlreadyRecordedError(
            f"{origin.file}: the same content was recorded as batch {batch} on "
            f"{readable_time(moment)} (UTC); to record it once more: `again`"
        )


def _text(user: str) -> str:
    try:
        user.encode()
    except UnicodeEncodeError:
        raise QkvError(f"a user's id is text in UTF-8, not {user!r}") from None
    return user


def _number(value: float | None) -> float | None:
    # SQLite stores −0 as 0, and the checksum would differ.
    return None if value is None else float(value) + 0.0
