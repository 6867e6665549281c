"""All heads of a recommendation, as they are stored and shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qkvsearch.heads.collaborative_head import CollaborativeHead
from qkvsearch.heads.neighbours_head import NeighboursHead
from qkvsearch.heads.preference_head import PreferenceHead

# By name, those of `HEADS` in `models.recommend_heads`.
PREFERENCE_HEADS: Mapping[str, PreferenceHead[Any]] = {
    head.name: head for head in (CollaborativeHead(), NeighboursHead())
}
