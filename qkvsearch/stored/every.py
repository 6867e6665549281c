"""Every part that a build can have.

A new one is named in `FROM_INTERACTIONS` where it is learned from them, otherwise in `parts_of`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qkvsearch.progress import Progress
from qkvsearch.stored.codes import CodesPart
from qkvsearch.stored.dense import DensePart
from qkvsearch.stored.lexical import LexicalPart
from qkvsearch.stored.log import LogPart
from qkvsearch.stored.next_item import NextItemPart
from qkvsearch.stored.part import BuildReader, LearnedPart, StoredPart
from qkvsearch.stored.preferences import PreferencesPart
from qkvsearch.stored.ratings import RatingsPart
from qkvsearch.stored.tokens import TokensPart
from qkvsearch.stored.words import WordsPart

# Learned in this order: the log says what scale the ratings have.
FROM_INTERACTIONS: tuple[LearnedPart[Any], ...] = (LogPart(), PreferencesPart(), RatingsPart())


def parts_of(build: BuildReader) -> list[StoredPart[Any]]:
    """Every part that a build can have, in the order in which it stores them."""
    heads = map(DensePart, list(build.head_weights)[1:])
    return [
        LexicalPart(), CodesPart(), WordsPart(), *heads, TokensPart(build.main_head),
        *FROM_INTERACTIONS, NextItemPart(),
    ]  # fmt: skip


def each_part(build: BuildReader, stage: str, progress: Progress) -> Iterator[StoredPart[Any]]:
    """The parts that a build has, one after the other; progress: told how many are done."""
    parts = [part for part in parts_of(build) if part.is_in(build.snapshot)]
    for done, part in enumerate(parts):
        progress(stage, done, len(parts))
        yield part
    progress(stage, len(parts), len(parts))
