"""Interactions recorded since a build: they stay in the database whatever is built next."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from qkvsearch.data.ids import id_text
from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace.arrays import read_array
from qkvsearch.workspace.schema import CURRENT_BUILD, HAS_TABLE, RECORDED, read_rows

TIMES = "interactions.times"
# An item's row number, the rating, and when (Unix seconds).
Record = tuple[int, float | None, int]


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

    def has(self, user: Any) -> bool:
        """Whether anything was recorded of a user, even of items that are not in the catalog."""
        sql = "SELECT 1 FROM recorded WHERE user = ? LIMIT 1"
        return self.exist and bool(read_rows(self.db, sql, id_text(user)))

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
            f"ON id = item AND CAST(id AS TEXT) = item {where} ORDER BY number",
            *values,
        )


def append(database: Path, user: str, item: str, rating: float | None) -> None:
    """One more interaction, on disk when this returns. Raises `WorkspaceError`.

    Its time is now, or the last time of the build's log where that is in the future.
    """
    try:
        db = sqlite3.connect(database, timeout=60)
        try:
            with db:
                db.execute(RECORDED)
                moment = max([int(time.time()), *_last_times(db, database.parent)])
                db.execute(
                    "INSERT INTO recorded (user, item, rating, time) VALUES (?, ?, ?, ?)",
                    (user, item, rating, moment),
                )
        finally:
            db.close()
    except sqlite3.Error as error:
        raise WorkspaceError(f"{database}: cannot record: {error}") from None


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
