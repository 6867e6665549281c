"""The tables of `records.db`: a row with a checksum for each record, and their totals."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import xxhash

from qkvsearch.models.user_history import NOW
from qkvsearch.tables.times import UNKNOWN_TIME

PAGE_SIZE = 4096
# user_key, item_key: the case-folded ids, to find all spellings. Both have an index: an answer
# reads the records of a few users or items among those of millions.
SCHEMA = (
    "CREATE TABLE recorded (number INTEGER PRIMARY KEY, user TEXT NOT NULL, "
    "user_key TEXT NOT NULL, item TEXT NOT NULL, item_key TEXT NOT NULL, rating REAL, weight REAL, "
    "time INTEGER NOT NULL, batch INTEGER NOT NULL, recorded INTEGER NOT NULL, "
    "client TEXT NOT NULL, content TEXT, checksum INTEGER NOT NULL)",
    "CREATE INDEX recorded_user ON recorded (user_key)",
    "CREATE INDEX recorded_item ON recorded (item_key)",
    "CREATE TABLE totals (n INTEGER NOT NULL, sum INTEGER NOT NULL, last INTEGER NOT NULL, "
    "checksum INTEGER NOT NULL)",
)
RECORD = "number, user, item, rating, weight, time, batch, recorded, client, content"
# The columns of a record, and those that are made of them.
N_CELLS = 13
# When a record counts: at its time, or else when it was recorded.
MOMENT = f"coalesce(nullif(time, {UNKNOWN_TIME}), recorded)"
# Totals stay below this, in the range of SQLite's integers.
MODULUS = 2**63


class NewRecord(NamedTuple):
    """An interaction in the owner's ids. time: `UNKNOWN_TIME` without one, `NOW` for when it is
    written."""

    user: str
    item: str
    rating: float | None = None
    weight: float | None = None
    time: int = NOW


class Origin(NamedTuple):
    """Where a batch comes from. client: who recorded it. content: the hash of a file, or of the key
    of a request, which is not recorded a second time unless `again`. file: its name.
    """

    client: str
    content: str | None = None
    again: bool = False
    file: str = ""


class Record(NamedTuple):
    """A recorded interaction. No number is used twice. batch: the number of the first record of the
    same call. recorded: when it was written. client, content: as in `Origin`.
    """

    number: int
    user: str
    item: str
    rating: float | None
    weight: float | None
    time: int
    batch: int
    recorded: int
    client: str
    content: str | None

    def cells(self) -> tuple[Any, ...]:
        """Return the row of the table, with its checksum."""
        number, user, item, *others = self
        cells = (number, user, user.casefold(), item, item.casefold(), *others)
        return (*cells, row_checksum(cells))

    @classmethod
    def of_cells(cls, cells: Sequence[Any]) -> Record:
        """Return the record of a row of the table, as `cells` makes it."""
        number, user, _user_key, item, _item_key, *others, _checksum = cells
        return cls(number, user, item, *others)


class Totals(NamedTuple):
    """Number of rows, sum of their checksums, and the last number ever used."""

    n: int = 0
    sum: int = 0
    last: int = 0


def row_checksum(cells: Sequence[Any]) -> int:
    """Return the XXH3 of a row's other columns, as a signed 64-bit number."""
    digest = xxhash.xxh3_64_intdigest(json.dumps(cells).encode())
    return digest - 2**64 if digest >= MODULUS else digest


def is_whole(cells: Sequence[Any]) -> bool:
    """Return whether a row has the checksum in its last column."""
    *others, checksum = cells
    try:
        return row_checksum(others) == checksum
    except TypeError:  # bytes, which are never written
        return False


def is_user(fold: bool) -> str:
    """Return the SQL condition for a user's records by the text of the id; it uses the index."""
    return "user_key = casefold(?1)" + ("" if fold else " AND user = ?1")


def is_item(fold: bool) -> str:
    """Return the SQL condition for an item's records by the text of the id; it uses the index."""
    return "item_key = casefold(?1)" + ("" if fold else " AND item = ?1")


def create(db: sqlite3.Connection) -> None:
    """Create the tables, in an open transaction, if there are none yet."""
    if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        for statement in SCHEMA:
            db.execute(statement)
        row = (*Totals(), row_checksum(Totals()))
        db.execute("INSERT INTO totals VALUES (?, ?, ?, ?)", row)


def insert(db: sqlite3.Connection, records: Iterable[Record]) -> None:
    """Insert records with new numbers."""
    rows, before = [record.cells() for record in records], totals(db)
    db.executemany(f"INSERT INTO recorded VALUES ({', '.join('?' * N_CELLS)})", rows)
    last = max([before.last, *(row[0] for row in rows)])
    _write_totals(db, Totals(before.n + len(rows), _added(before.sum, rows), last))


def delete(db: sqlite3.Connection, records: Iterable[Record]) -> None:
    """Delete records; their numbers are not used again."""
    rows = [record.cells() for record in records]
    db.executemany("DELETE FROM recorded WHERE number = ?", ((row[0],) for row in rows))
    before = totals(db)
    _write_totals(db, Totals(before.n - len(rows), _added(before.sum, rows, -1), before.last))


def set_last(db: sqlite3.Connection, number: int) -> None:
    """Mark all numbers up to this one as used."""
    now = totals(db)
    _write_totals(db, now._replace(last=max(now.last, number)))


def totals(db: sqlite3.Connection) -> Totals:
    """Return the stored totals."""
    return Totals(*db.execute("SELECT n, sum, last FROM totals").fetchone())


def _added(total: int, rows: Iterable[Sequence[Any]], sign: int = 1) -> int:
    return (total + sign * sum(row[-1] for row in rows)) % MODULUS


def _write_totals(db: sqlite3.Connection, now: Totals) -> None:
    row = (*now, row_checksum(now))
    db.execute("UPDATE totals SET n = ?, sum = ?, last = ?, checksum = ?", row)


def is_empty(db: sqlite3.Connection) -> bool:
    """Return whether there are no tables yet. Raises `sqlite3.Error`, and `ValueError` for tables
    other than those of records.
    """
    statements = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_master")]
    if statements and sorted(statements, key=str) != sorted(SCHEMA):
        raise ValueError("its tables are not those of records")
    return not statements


def require_whole(db: sqlite3.Connection) -> None:
    """Compare every row with its checksum, and all rows with the totals. Raises `ValueError` or
    `sqlite3.Error`.
    """
    if is_empty(db):
        return
    ((answer, *_), *_) = db.execute("PRAGMA integrity_check(1)").fetchall()
    if answer != "ok":
        raise ValueError(" ".join(answer.split()))
    n, total, last = 0, 0, 0
    for row in db.execute("SELECT * FROM recorded ORDER BY number"):
        if not is_whole(row):
            raise ValueError(f"the checksum of record {row[0]} is not the one that was written")
        n, total, last = n + 1, (total + row[-1]) % MODULUS, row[0]
    rows = db.execute("SELECT * FROM totals").fetchall()
    if len(rows) != 1 or not is_whole(rows[0]) or rows[0][:2] != (n, total) or rows[0][2] < last:
        raise ValueError("the rows do not match their totals")
