"""Two halves of the made queries: settings are found on one, and judged on the other."""

from __future__ import annotations

from zlib import crc32

from qkvsearch.evaluation.made_queries.query_kind import MadeQuery
from qkvsearch.rank.loaded_build import LoadedBuild


def is_held_out(build: LoadedBuild, query: MadeQuery) -> bool:
    """Return whether a query belongs to the half that no setting is learned from.

    Of the items that it is about, the first decides: of two that are alike, it is the same one
    whichever is looked for.
    """
    items = query.answers if query.made_of is None else (query.made_of, *query.answers)
    return is_item_held_out(build, min(items))


def is_item_held_out(build: LoadedBuild, item: int) -> bool:
    """Return whether queries about the item in this row belong to that half.

    Its id decides, whatever the random state: an item that settings were learned from never judges
    them.
    """
    ids, _ = build.catalog.names([item])
    return crc32(str(ids[0]).encode()) % 2 == 1
