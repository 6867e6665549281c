"""The stored parts of a build: what the builder stores, the engine loads and an update revises.

A new model is a file here with a class, and a line in `parts_of`.
"""

from typing import Any

from qkvsearch.stored.dense import DensePart
from qkvsearch.stored.lexical import LexicalPart
from qkvsearch.stored.log import LogPart
from qkvsearch.stored.models import StoredModels
from qkvsearch.stored.next_item import NextItemPart
from qkvsearch.stored.part import BuildReader, Change, Part
from qkvsearch.stored.preferences import TUNED, PreferencesPart
from qkvsearch.stored.ratings import RatingsPart
from qkvsearch.stored.tokens import TokensPart

__all__ = [
    "TUNED", "BuildReader", "Change", "DensePart", "LexicalPart", "LogPart", "NextItemPart",
    "Part", "PreferencesPart", "RatingsPart", "StoredModels", "TokensPart", "parts_of",
]  # fmt: skip


def parts_of(build: BuildReader) -> list[Part[Any]]:
    """Every part that a build can have, in the order in which it stores them."""
    return [
        LexicalPart(),
        *map(DensePart, list(build.head_weights)[1:]),
        TokensPart(build.main_head),
        PreferencesPart(),
        RatingsPart(),
        NextItemPart(),
        LogPart(),
    ]
