"""The lists of GraphQL answers: `{"edges": [{"node": {…}}]}` is the list of its nodes."""

from __future__ import annotations

import re
from typing import Any

from qkvsearch.tables.files.repeated_keys import RepeatedKey

EDGES, NODE = "edges", "node"
# What an edge has beside its node, and an object beside its edges, that tells nothing of an item.
OF_EDGES = frozenset(("cursor", "__typename"))
BESIDE_EDGES = frozenset(("pageInfo", "totalCount", "nodes", "__typename"))
HAS_MORE = re.compile(r'"hasNextPage"\s*:\s*true')


def may_have_edges(text: str) -> bool:
    """Return whether a text of JSON may have lists of GraphQL."""
    return f'"{EDGES}"' in text or f'"{NODE}"' in text


def without_edges(value: Any) -> Any:
    """Return a JSON value with a list of nodes in the place of each object with edges.

    >>> without_edges({"items": {"edges": [{"cursor": "x", "node": {"id": 7}}]}})
    {'items': [{'id': 7}]}
    """
    if isinstance(value, list):
        if _are_edges(value):
            value = [_node(edge) for edge in value if edge[NODE] is not None]
        return [without_edges(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    edges = value.get(EDGES)
    if isinstance(edges, list) and not isinstance(value, RepeatedKey):
        is_empty = not edges and BESIDE_EDGES.issuperset(value.keys() - {EDGES})
        if is_empty or _are_edges(edges):
            return without_edges(edges)
    return _like(value, {key: without_edges(entry) for key, entry in value.items()})


def _are_edges(entries: list[Any]) -> bool:
    """Return whether all entries of a list are edges. A node may be null."""
    return bool(entries) and all(
        isinstance(entry, dict) and isinstance(entry.get(NODE, 0), dict | None) for entry in entries
    )


def _node(edge: dict[str, Any]) -> dict[str, Any]:
    """Return the node of an edge, with what else the edge says of it."""
    node: dict[str, Any] = edge[NODE]
    others = {key: value for key, value in edge.items() if key != NODE and key not in OF_EDGES}
    return _like(node, {**others, **node})


def _like(value: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields, marked where a key of the value occurs twice."""
    return RepeatedKey(fields, value.key) if isinstance(value, RepeatedKey) else fields
