"""Interactions recorded since a build: they stay in the database whatever is built next."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from qkvsearch.collaborative.history import Interaction
from qkvsearch.data.ids import id_text
from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace.arrays import read_array
from qkvsearch.workspace.schema import (
    CURRENT_BUILD,
    HAS_TABLE,
    RECORDED,
    RECORDED_LATER,
    are_whole,
    folds_ids,
    read_rows,
    table_columns,
)

TIMES = "interactions.times"
# The SQL function that makes texts equal that differ in case alone.
CASEFOLD = "qkv_casefold"


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

    def of(self, user: Any) -> list[Interaction]:
        """What was recorded of a user, oldest first."""
        rows = self._select(f"WHERE {self._is_user}", self._key(user))
        return [Interaction(*row) for _, *row in rows]

    def by_user(self) -> dict[str, list[Interaction]]:
        """`of` for every user with records, in the order of their first; each by the id of the
        build, or as it was recorded first.
        """
        names: dict[str, str] = {}
        found: dict[str, list[Interaction]] = {}
        for name, *row in self._select():
            spelled = names.setdefault(self._key(name), name)
            found.setdefault(spelled, []).append(Interaction(*row))
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
        sql = f"SELECT 1 FROM recorded WHERE {self._is_user} LIMIT 1"
        return self.exist and bool(read_rows(self.db, sql, self._key(user)))

    def user_text(self, user: Any) -> str:
        """A user's id as it was recorded first, otherwise as it is given."""
        sql = f"SELECT user FROM recorded WHERE {self._is_user} ORDER BY number LIMIT 1"
        rows = read_rows(self.db, sql, self._key(user)) if self.exist else []
        return str(rows[0][0]) if rows else self._text(user)

    def _text(self, user: Any) -> str:
        return id_text(user, whole=are_whole(self.db, "users", self.build))

    def _key(self, user: Any) -> str:
        """What is equal for all spellings of one user."""
        text = self._text(user)
        return text.casefold() if self._folds else text

    @property
    def _is_user(self) -> str:
        return f"{CASEFOLD}(user) = ?" if self._folds else "user = ?"

    @cached_property
    def _folds(self) -> bool:
        found = folds_ids(self.db, self.build)
        if found:
            self.db.create_function(CASEFOLD, 1, str.casefold, deterministic=True)
        return found

    def users_of(self, position: int) -> list[str]:
        """Of whom anything was recorded with the item in this row."""
        rows = self._select("WHERE position = ?", position)
        return list(dict.fromkeys(row[0] for row in rows))

    def strays(self, user: Any) -> list[str]:
        """Ids of the items recorded of a user that are not in the catalog."""
        if not self.exist:
            return []
        known = f"SELECT CAST(id AS TEXT) FROM items_{self.build}"
        item = "item"
        if self._folds:
            known = f"SELECT key FROM folded_{self.build} WHERE kind = 'items'"
            item = f"{CASEFOLD}(item)"
        sql = (
            f"SELECT DISTINCT item FROM recorded WHERE {self._is_user} AND {item} NOT IN ({known})"
        )
        return [item for (item,) in read_rows(self.db, sql, self._key(user))]

    @property
    def exist(self) -> bool:
        """False in a workspace that was built before anything could be recorded."""
        return bool(read_rows(self.db, HAS_TABLE, "recorded"))

    def _select(self, where: str = "", *values: Any) -> list[tuple[Any, ...]]:
        if not self.exist:
            return []
        weight = "weight" if "weight" in table_columns(self.db, "recorded") else "NULL"
        user, position, of_build = self._joined()
        return read_rows(
            self.db,
            f"SELECT user, position, rating, time, weight FROM (SELECT {user} AS user, {position} "
            f"AS position, rating, time, {weight} AS weight, number FROM recorded JOIN {of_build}) "
            f"{where} ORDER BY time, number",
            *values,
        )

    def _joined(self) -> tuple[str, str, str]:
        """SQL for the user as the build spells the id, the item's row number, and what the records
        are joined with.
        """
        items, users, folded = (f"{name}_{self.build}" for name in ("items", "users", "folded"))
        if not self._folds:
            # SQLite would find the item 7 by the text 007.
            return "user", "_position", f"{items} ON id = item AND CAST(id AS TEXT) = item"
        joined = (
            f"{folded} of_item ON of_item.kind = 'items' AND of_item.key = {CASEFOLD}(item) "
            f"LEFT JOIN {folded} of_user ON of_user.kind = 'users' "
            f"AND of_user.key = {CASEFOLD}(user) "
            f"LEFT JOIN {users} ON _position = of_user.position"
        )
        return "coalesce(CAST(id AS TEXT), user)", "of_item.position", joined


def append(database: Path, rows: Iterable[Recorded]) -> None:
    """Interactions, all of them on disk when this returns, or none. Raises `WorkspaceError`.

    The time of one without any is now, or after the last of the build's log where that is in the
    future. All of them are undone together.
    """
    with _writing(database, "record") as db:
        moment = max([int(time.time()), *(last + 1 for last in _last_times(db, database.parent))])
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
            for name, sql_type in RECORDED_LATER.items():
                if name not in table_columns(db, "recorded"):
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
