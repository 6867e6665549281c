"""Changes of the records: append, undo, and forget a user."""

from __future__ import annotations

import time
from collections.abc import Iterable

from qkvsearch.errors import QkvError
from qkvsearch.storage.records.database import RecordsDatabase
from qkvsearch.storage.records.record_rows import RECORD, Record, Recorded, delete, insert, totals


def append(
    database: RecordsDatabase, rows: Iterable[Recorded], after: int | None = None, learned: int = 0
) -> list[Record]:
    """Write interactions, all or none, to the disk, and return their records. One `undo` deletes
    them together. Raises `WorkspaceError`.

    An interaction without a time gets the present time, or a later one if the clock was set back:
    after the time `after`, and not before the last record. learned: number of the last record that
    a build learned from. New numbers are greater, even if earlier records were lost.
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
    """Delete the records of the last `append`, and return them; none where there are none.

    learned: the number of the last record that the current build learned from. Raises `QkvError`
    where these records are among them, `WorkspaceError` where nothing can be written.
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
    """Delete the records of a user by the text of the id, and every trace of them in the file.
    Return how many there were. fold: ids that differ only in case are the same. Raises
    `WorkspaceError`.
    """
    with database.writing("forget", vacuum=True) as db:
        rows = db.execute(f"SELECT {RECORD} FROM recorded WHERE {is_user(fold)}", (user,))
        records = [Record(*row) for row in rows]
        delete(db, records)
    return len(records)


def is_user(fold: bool) -> str:
    """Return the SQL condition for a user's records by the text of the id; it uses the index."""
    return "user_key = casefold(?1)" + ("" if fold else " AND user = ?1")


def _text(user: str) -> str:
    try:
        user.encode()
    except UnicodeEncodeError:
        raise QkvError(f"a user's id is text in UTF-8, not {user!r}") from None
    return user


def _number(value: float | None) -> float | None:
    # SQLite stores −0 as 0, and the checksum would differ.
    return None if value is None else float(value) + 0.0
