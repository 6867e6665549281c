"""Interactions recorded since a build: they stay in the database whatever is built next."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from qkvsearch.errors import WorkspaceError

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
    """One more interaction, on disk when this returns. Raises `WorkspaceError`."""
    try:
        db = sqlite3.connect(database, timeout=60)
        try:
            with db:
                db.execute(SCHEMA)
                db.execute(
                    "INSERT INTO recorded (user, item, rating, time) VALUES (?, ?, ?, ?)",
                    (user, item, rating, int(time.time())),
                )
        finally:
            db.close()
    except sqlite3.Error as error:
        raise WorkspaceError(f"{database}: cannot record: {error}") from None
