"""What was asked to be done once: requests by their Idempotency-Key, for all worker processes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkvsearch.web.problems import Problem

FILE = "once.db"
# Erased bytes do not stay in the file: answers name users. It goes with the server, so that it
# need not survive a power failure.
BEGIN = """
PRAGMA secure_delete = ON;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS asked (
  key TEXT PRIMARY KEY, request TEXT NOT NULL, users TEXT NOT NULL, answer TEXT
) WITHOUT ROWID;
"""
ANOTHER = "`Idempotency-Key`: it came with another request before; a new request needs a new key"
RUNNING = (
    "`Idempotency-Key`: the request that came with it first has not ended; try again, and if this "
    "stays, it was broken off: look whether it was recorded before it is sent with another key"
)
ERASED = "`Idempotency-Key`: what was recorded with it was deleted since, with its user"


@dataclass(frozen=True)
class Once:
    """The keys in `folder`. wait: how many seconds for another process that writes there."""

    folder: Path
    wait: float = 10.0

    def answer(
        self, key: str | None, request: Any, users: Iterable[str], do: Callable[[], dict[str, Any]]
    ) -> Any:
        """What `do` returns, or what it returned to the same request with this key before. users:
        whom it names, so that they can be erased. The key is claimed first, so that of several at
        once one does it; where that raises, the key is free again. Raises `Problem`.

        >>> import tempfile
        >>> once = Once(Path(tempfile.mkdtemp()))
        >>> once.answer("k", {"n": 1}, [], lambda: {"done": 1})
        {'done': 1}
        >>> once.answer("k", {"n": 1}, [], lambda: {"done": 2})
        {'done': 1}
        """
        if key is None:
            return do()
        known = self._claimed(key, _fingerprint(request), json.dumps(sorted(set(users))))
        if known is not None:
            return json.loads(known)
        try:
            found = do()
        except BaseException:
            with self._writing() as db:
                db.execute("DELETE FROM asked WHERE key = ?", (key,))
            raise
        with self._writing() as db:  # unless its user was deleted meanwhile
            own = "UPDATE asked SET answer = ? WHERE key = ? AND answer IS NULL"
            db.execute(own, (json.dumps(found), key))
        return found

    def _claimed(self, key: str, request: str, users: str) -> str | None:
        """The answer that was given before; None where the key is ours now. Raises `Problem`."""
        with self._writing() as db:
            claim = "INSERT OR IGNORE INTO asked (key, request, users) VALUES (?, ?, ?)"
            if db.execute(claim, (key, request, users)).rowcount:
                return None
            asked = "SELECT request, answer FROM asked WHERE key = ?"
            before, answer = db.execute(asked, (key,)).fetchone()
        if before != request:
            raise Problem(422, ANOTHER)
        if answer is None:
            raise Problem(409, RUNNING, {"Retry-After": "1"})
        if not answer:
            raise Problem(409, ERASED)
        return str(answer)

    def erase(self, user: str) -> None:
        """What answers say of a user, whose keys stay taken: what is sent again records nothing."""
        theirs = "EXISTS (SELECT 1 FROM json_each(users) WHERE value = ?)"
        with self._writing() as db:
            db.execute(f"UPDATE asked SET answer = '', users = '[]' WHERE {theirs}", (user,))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody comes between."""
        path = self.folder / FILE
        with closing(sqlite3.connect(path, self.wait, isolation_level=None)) as db:
            db.executescript(BEGIN)
            db.execute("BEGIN IMMEDIATE")
            with db:
                yield db


def _fingerprint(request: Any) -> str:
    """Of the same content the same, however its fields are ordered."""
    text = json.dumps(request, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
