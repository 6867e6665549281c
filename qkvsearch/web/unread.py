"""Answers that clients have not read yet: at most so many bytes in a process.

A client may ask for a large answer and read nothing of it. The limits of `slow_clients` end such a
connection after seconds; this limit holds meanwhile, however many connections there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Protocol

from qkvsearch.web.problems import RETRY_AFTER, Problem

# Bytes of all answers of a process that are not read yet.
MAX_UNREAD = 64_000_000
# Bytes of an answer that counts. Smaller ones, such as errors, are always sent.
MIN_COUNTED = 16_384
# Where the limit is reached, clients that have read nothing for so many seconds are dropped, the
# idlest first. One that reads 50 kB a second seems idle for up to 5 seconds (`slow_clients`).
PATIENCE = 5.0
BUSY = "other clients have not read their answers yet: try again in a moment"


class NoRoomError(Exception):
    """An answer has to wait until others are read."""

    def __init__(self) -> None:
        super().__init__(BUSY)
        self.problem = Problem(HTTPStatus.SERVICE_UNAVAILABLE, BUSY, {"Retry-After": RETRY_AFTER})


class UnreadConnection(Protocol):
    """A connection with bytes that its client has not read yet."""

    @property
    def n_unread(self) -> int:
        """How many bytes."""

    @property
    def idle_seconds(self) -> float:
        """Seconds since the client last read any."""

    def drop(self) -> None:
        """Close the connection at once."""


class UnreadAnswers:
    """The answers of this process that are not read yet."""

    def __init__(self) -> None:
        # Connections whose clients read slower than the server writes.
        self.readers: dict[UnreadConnection, None] = {}
        # Bytes of answers that are made and not yet handed to their connection.
        self._n_held = 0

    @property
    def n_bytes(self) -> int:
        """The bytes of all answers."""
        return self._n_held + sum(reader.n_unread for reader in self.readers)

    @contextmanager
    def holding(self) -> Iterator[HeldBytes]:
        """Count the bytes of an answer until the block ends."""
        held = HeldBytes(self)
        try:
            yield held
        finally:
            self._n_held -= held.n_bytes

    def hold(self, n_bytes: int) -> None:
        """Count bytes as held. Raises `NoRoomError` where there would be too many, even without the
        clients that have stopped reading.
        """
        if self.n_bytes + n_bytes > MAX_UNREAD:
            self._make_room(n_bytes)
        self._n_held += n_bytes

    def _make_room(self, n_bytes: int) -> None:
        """Drop those that have read nothing for the longest time. Raises `NoRoomError`."""
        idle = sorted(self.readers, key=lambda reader: reader.idle_seconds)
        while self.n_bytes + n_bytes > MAX_UNREAD:
            if not idle or idle[-1].idle_seconds < PATIENCE:
                raise NoRoomError
            idle.pop().drop()


class HeldBytes:
    """The bytes of one answer."""

    def __init__(self, answers: UnreadAnswers) -> None:
        self._answers = answers
        self.n_bytes = 0

    def add(self, n_bytes: int) -> None:
        """Count more bytes, unless they are few. Raises `NoRoomError`."""
        if n_bytes >= MIN_COUNTED:
            self._answers.hold(n_bytes)
            self.n_bytes += n_bytes


# One event loop runs in a process, and it alone uses this.
UNREAD = UnreadAnswers()
