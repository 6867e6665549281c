"""What a build's arrays and facts are by name, and which dense head stands for meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

# What becomes of every array when items join or leave, by its whole name or what follows the dot:
# "text rows", one an item, made of its texts; "item rows", one an item, zeros for one that nobody
# met; "text spans", where in the same head's "span rows" each item's begin, and the last one's end;
# "fixed", the same whatever the items are; "remade", by a function of its own in `revision`.
Kind = Literal["text rows", "item rows", "text spans", "span rows", "fixed", "remade"]
ARRAY_KINDS: dict[str, Kind] = {
    "lexical.terms": "remade",
    "lexical.indptr": "remade",
    "lexical.indices": "remade",
    "lexical.weights": "remade",
    "lexical.counts": "remade",
    "keys": "text rows",
    "cut": "text rows",
    "probes": "fixed",
    "token_indptr": "text spans",
    "token_rows": "span rows",
    "token_vectors": "span rows",
    "terms": "fixed",
    "vectors": "fixed",
    "weights": "fixed",
    "interactions.indptr": "remade",
    "interactions.items": "remade",
    "interactions.ratings": "remade",
    "interactions.times": "remade",
    "item_embeddings": "item rows",
    "item_directions": "item rows",
    "item_biases": "item rows",
    "item_counts": "item rows",
    "text_map": "fixed",
    "gram": "remade",
    "positions": "fixed",
    "encoder": "fixed",
}

# The fact that says with which settings tastes were learned, and how those were found; there is
# none where they are the default ones.
TUNED = "tuned"


def array_kind(name: str) -> Kind:
    """Raises `LookupError` for an array that `ARRAY_KINDS` does not name."""
    return ARRAY_KINDS.get(name) or ARRAY_KINDS[name.partition(".")[2]]


def main_head(facts: Mapping[str, Any]) -> str:
    """The dense head that stands for meaning where there is room for one."""
    return "lsa" if facts["encoder"] == "corpus" else list(facts["head_weights"])[-1]
