"""Interactions recorded since a build: they stay in the database whatever is built next."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from qkvsearch.data.ids import id_text
from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace.arrays import read_array
from qkvsearch.workspace.schema import CURRENT_BUILD, HAS_TABLE, RECORDED, RECORDED_LATER, read_rows

TIMES = "interactions.times"
# An item's row number, the rating, and when (Unix seconds).
Record = tuple[int, float | None, int]


class Recorded(NamedTuple):
    """An interaction by the owner's ids. Without a time it is of the moment it is written."""

    user: str
    item: str
    rating: float | None = None
    weight: float | None = None
    time: int | None = None


@dataclass(frozen=True)
class Records:
    """What was recorded, as far as the items are in the catalog of a build."""

    db: sqlite3.Connection
    build: int

    def of(self, user: Any) -> list[Record]:
        """What was recorded of a user, oldest first."""
        return [row[1:] for row in self._select("WHERE user = ?", id_text(user))]

    def by_user(self) -> dict[str, list[Record]]:
        """`of` for every user with records, in the order of their first."""
        found: dict[str, list[Record]] = {}
        for row in self._select():
            found.setdefault(row[0], []).append(row[1:])
        return found

    def count(self) -> int:
        """How many there are, including those of items that are not in the catalog."""
        return int(read_rows(self.db, "SELECT count(*) FROM recorded")[0][0]) if self.exist else 0

    @property
    def state(self) -> str:
        """Another text after every change: no number is given twice, to undo lowers the count."""
        sql = "SELECT count(*), coalesce(max(number), 0) FROM recorded"
        return "-".join(map(str, read_rows(self.db, sql)[0])) if self.exist else "0-0"

    def has(self, user: Any) -> bool:
        """Whether anything was recorded of a user, even of items that are not in the catalog."""
        sql = "SELECT 1 FROM recorded WHERE user = ? LIMIT 1"
        return self.exist and bool(read_rows(self.db, sql, id_text(user)))

    def users_of(self, position: int) -> list[str]:
        """Of whom anything was recorded with the item in this row."""
        rows = self._select("WHERE _position = ?", position)
        return list(dict.fromkeys(row[0] for row in rows))

    def strays(self, user: Any) -> list[str]:
        """Ids of the items recorded of a user that are not in the catalog."""
        if not self.exist:
            return []
        sql = (
            "SELECT DISTINCT item FROM recorded WHERE user = ? AND item NOT IN "
            f"(SELECT CAST(id AS TEXT) FROM items_{self.build})"
        )
        return [item for (item,) in read_rows(self.db, sql, id_text(user))]

    @property
    def exist(self) -> bool:
        """False in a workspace that was built before anything could be recorded."""
        return bool(read_rows(self.db, HAS_TABLE, "recorded"))

    def _select(self, where: str = "", *values: Any) -> list[tuple[Any, ...]]:
        if not self.exist:
            return []
        return read_rows(
            self.db,
            f"SELECT user, _position, rating, time FROM recorded JOIN items_{self.build} "
            f"ON id = item {where} ORDER BY time, number",
            *values,
        )


def append(database: Path, rows: Iterable[Recorded]) -> None:
    """Interactions, all of them on disk when this returns, or none. Raises `WorkspaceError`.

    The time of one without any is now, or the last time of the build's log where that is in the
    future. All of them are undone together.
    """
    with _writing(database, "record") as db:
        moment = max([int(time.time()), *_last_times(db, database.parent)])
        (last,) = db.execute("SELECT coalesce(max(number), 0) FROM recorded").fetchone()
        db.executemany(
            "INSERT INTO recorded (user, item, rating, weight, time, batch) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            [(*row[:4], moment if row.time is None else row.time, last + 1) for row in rows],
        )


def undo(database: Path) -> list[Recorded]:
    """Take back what was recorded together last; it comes back, nothing where nothing is left.

    Of what an older version recorded, the last interaction. Raises `WorkspaceError`.
    """
    with _writing(database, "undo") as db:
        last = "SELECT number, batch FROM recorded ORDER BY number DESC LIMIT 1"
        found = db.execute(last).fetchone() or (None, None)
        together = "FROM recorded WHERE number = ? OR batch = ?"
        sql = f"SELECT user, item, rating, weight, time {together} ORDER BY number"
        rows = [Recorded(*row) for row in db.execute(sql, found)]
        db.execute(f"DELETE {together}", found)
    return rows


@contextmanager
def _writing(database: Path, what: str) -> Iterator[sqlite3.Connection]:
    """A transaction on the table of records, which is there with all its columns."""
    try:
        with closing(sqlite3.connect(database, timeout=60, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute(RECORDED)
            there = {name for _, name, *_ in db.execute("PRAGMA table_info(recorded)")}
            for name, sql_type in RECORDED_LATER.items():
                if name not in there:
                    db.execute(f"ALTER TABLE recorded ADD COLUMN {name} {sql_type}")
            yield db
            db.execute("COMMIT")
    except sqlite3.Error as error:
        raise WorkspaceError(f"{database}: cannot {what}: {error}") from None


def _last_times(db: sqlite3.Connection, workspace: Path) -> list[int]:
    """The last time in the log of the current build; none where its log has no times."""
    builds = db.execute(CURRENT_BUILD).fetchall()
    return [time for _, name, _ in builds for time in _last_of(workspace / "builds" / name)]


@lru_cache(maxsize=8)
def _last_of(build: Path) -> list[int]:
    """Cached: a build never changes, and a log may be long."""
    if not (build / f"{TIMES}.npy").is_file():
        return []
    times = read_array(build, TIMES)
    return [int(times.max())] if len(times) else []
