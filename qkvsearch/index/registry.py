"""Every part that a build can have.

A new one is named in `FROM_INTERACTIONS` where it is learned from them, otherwise in `parts_of`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qkvsearch._utils.progress import Progress
from qkvsearch.index.codes import CodesComponent
from qkvsearch.index.component import BuildReader, IndexComponent, LearnedComponent
from qkvsearch.index.dense import DenseComponent
from qkvsearch.index.lexical import LexicalComponent
from qkvsearch.index.log import LogComponent
from qkvsearch.index.next_item import NextItemComponent
from qkvsearch.index.preferences import PreferencesComponent
from qkvsearch.index.ratings import RatingsComponent
from qkvsearch.index.tokens import TokensComponent
from qkvsearch.index.words import WordsComponent

# Learned in this order: the log says what scale the ratings have.
FROM_INTERACTIONS: tuple[LearnedComponent[Any], ...] = (
    LogComponent(),
    PreferencesComponent(),
    RatingsComponent(),
)


def parts_of(build: BuildReader) -> list[IndexComponent[Any]]:
    """Every part that a build can have, in the order in which it stores them."""
    heads = map(DenseComponent, list(build.head_weights)[1:])
    return [
        LexicalComponent(),
        CodesComponent(),
        WordsComponent(),
        *heads,
        TokensComponent(build.main_head),
        *FROM_INTERACTIONS,
        NextItemComponent(),
    ]


def each_part(build: BuildReader, stage: str, progress: Progress) -> Iterator[IndexComponent[Any]]:
    """The parts that a build has, one after the other; progress: told how many are done."""
    parts = [part for part in parts_of(build) if part.is_in(build.snapshot)]
    for done, part in enumerate(parts):
        progress(stage, done, len(parts))
        yield part
    progress(stage, len(parts), len(parts))
