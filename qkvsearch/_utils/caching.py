"""Caching helpers: a lock-free `cached_property` and a cache of functions of a word.

Before Python 3.12, `functools.cached_property` has one lock for all instances of a class and holds
it while a value is computed: threads that answer different queries would wait for one another, and
a forked child for a thread that it does not have.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["cached_by_word", "cached_property"]

Function = TypeVar("Function", bound=Callable[..., Any])
# Longer strings are no words and are not cached, since they would fill the memory.
MAX_LENGTH = 64

if not TYPE_CHECKING and sys.version_info < (3, 12):

    class cached_property(cached_property):
        """A `functools.cached_property` whose value simultaneous threads may each compute."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


def cached_by_word(function: Function, maxsize: int) -> Function:
    """Cache the last `maxsize` results of a function of a word, or of an object with a `text`.

    >>> lengths = cached_by_word(lambda word: [len(word)], maxsize=2)
    >>> lengths("sea") is lengths("sea"), lengths("a" * 65) is lengths("a" * 65)
    (True, False)
    """
    cached = lru_cache(max(1, maxsize))(function)

    def call(word: Any, *others: Any) -> Any:
        text = word if type(word) is str else word.text
        return (cached if len(text) <= MAX_LENGTH else function)(word, *others)

    return call  # type: ignore[return-value]
