"""Two halves of the made queries: settings are found on one, and judged on the other."""

from __future__ import annotations

from zlib import crc32

from qkvsearch.evaluation.made_queries.query_kind import MadeQuery
from qkvsearch.rank.loaded_build import LoadedBuild


def is_held_out(build: LoadedBuild, query: MadeQuery) -> bool:
    """Return whether a query belongs to the half that no setting is learned from.

    The id of the item decides, whatever the random state: an item that settings were learned from
    never judges them.
    """
    item = query.item if query.made_of is None else query.made_of
    ids, _ = build.catalog.names([item])
    return crc32(str(ids[0]).encode()) % 2 == 1
