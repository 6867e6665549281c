"""Interactions recorded since a build: they stay in the database whatever is built next."""

from __future__ import annotations

import sqlite3
import time
from functools import lru_cache
from pathlib import Path

from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace.arrays import read_array

TIMES = "interactions.times"
SCHEMA = """
CREATE TABLE IF NOT EXISTS recorded (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    user TEXT NOT NULL,
    item TEXT NOT NULL,
    rating REAL,
    time INTEGER NOT NULL
)
"""


def append(database: Path, user: str, item: str, rating: float | None) -> None:
    """One more interaction, on disk when this returns. Its time is now, or the last one of the
    build's log where that is in the future. Raises `WorkspaceError`.
    """
    try:
        db = sqlite3.connect(database, timeout=60)
        try:
            with db:
                db.execute(SCHEMA)
                moment = max([int(time.time()), *_last_times(db, database.parent)])
                db.execute(
                    "INSERT INTO recorded (user, item, rating, time) VALUES (?, ?, ?, ?)",
                    (user, item, rating, moment),
                )
        finally:
            db.close()
    except sqlite3.Error as error:
        raise WorkspaceError(f"{database}: cannot record: {error}") from None


def is_recorded(db: sqlite3.Connection, user: str) -> bool:
    """Whether anything was recorded of a user, be it of items that are gone."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'recorded'").fetchone():
        return False
    return bool(db.execute("SELECT 1 FROM recorded WHERE user = ? LIMIT 1", (user,)).fetchone())


def _last_times(db: sqlite3.Connection, workspace: Path) -> list[int]:
    """The last time of the log that the current build learned from; none without a log of times."""
    builds = db.execute("SELECT folder FROM builds WHERE is_current").fetchall()
    return [time for (name,) in builds for time in _last_of(workspace / "builds" / name)]


@lru_cache(maxsize=8)
def _last_of(build: Path) -> list[int]:
    """Kept, for a build never changes, and a log may be long."""
    if not (build / f"{TIMES}.npy").is_file():
        return []
    times = read_array(build, TIMES)
    return [int(times.max())] if len(times) else []
