"""Two halves of the made queries: settings are found on one, and judged on the other.

Each item belongs to one half, by its id. A query belongs to a half if all items that it is about
do. So an item that settings were found on never judges them, whatever the random state: one item
that two queries share would tell of either what was learned from the other. Queries about items of
both halves belong to neither.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Protocol
from zlib import crc32

from qkvsearch.rank.loaded_build import LoadedBuild


class Half(Enum):
    """The half that settings are found on, and the one that judges them."""

    FOUND_ON = 0
    HELD_OUT = 1


class AboutItems(Protocol):
    """A query: the rows of the items that answer it, and of the one that it was made of."""

    @property
    def answers(self) -> Collection[int]: ...

    @property
    def made_of(self) -> int | None: ...


def items_of(query: AboutItems) -> list[int]:
    """Return the rows of all items that a query is about, in order."""
    made_of = [] if query.made_of is None else [query.made_of]
    return sorted({*made_of, *query.answers})


def half_of(build: LoadedBuild, query: AboutItems) -> Half | None:
    """Return the half that a query belongs to; None for neither."""
    ids, _ = build.catalog.names(items_of(query))
    halves = {half_of_text(str(id_)) for id_ in ids}
    return halves.pop() if len(halves) == 1 else None


def half_of_text(text: str) -> Half:
    """Return the half of an item with this id, or of a judged query with this text."""
    return Half(crc32(text.encode()) % 2)


def is_held_out(build: LoadedBuild, query: AboutItems) -> bool:
    """Return whether a query belongs to the half that no setting is found on."""
    return half_of(build, query) is Half.HELD_OUT
