"""`records.db` and `records.json`: what is in them, and whether it is what was written.

`records.json` has the checksum of the database ("clean"), or says that a writer is at work or was
killed ("writing"), with the checksum of the database before. In the second case SQLite's journal
restores the database, or its transaction is complete and every row has its own checksum.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from qkvsearch._utils.sqlite import connect
from qkvsearch.errors import DamagedError
from qkvsearch.store.checksums import checksum, file_status, read_checksummed, write_checksummed
from qkvsearch.store.records.record_rows import PAGE_SIZE, is_empty, require_whole

NAME = "records.db"
CASEFOLD = "casefold"
READ_ONLY = "mode=ro&immutable=1"
# Permissions of new files: only the owner may read who did what.
PRIVATE = 0o600
NOTHING = {"bytes": 0, "xxh3": ""}
# Seconds for which SQLite waits for other programs that have the file open.
OTHERS = 5.0
# What `records.json` contains while a writer is at work.
WRITING = b'"state": "writing"'
# The errors of SQLite that are the fault of the file, and not of the disk or of other processes.
DAMAGED = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class RecordsFile:
    """The files of the records of a workspace."""

    def __init__(self, workspace: Path) -> None:
        self.path = workspace / NAME
        self.state_file = self.path.with_suffix(".json")
        self.journal = self.path.with_name(f"{NAME}-journal")
        self.lock_file = self.path.with_suffix(".lock")

    def write_state(self, state: str, entry: dict[str, Any]) -> None:
        """Write `records.json`: whether a writer is at work, and the file's size and checksum."""
        write_checksummed(self.state_file, {"state": state, **entry}, PRIVATE)

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

    def checked_state(self) -> dict[str, Any]:
        """Read `records.json`, and compare the file with it if no writer was killed. Raises
        `DamagedError`.
        """
        content = self.read_state()
        if content["state"] == "clean":
            self.require_entry(content)
        return content

    def require_entry(self, content: dict[str, Any]) -> None:
        """Compare the file with its size and checksum in `content`. Raises `DamagedError`."""
        if content["bytes"] and not self.size():
            raise self.damaged("it is missing")
        if self.entry() != {name: content[name] for name in NOTHING}:
            raise self.damaged("its checksum is not the one that was written")

    def entry(self) -> dict[str, Any]:
        """Return the size and the checksum of the file as it is now."""
        size = self.size()
        return {"bytes": size, "xxh3": checksum(self.path)} if size else NOTHING

    def size(self) -> int:
        """Return the size in bytes, 0 for no file. Raises `DamagedError` for a link or folder."""
        try:
            return file_status(self.path).st_size
        except FileNotFoundError:
            return 0
        except DamagedError as error:
            raise self.damaged(error.what) from None

    def version(self) -> tuple[Any, ...]:
        """Return a value that changes with every change of what is committed."""
        state: tuple[Any, ...] | None
        try:
            status = file_status(self.state_file)
            state = (self.state_file.read_bytes(), status.st_ino, status.st_mtime_ns)
        except FileNotFoundError:
            state = ()
        except (DamagedError, OSError):  # a folder, say: `read_state` raises the error
            state = None
        has_journal = self.journal.exists()
        if state and WRITING in state[0] and has_journal:
            # The writer may change the file at any time, and has committed nothing yet.
            return state, has_journal
        if not self.size():
            return state, has_journal, None
        database = self.path.stat()
        return state, has_journal, (database.st_ino, database.st_mtime_ns, database.st_size)

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

    def connect(self, path: Path, options: str = "") -> sqlite3.Connection:
        """Connect to a file. Raises `DamagedError` where it is not a database of records."""
        if path == self.path:
            self.size()
        if options != READ_ONLY:
            # SQLite would let everybody read a new file; the journal gets the same permissions.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE))
        db = connect(
            f"{path.absolute().as_uri()}?{options}",
            uri=True,
            timeout=OTHERS,
            isolation_level=None,
            check_same_thread=False,
        )
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
