"""Requests that are carried out once, by their Idempotency-Key, for all worker processes."""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkvsearch.errors import QkvError
from qkvsearch.web.problems import Problem

FILE = "idempotency.db"
# The file goes with the server, so that it need not survive a power failure.
BEGIN = """
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS requests (
  key TEXT PRIMARY KEY, request TEXT NOT NULL, batch INTEGER
) WITHOUT ROWID;
"""
ANOTHER = "`Idempotency-Key`: it came with another request before; a new request needs a new key"
RUNNING = (
    "`Idempotency-Key`: the request that came with it first has not ended; try again, and if this "
    "stays, it was broken off: look whether it was recorded before it is sent with another key"
)
GONE = (
    "`Idempotency-Key`: this was recorded before, and was undone, or its user or an item has left "
    "the workspace since; nothing was recorded now"
)


@dataclass(frozen=True)
class IdempotencyKeys:
    """The keys in `folder`, as hashes: neither a key nor a request can be read from the file. wait:
    how many seconds for another process that writes there.
    """

    folder: Path
    wait: float = 10.0

    def run_once(
        self,
        key: str | None,
        request: Any,
        do: Callable[[], dict[str, Any]],
        repeat: Callable[[int], dict[str, Any]],
    ) -> dict[str, Any]:
        """Return `do()`, or `repeat(its "batch")` where the same request with this key was done
        before.

        The key is claimed first, so that of several at once one does it; where that raises, the key
        is free again. Raises `Problem`, also where `repeat` raises `QkvError`.

        >>> import tempfile
        >>> keys = IdempotencyKeys(Path(tempfile.mkdtemp()))
        >>> answers = lambda: {"batch": 7}, lambda batch: {"again": batch}
        >>> [keys.run_once("k", {"n": 1}, *answers) for _ in range(2)]
        [{'batch': 7}, {'again': 7}]
        """
        if key is None:
            return do()
        # Whoever guesses a request cannot look for it: its hash needs the key, which is not stored.
        content = json.dumps([key, request], sort_keys=True)
        hashed, fingerprint = _hash(key), _hash(content)
        if batch := self._claim(hashed, fingerprint):
            try:
                return repeat(batch)
            except QkvError:
                raise Problem(409, GONE) from None
        try:
            result = do()
        except BaseException:
            with self._transaction() as db:
                db.execute("DELETE FROM requests WHERE key = ?", (hashed,))
            raise
        with self._transaction() as db:
            db.execute("UPDATE requests SET batch = ? WHERE key = ?", (result["batch"], hashed))
        return result

    def _claim(self, key: str, request: str) -> int | None:
        """Claim a new key, or return the batch of a used one. Raises `Problem` otherwise."""
        with self._transaction() as db:
            insert = "INSERT OR IGNORE INTO requests VALUES (?, ?, NULL)"
            if db.execute(insert, (key, request)).rowcount:
                return None
            select = "SELECT request, batch FROM requests WHERE key = ?"
            before, batch = db.execute(select, (key,)).fetchone()
        if before != request:
            raise Problem(422, ANOTHER)
        if batch is None:
            raise Problem(409, RUNNING, {"Retry-After": "1"})
        return int(batch)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody comes between."""
        path = self.folder / FILE
        with closing(sqlite3.connect(path, timeout=self.wait, isolation_level=None)) as db:
            db.executescript(BEGIN)
            db.execute("BEGIN IMMEDIATE")
            with db:
                yield db


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
