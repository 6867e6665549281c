"""`records.db` with its signature and its lock: checked before it is read, signed when written.

`records.json` says what the file's checksum is ("clean"), or that a writer is at work or was killed
("writing"). Then what SQLite's journal restores counts, once every row was compared with its own.
Whoever reads holds the lock together with other readers, a writer alone; readers write nothing.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.storage.checksummed import read_checksummed, write_checksummed
from qkvsearch.storage.checksums import checksum
from qkvsearch.storage.locks import exclusive, lock
from qkvsearch.storage.records.record_rows import PAGE_SIZE, create, is_empty, require_whole

NAME = "records.db"
CASEFOLD = "casefold"
READ_ONLY = "mode=ro&immutable=1"
# The permissions of new files: who did what is for the owner alone.
PRIVATE = 0o600
NOTHING = {"bytes": 0, "xxh3": ""}
# Without a lock, as in a folder of which a part is out of reach, a writer may be at work meanwhile.
ATTEMPTS, PAUSE = 20, 0.05
# Of all that SQLite refuses, what is the fault of the file, and not of the disk or of others.
DAMAGED = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_in_use: WeakValueDictionary[tuple[str, str], RecordsDatabase] = WeakValueDictionary()


class RecordsDatabase:
    """The records of one workspace, shared by whoever reads or writes them in this process."""

    def __init__(self, workspace: Path) -> None:
        self.path = workspace / NAME
        self.signature = self.path.with_suffix(".json")
        self.journal = self.path.with_name(f"{NAME}-journal")
        self._lock_file = self.path.with_suffix(".lock")
        self._mutex = threading.RLock()
        # As in `writer_lock`, for whoever writes.
        self.wait: float | None = None
        self.say: Callable[[str], None] | None = None
        self._trusted: object = None
        self._db: sqlite3.Connection | None = None

    @classmethod
    def of(cls, workspace: Path) -> RecordsDatabase:
        """The one that is in use already, if any, so that what it checked is not checked again."""
        # The path as it is given stands in messages, and is another place after a change of folder.
        return _in_use.setdefault((os.path.abspath(workspace), str(workspace)), cls(workspace))

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds; nothing where nothing was ever recorded. Raises `DamagedError`."""
        with self._mutex, self._locked(alone=False):
            try:
                db = self._current()
                return [] if db is None else db.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise self.damaged(str(error)) from None
            except OSError as error:
                raise WorkspaceError(f"{self.path}: cannot read: {error}") from None

    @contextmanager
    def writing(self, what: str, vacuum: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction on the tables, on disk when this ends. vacuum: the file is then written
        anew, so that nothing of what was deleted is left in it. Raises `DamagedError` where the
        records are not as they were written, and `WorkspaceError` where they cannot be.
        """
        with self.alone(what):
            former = self.require_sound()
            if vacuum:
                self._remove_leftovers()
            try:
                self.write_state("writing", former)
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
                    if not self.journal.exists() and self._entry() == former:
                        self.sign()
                raise
            # All is on disk: an error now would make people write it twice. The next writer signs.
            with suppress(OSError):
                self.sign()

    @contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Nobody else reads or writes meanwhile. Errors of the disk become `WorkspaceError`."""
        try:
            with self._mutex, self._locked(alone=True):
                yield
        except (OSError, sqlite3.Error) as error:
            raise WorkspaceError(f"{self.path}: cannot {what}: {error}") from None

    def check(self) -> None:
        """Compare the whole file with its checksum, and every row with its own, whatever this
        process has seen. Raises `DamagedError`.
        """
        with self._mutex, self._locked(alone=False):
            self.close()
            db = self._current()
            if db is not None:
                self.require_whole(db)

    def sign(self) -> None:
        """The file is as it should be now."""
        self.write_state("clean", self._entry())
        self._trusted = self._key()

    def write_state(self, state: str, entry: dict[str, Any]) -> None:
        """Write `records.json`: whether a writer is at work, and the file's size and checksum."""
        write_checksummed(self.signature, {"state": state, **entry}, PRIVATE)

    def close(self) -> None:
        """What was checked has to be checked again."""
        with self._mutex:
            if self._db is not None:
                self._db.close()
            self._db = self._trusted = None

    def __del__(self) -> None:
        if self._db is not None:
            self._db.close()

    def _current(self) -> sqlite3.Connection | None:
        """A connection to what is there now, checked if it is not what was checked last."""
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
        content = self._require_signed()
        if not self.size():
            return None
        if content["state"] == "writing" and self.journal.exists():
            return self._restored()
        db = self.connect(self.path, READ_ONLY)
        if content["state"] == "writing":
            self.require_whole(db)
        return db

    def _restored(self) -> sqlite3.Connection | None:
        """In memory, what the journal of a killed writer restores: the folder may be read-only, and
        SQLite would write to the file.
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
        """Size and checksum of the file before it is changed, by whoever is `alone`. What a killed
        writer left half done is restored. Raises `DamagedError`.
        """
        is_known = self._key() == self._trusted
        self.close()
        content = self.signed() if is_known else self._require_signed()
        if content["state"] == "clean":
            # Its transaction is over: what a loss of power brought back restores nothing.
            self.journal.unlink(missing_ok=True)
            return {name: content[name] for name in NOTHING}
        self._remove_leftovers()
        with closing(self.connect(self.path)) as db:
            self.require_whole(db)
        return self._entry()

    def signed(self) -> dict[str, Any]:
        """What `records.json` says. Raises `DamagedError`."""
        try:
            content = read_checksummed(self.signature)
            if content["state"] in ("clean", "writing") and content.keys() >= NOTHING.keys():
                return dict(content)
        except FileNotFoundError:
            if not self.size():
                return {"state": "clean", **NOTHING}
            raise self.damaged("it is missing", self.signature) from None
        except (AttributeError, LookupError, TypeError):
            pass
        raise self.damaged("it does not say what was written", self.signature)

    def _require_signed(self) -> dict[str, Any]:
        """What `records.json` says, and the file is as it says, as far as a writer was done."""
        content = self.signed()
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
        """The error that names the file, what is wrong, and what to do."""
        advice = "what is not about users still works; repair keeps the records that can be read"
        return DamagedError(file or self.path, reason, advice)

    def size(self) -> int:
        """In bytes, 0 where there is none. Raises `DamagedError` for what is no file."""
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return 0
        if not stat.S_ISREG(found.st_mode):
            raise self.damaged("it is a link or a folder, and was written as a file")
        return found.st_size

    def _remove_leftovers(self) -> None:
        """What killed writers began to write beside their files."""
        for path in self.path.parent.glob(".records.*-*"):
            path.unlink(missing_ok=True)

    def _entry(self) -> dict[str, Any]:
        size = self.size()
        return {"bytes": size, "xxh3": checksum(self.path)} if size else NOTHING

    def _key(self) -> object:
        """Another one after every change."""
        try:
            said = self.signature.read_bytes()
        except FileNotFoundError:
            said = b""
        found = self.path.stat() if self.size() else None
        place = found and (found.st_ino, found.st_mtime_ns, found.st_size)
        return said, place, self.journal.exists()

    def connect(self, path: Path, options: str = "") -> sqlite3.Connection:
        """To the file as it is. Raises `DamagedError` where it is no database of records."""
        if path == self.path:
            self.size()
        if options != READ_ONLY:
            # SQLite would create it for everybody to read; its journal gets the same permissions.
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
            with exclusive(self._lock_file, self.wait, self.say, PRIVATE):
                yield
            return
        try:
            file = self._lock_file.open("rb")
        except OSError:
            yield  # nobody has ever written here, or nobody can
            return
        with file:
            lock(file, shared=True)
            yield
