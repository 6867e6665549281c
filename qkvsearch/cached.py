"""A property that is computed once: that of `functools`, without its lock before Python 3.12.

That lock is one for all instances of a class, and is held while the value is computed. So threads
that answer queries, each with objects of its own, would wait for one another.
"""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if not TYPE_CHECKING and sys.version_info < (3, 12):

    class cached_property(cached_property):
        """Threads that ask one instance at the same time may each compute the value."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value
