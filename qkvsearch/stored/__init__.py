"""The stored parts of a build: what the builder stores, the engine loads, an update revises."""

from qkvsearch.stored.dense import DensePart
from qkvsearch.stored.lexical import LexicalPart
from qkvsearch.stored.log import LogPart
from qkvsearch.stored.models import StoredModels
from qkvsearch.stored.next_item import NextItemPart
from qkvsearch.stored.part import BuildReader, Change, Part
from qkvsearch.stored.parts import parts_of
from qkvsearch.stored.preferences import TUNED, PreferencesPart
from qkvsearch.stored.ratings import RatingsPart
from qkvsearch.stored.tokens import TokensPart

__all__ = [
    "TUNED",
    "BuildReader",
    "Change",
    "DensePart",
    "LexicalPart",
    "LogPart",
    "NextItemPart",
    "Part",
    "PreferencesPart",
    "RatingsPart",
    "StoredModels",
    "TokensPart",
    "parts_of",
]
