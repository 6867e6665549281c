"""Answers to the last few questions, which a build, that never changes, gives again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """The answers to the `most` questions that were asked last; several threads may ask.

    >>> kept = Kept(most=1)
    >>> kept.of("a", lambda: 1), kept.of("a", lambda: 2), kept.of("b", lambda: 3)
    (1, 1, 3)
    >>> kept.of("a", lambda: 4)
    4
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._found: OrderedDict[Hashable, T] = OrderedDict()

    def clear(self) -> None:
        """Keep none of them."""
        with self._lock:
            self._found.clear()

    def of(self, question: Hashable, answer: Callable[[], T]) -> T:
        """What `answer` gives, or gave before. Nothing is kept where it raises."""
        with self._lock:
            if question in self._found:
                self._found.move_to_end(question)
                return self._found[question]
        found = answer()  # not in the lock: others need not wait for it
        with self._lock:
            self._found[question] = found
            while len(self._found) > self._most:
                self._found.popitem(last=False)
        return found
