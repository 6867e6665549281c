"""The models of a build: `write` names their arrays for the builder, `models` reads them back."""

from qkvsearch.stored.kinds import array_kind
from qkvsearch.stored.models import StoredModels
from qkvsearch.stored.write import (
    note_reading,
    store_encoder,
    store_implicit,
    store_interactions,
    store_lexical,
    store_next_item,
    store_popularity,
    store_ratings,
    store_tokens,
)

__all__ = [
    "StoredModels",
    "array_kind",
    "note_reading",
    "store_encoder",
    "store_implicit",
    "store_interactions",
    "store_lexical",
    "store_next_item",
    "store_popularity",
    "store_ratings",
    "store_tokens",
]
