"""Every part that a build can have.

A new one is named in `FROM_INTERACTIONS` where it is learned from them, otherwise in `parts_of`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qkvsearch._utils.progress import Progress
from qkvsearch.index.codes import CodesPart
from qkvsearch.index.component import BuildReader, LearnedPart, StoredPart
from qkvsearch.index.dense import DensePart
from qkvsearch.index.lexical import LexicalPart
from qkvsearch.index.log import LogPart
from qkvsearch.index.next_item import NextItemPart
from qkvsearch.index.preferences import PreferencesPart
from qkvsearch.index.ratings import RatingsPart
from qkvsearch.index.tokens import TokensPart
from qkvsearch.index.words import WordsPart

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
