"""All heads of a recommendation: the list that learning, options and evaluation read.

The command line reads it before it needs NumPy, so that a head imports its model where it learns.
"""

from __future__ import annotations

from collections.abc import Mapping

from qkvsearch.models.embeddings_head import EMBEDDINGS
from qkvsearch.models.item_neighbours_head import ITEM_NEIGHBOURS
from qkvsearch.models.recommend_head import RecommendHead

# By name. A new one is added here, and to `PREFERENCE_HEADS` in `heads.preference_heads`.
HEADS: Mapping[str, RecommendHead] = {head.name: head for head in (EMBEDDINGS, ITEM_NEIGHBOURS)}
COLLABORATIVE, NEIGHBOURS = EMBEDDINGS.name, ITEM_NEIGHBOURS.name
