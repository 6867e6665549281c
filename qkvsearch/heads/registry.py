"""All components that a build can have.

A new one is added to `FROM_INTERACTIONS` if every build with a log learns it, otherwise to
`components_of`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qkvsearch._utils.callbacks import Progress
from qkvsearch.heads.common_subjects import SubjectsComponent
from qkvsearch.heads.component import IndexComponent, LearnedComponent, main_head
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.passage_keys import PassageKeysComponent
from qkvsearch.heads.passage_tokens import PassageTokensComponent
from qkvsearch.heads.passages import PassagesComponent
from qkvsearch.heads.stored_log import LogComponent
from qkvsearch.heads.stored_next_item import NextItemComponent
from qkvsearch.heads.stored_preferences import PreferencesComponent
from qkvsearch.heads.stored_ratings import RatingsComponent
from qkvsearch.heads.tokens import TokensComponent
from qkvsearch.heads.words import CodesComponent, LexicalComponent, WordsComponent
from qkvsearch.store import Snapshot
from qkvsearch.text.encoders import dense_heads

# Learned in this order: the log says what scale the ratings have.
FROM_INTERACTIONS: tuple[LearnedComponent[Any], ...] = (
    LogComponent(),
    PreferencesComponent(),
    RatingsComponent(),
)


def components_of(snapshot: Snapshot) -> list[IndexComponent[Any]]:
    """Return all components that a build can have, in the order in which they are stored."""
    names = dense_heads(snapshot.facts["head_weights"])
    return [
        LexicalComponent(),
        CodesComponent(),
        WordsComponent(),
        PassagesComponent(),
        *map(DenseComponent, names),
        *map(PassageKeysComponent, names),
        TokensComponent(main_head(snapshot.facts)),
        PassageTokensComponent(main_head(snapshot.facts)),
        SubjectsComponent(main_head(snapshot.facts)),
        *FROM_INTERACTIONS,
        NextItemComponent(),
    ]


def each_component(
    snapshot: Snapshot, stage: str, progress: Progress
) -> Iterator[IndexComponent[Any]]:
    """Yield the components that a build has, and report progress after each one."""
    components = [component for component in components_of(snapshot) if component.is_in(snapshot)]
    for done, component in enumerate(components):
        progress(stage, done, len(components))
        yield component
    progress(stage, len(components), len(components))
