"""What is computed once: properties, and what is known of the words that queries share.

`cached_property` is that of `functools`, without its lock before Python 3.12. That lock is one for
all instances of a class, and is held while the value is computed. So threads that answer queries,
each with objects of its own, would wait for one another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["cached_property", "kept_by_word"]

Function = TypeVar("Function", bound=Callable[..., Any])
# Of longer words nothing is kept: they are no words, and would take all of the memory.
LONGEST = 64

if not TYPE_CHECKING and sys.version_info < (3, 12):

    class cached_property(cached_property):
        """Threads that ask one instance at the same time may each compute the value."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


def kept_by_word(function: Function, most: int) -> Function:
    """A function of a word, or of what has one as its `text`, and of more: it keeps its answers to
    the `most` questions asked last.

    >>> lengths = kept_by_word(lambda word: [len(word)], most=2)
    >>> lengths("sea") is lengths("sea"), lengths("a" * 65) is lengths("a" * 65)
    (True, False)
    """
    kept = lru_cache(max(1, most))(function)

    def ask(word: Any, *more: Any) -> Any:
        text = word if type(word) is str else word.text
        return kept(word, *more) if len(text) <= LONGEST else function(word, *more)

    return ask  # type: ignore[return-value]
