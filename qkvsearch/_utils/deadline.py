"""A deadline for the work of one thread: a server's answer that nobody waits for any more stops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic

from qkvsearch.errors import QkvError

_deadline: ContextVar[float] = ContextVar("deadline", default=inf)


class DeadlineError(QkvError):
    """An answer takes longer than it may."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Let the work of the block take this long, and no longer than a deadline around it allows."""
    token = _deadline.set(min(monotonic() + seconds, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def check_deadline() -> None:
    """Raise `DeadlineError` after the deadline. Called between the steps of long work.

    >>> with deadline(60):
    ...     check_deadline()
    """
    if monotonic() > _deadline.get():
        raise DeadlineError("the answer takes too long: ask for less at once")
