"""A deadline for the work of a thread, so that a server stops working on abandoned requests."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic

from qkvsearch.errors import QkvError


class Deadline:
    """A moment, in seconds of the monotonic clock. Every thread may move it to now."""

    def __init__(self, end: float) -> None:
        self.end = end

    def pass_now(self) -> None:
        """End the work at its next step."""
        self.end = -inf


_deadline: ContextVar[Deadline] = ContextVar("deadline", default=Deadline(inf))  # noqa: B039


class DeadlineError(QkvError):
    """The answer was not ready before the deadline."""


@contextmanager
def deadline(seconds: float) -> Iterator[Deadline]:
    """Set a deadline for the block; an enclosing deadline that is earlier stays in force."""
    own = Deadline(min(monotonic() + seconds, _deadline.get().end))
    token = _deadline.set(own)
    try:
        yield own
    finally:
        _deadline.reset(token)


def is_past_deadline() -> bool:
    """Return whether the deadline is over."""
    return monotonic() > _deadline.get().end


def check_deadline() -> None:
    """Raise `DeadlineError` after the deadline. Call this between the steps of long work.

    >>> with deadline(60):
    ...     check_deadline()
    """
    if is_past_deadline():
        raise DeadlineError("the answer takes too long: ask for less at once")
