"""Requests that are carried out once, by their Idempotency-Key, for all worker processes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from qkvsearch.errors import QkvError
from qkvsearch.web.problems import Problem

T = TypeVar("T")
FILE = "idempotency.db"
# The file goes with the server, so that it need not survive a power failure.
BEGIN = """
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS requests (
  key TEXT PRIMARY KEY, request TEXT NOT NULL, is_done INTEGER NOT NULL
) WITHOUT ROWID;
"""
ANOTHER = "`Idempotency-Key`: it came with another request before; a new request needs a new key"
RUNNING = (
    "`Idempotency-Key`: the request that came with it first has not ended; try again, and if this "
    "stays, it was broken off: look whether it was recorded before it is sent with another key"
)
GONE = (
    "`Idempotency-Key`: this was recorded before, and its user or an item has left the workspace "
    "since; nothing was recorded now"
)


@dataclass(frozen=True)
class IdempotencyKeys:
    """The keys in `folder`, as hashes: neither a key nor a request can be read from the file. wait:
    how many seconds for another process that writes there.
    """

    folder: Path
    wait: float = 10.0

    def run_once(
        self, key: str | None, request: Any, do: Callable[[], T], repeat: Callable[[], T]
    ) -> T:
        """Return `do()`, or `repeat()` where the same request with this key was done before.

        The key is claimed first, so that of several at once one does it; where that raises, the key
        is free again. Raises `Problem`, also where `repeat` raises `QkvError`.

        >>> import tempfile
        >>> keys = IdempotencyKeys(Path(tempfile.mkdtemp()))
        >>> [keys.run_once("k", {"n": 1}, lambda: "recorded", lambda: "again") for _ in range(2)]
        ['recorded', 'again']
        """
        if key is None:
            return do()
        # Whoever guesses a request cannot look for it: its hash needs the key, which is not stored.
        content = json.dumps([key, request], sort_keys=True)
        hashed, fingerprint = _hash(key), _hash(content)
        if not self._claim(hashed, fingerprint):
            try:
                return repeat()
            except QkvError:
                raise Problem(409, GONE) from None
        try:
            result = do()
        except BaseException:
            with self._transaction() as db:
                db.execute("DELETE FROM requests WHERE key = ?", (hashed,))
            raise
        with self._transaction() as db:
            db.execute("UPDATE requests SET is_done = 1 WHERE key = ?", (hashed,))
        return result

    def _claim(self, key: str, request: str) -> bool:
        """Whether the key is new; it is taken now. Raises `Problem` where it is of another request,
        or of one that has not ended.
        """
        with self._transaction() as db:
            insert = "INSERT OR IGNORE INTO requests VALUES (?, ?, 0)"
            if db.execute(insert, (key, request)).rowcount:
                return True
            select = "SELECT request, is_done FROM requests WHERE key = ?"
            before, is_done = db.execute(select, (key,)).fetchone()
        if before != request:
            raise Problem(422, ANOTHER)
        if not is_done:
            raise Problem(409, RUNNING, {"Retry-After": "1"})
        return False

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody comes between."""
        path = self.folder / FILE
        with closing(sqlite3.connect(path, self.wait, isolation_level=None)) as db:
            db.executescript(BEGIN)
            db.execute("BEGIN IMMEDIATE")
            with db:
                yield db


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
