"""What changes the records: some are added, taken back, or deleted with a person."""

from __future__ import annotations

import time
from collections.abc import Iterable

from qkvsearch.errors import QkvError
from qkvsearch.storage.records.database import RecordsDatabase
from qkvsearch.storage.records.record_rows import RECORD, Record, Recorded, delete, insert, totals


def append(
    database: RecordsDatabase, rows: Iterable[Recorded], after: int | None = None, learned: int = 0
) -> list[Record]:
    """Interactions, all of them on disk when this returns, or none. Raises `WorkspaceError`.

    The time of one without any is now, or just after the time `after` where that is in the future,
    and not before the last record's, since a clock may be set back.
    All of them are undone together. learned: the number of the last record that a build's log
    contains; theirs are greater, even where all records before were lost.
    """
    moment = max(int(time.time()), -1 if after is None else after + 1)
    last = "SELECT time FROM recorded ORDER BY number DESC LIMIT 1"
    with database.writing("record") as db:
        moment = max([moment, *(before for (before,) in db.execute(last))])
        batch = max(totals(db).last, learned) + 1
        records = [
            Record(
                number, _text(row.user), row.item, _number(row.rating), _number(row.weight),
                moment if row.time is None else int(row.time), batch,
            )
            for number, row in enumerate(rows, batch)
        ]  # fmt: skip
        insert(db, records)
    return records


def undo(database: RecordsDatabase, learned: int = 0) -> list[Record]:
    """Take back what was recorded together last; it comes back, nothing where nothing is left.

    learned: the number of the last record that the log of the current build contains. Raises
    `QkvError` where it is too late for that, `WorkspaceError` where nothing can be written.
    """
    last = f"SELECT {RECORD} FROM recorded WHERE batch = (SELECT batch FROM recorded "
    last += "ORDER BY number DESC LIMIT 1) ORDER BY number"
    with database.writing("undo") as db:
        records = [Record(*row) for row in db.execute(last)]
        if records and records[0].number <= learned:
            raise QkvError(
                f"{database.path.parent}: the build has learned from what was recorded last, which "
                "is in its log now; rollback returns to the build before, and then it can be undone"
            )
        delete(db, records)
    return records


def forget(database: RecordsDatabase, user: str, *, fold: bool) -> int:
    """Delete the records of a user, by the id's text, and every trace of them in the file; how many
    there were comes back. fold: in every spelling that differs in case alone. Raises
    `WorkspaceError`.
    """
    with database.writing("forget", vacuum=True) as db:
        found = db.execute(f"SELECT {RECORD} FROM recorded WHERE {is_user(fold)}", (user,))
        records = [Record(*row) for row in found]
        delete(db, records)
    return len(records)


def is_user(fold: bool) -> str:
    """The SQL for a user's records by the text of the id, which uses the index."""
    return "user_key = casefold(?1)" + ("" if fold else " AND user = ?1")


def _text(user: str) -> str:
    try:
        user.encode()
    except UnicodeEncodeError:
        raise QkvError(f"a user's id is text in UTF-8, not {user!r}") from None
    return user


def _number(value: float | None) -> float | None:
    # SQLite keeps −0 as 0, and the checksum would be another.
    return None if value is None else float(value) + 0.0
