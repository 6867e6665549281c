"""A deadline for the work of a thread, so that a server stops working on abandoned requests."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic

from qkvsearch.errors import QkvError

_deadline: ContextVar[float] = ContextVar("deadline", default=inf)


class DeadlineError(QkvError):
    """The answer was not ready before the deadline."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Set a deadline for the block; an enclosing deadline that is earlier stays in force."""
    token = _deadline.set(min(monotonic() + seconds, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def is_past_deadline() -> bool:
    """Return whether the deadline is over."""
    return monotonic() > _deadline.get()


def check_deadline() -> None:
    """Raise `DeadlineError` after the deadline. Call this between the steps of long work.

    >>> with deadline(60):
    ...     check_deadline()
    """
    if is_past_deadline():
        raise DeadlineError("the answer takes too long: ask for less at once")
