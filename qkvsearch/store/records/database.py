"""The records of a workspace: read what is committed, and change it, one writer at a time.

A writer locks `records.lock`, says in `records.json` that it is at work, changes the database in a
transaction of SQLite, and signs it with its checksum. Readers do not wait for it (`committed.py`).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from qkvsearch._utils.deadline import check_deadline
from qkvsearch.errors import BusyError, QkvError, WorkspaceError
from qkvsearch.models.user_history import NOW, readable_time
from qkvsearch.store.locks import MOMENT as BEFORE_A_MESSAGE
from qkvsearch.store.locks import PAUSE, exclusive
from qkvsearch.store.records.committed import CommittedRecords, SqlQuery
from qkvsearch.store.records.record_rows import (
    MOMENT,
    RECORD,
    NewRecord,
    Origin,
    Record,
    create,
    delete,
    insert,
    is_user,
    totals,
)
from qkvsearch.store.records.records_file import NOTHING, PRIVATE, RecordsFile


class AlreadyRecordedError(QkvError):
    """The same file, or the same request, is recorded already."""


class RecordsDatabase(RecordsFile):
    """The records of one workspace.

    wait, notify: for a writer that meets another one, as in `writer_lock`.
    """

    def __init__(
        self,
        workspace: Path,
        wait: float | None = None,
        notify: Callable[[str], None] | None = None,
        committed: CommittedRecords | None = None,
    ) -> None:
        super().__init__(workspace)
        self.wait, self.notify = wait, notify
        self._committed = committed or CommittedRecords(workspace)

    @classmethod
    def of(
        cls,
        workspace: Path,
        wait: float | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> RecordsDatabase:
        """Return the records, which all readers of this process read and check together."""
        return cls(workspace, wait, notify, CommittedRecords.of(workspace))

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query; none without records. Raises `DamagedError`."""
        (rows,) = self.rows_of_all([(sql, values)])
        return rows

    def rows_of_all(self, queries: Sequence[SqlQuery]) -> list[list[tuple[Any, ...]]]:
        """Return the rows of several queries, read at one moment: no writer comes between them.
        Raises `DamagedError`.
        """
        return self._committed.rows_of_all(queries)

    def check(self) -> None:
        """Compare the file with its checksum and every row with its own, even if that was done
        before. Raises `DamagedError`.
        """
        self._committed.check()

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
                    number=number,
                    user=_text(row.user),
                    item=row.item,
                    rating=_number(row.rating),
                    weight=_number(row.weight),
                    time=moment if row.time == NOW else row.time,
                    batch=batch,
                    recorded=moment,
                    client=origin.client,
                    content=origin.content,
                )
                for number, row in enumerate(rows, batch)
            ]
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

    @contextmanager
    def forgetting(self, user: str, *, fold: bool) -> Iterator[tuple[int, int]]:
        """Delete the records of a user when the `with` block ends; after an error in it, delete
        none. Yields how many there are, and the number of the last record of all users.

        user: the text of the id. fold: ids that differ only in case are the same. No other writer
        comes between. What the file still has of deleted rows, `forget` removes. Raises
        `WorkspaceError`.
        """
        with self.writing("forget") as db:
            n_deleted = _delete_of(db, user, fold, last=totals(db).last)
            yield n_deleted, totals(db).last

    def forget(self, user: str, *, fold: bool, last: int) -> None:
        """Delete the records of a user up to the number `last`, and every trace of them in the
        file. Raises `WorkspaceError`.
        """
        with self.alone("forget"):
            with self._transaction() as db:
                _delete_of(db, user, fold, last)
            self._vacuum()

    @contextmanager
    def writing(self, what: str) -> Iterator[sqlite3.Connection]:
        """Hold a transaction on the tables, which is on disk when the block ends. Raises
        `DamagedError` where the records are damaged, `BusyError` where another writer does not end
        within `wait`, and `WorkspaceError` where the records cannot be written.
        """
        with self.alone(what), self._transaction() as db:
            yield db

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold a transaction. Requires `alone`."""
        with self._changing() as db:
            self._begin(db)
            create(db)
            yield db
            db.execute("COMMIT")

    def _begin(self, db: sqlite3.Connection) -> None:
        """Begin a transaction that is alone in the file, as in `writer_lock`.

        We keep others out by `records.lock`. Other programs, such as a backup, do not know it, and
        hold SQLite's own lock.
        """
        db.execute("PRAGMA busy_timeout = 0")
        began = time.monotonic()
        has_notified = False
        while True:
            try:
                db.execute("BEGIN EXCLUSIVE")
                return
            except sqlite3.OperationalError as error:
                if not _is_busy(error):
                    raise
            check_deadline()
            waited = time.monotonic() - began
            if self.wait is not None and waited >= self.wait:
                raise BusyError(self._held_by_others)
            if self.notify is not None and waited >= BEFORE_A_MESSAGE and not has_notified:
                self.notify(f"Waiting: {self._held_by_others}.")
                has_notified = True
            time.sleep(PAUSE)

    @property
    def _held_by_others(self) -> str:
        return f"{self.path}: another program has it open in a transaction"

    def _vacuum(self) -> None:
        """Rewrite the file, so that nothing deleted is left in it. Requires `alone`."""
        self._remove_leftovers()
        with self._changing() as db:
            db.execute("PRAGMA temp_store = MEMORY")
            db.execute("VACUUM")

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """Connect for one change of the file, which the block commits. Requires `alone`."""
        previous = self.require_sound()
        try:
            self.write_state("writing", previous)
            with closing(self.connect(self.path)) as db:
                yield db
        except BaseException:
            with suppress(OSError):
                if not self.journal.exists() and self.entry() == previous:
                    self.mark_clean()
            raise
        # All is on disk: after an error people would record it twice. The next writer marks it.
        with suppress(OSError):
            self.mark_clean()

    @contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Lock out other writers in a `with` block. Errors of the disk become `WorkspaceError`."""
        try:
            with exclusive(self.lock_file, what, self.wait, self.notify, PRIVATE):
                yield
        except (OSError, sqlite3.Error) as error:
            if _is_busy(error):
                raise BusyError(self._held_by_others) from None
            raise WorkspaceError(f"{self.path}: cannot {what}: {error}") from None

    def mark_clean(self) -> None:
        """Write the checksum of the file as it is now. Requires `alone`."""
        self.write_state("clean", self.entry())
        self._committed.sound_version = self.version()

    def require_sound(self) -> dict[str, Any]:
        """Check the file before a change, restore it where a writer was killed, and return its size
        and checksum. Requires `alone`. Raises `DamagedError`.
        """
        is_checked = self.version() == self._committed.sound_version
        content = self.read_state() if is_checked else self.checked_state()
        if content["state"] == "clean":
            # The transaction is complete: a journal restored after a power loss must not be used.
            self.journal.unlink(missing_ok=True)
            return {name: content[name] for name in NOTHING}
        self._remove_leftovers()
        with closing(self.connect(self.path)) as db:
            self.require_whole(db)
        return self.entry()

    def _remove_leftovers(self) -> None:
        """Remove the temporary files of killed writers."""
        for path in self.path.parent.glob(".records.*-*"):
            path.unlink(missing_ok=True)


def _delete_of(db: sqlite3.Connection, user: str, fold: bool, last: int) -> int:
    """Delete the records of a user up to a number, and return how many there were."""
    of_user = f"SELECT {RECORD} FROM recorded WHERE {is_user(fold)} AND number <= ?2"
    records = [Record(*row) for row in db.execute(of_user, (user, last))]
    delete(db, records)
    return len(records)


def _is_busy(error: Exception) -> bool:
    """Return whether an error of SQLite is that another program holds its lock."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code & 0xFF == sqlite3.SQLITE_BUSY


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
