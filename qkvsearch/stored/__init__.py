"""The stored parts of a build: what the builder stores, the engine loads and updates add to.

A new model is a file here with a class, and its name in `FROM_INTERACTIONS` where it is learned
from them, otherwise in `parts_of`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from qkvsearch.collaborative.confidences import Feedback
from qkvsearch.collaborative.factors import ImplicitFactors
from qkvsearch.collaborative.history import NOTHING, History
from qkvsearch.collaborative.strength import Strength
from qkvsearch.data.interactions import Interactions
from qkvsearch.data.ratings import Scale
from qkvsearch.errors import WorkspaceError
from qkvsearch.progress import Progress, silent
from qkvsearch.retrieval import DenseKeys, TermKeys
from qkvsearch.retrieval.late_interaction import TokenKeys
from qkvsearch.retrieval.word_index import WordIndex
from qkvsearch.stored.codes import CodesPart
from qkvsearch.stored.dense import DensePart
from qkvsearch.stored.lexical import LexicalPart
from qkvsearch.stored.log import LogPart
from qkvsearch.stored.next_item import NextItemPart
from qkvsearch.stored.part import Addition, BuildReader, LearnedPart, StoredPart
from qkvsearch.stored.preferences import TUNED, PreferencesPart
from qkvsearch.stored.ratings import RatingsPart
from qkvsearch.stored.tokens import TokensPart
from qkvsearch.stored.words import WordsPart
from qkvsearch.texts.encoders import TextEncoder

__all__ = [
    "FROM_INTERACTIONS", "TUNED", "Addition", "BuildReader", "CodesPart", "DensePart",
    "LexicalPart", "LogPart", "NextItemPart", "PreferencesPart", "RatingsPart", "StoredModels",
    "StoredPart", "TokensPart", "WordsPart", "each_part", "parts_of",
]  # fmt: skip


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


class StoredModels(BuildReader):
    """The parts of an opened build under the names that answers ask for."""

    _user_directions: np.ndarray | None = None

    @cached_property
    def lexical_keys(self) -> TermKeys:
        """The items' keys of the lexical head."""
        return self.load(LexicalPart())

    @cached_property
    def code_keys(self) -> TermKeys | None:
        """The items' ids and other codes; None in a build from before there were any."""
        return self.find(CodesPart())

    @cached_property
    def words(self) -> WordIndex | None:
        """The items' words in order; None in a build from before there were phrases."""
        return self.find(WordsPart())

    def encoder(self, head: str) -> TextEncoder:
        """What a dense head turns texts into vectors by. Raises as `StoredHead.encoder` does."""
        return self.load(DensePart(head)).encoder

    def dense_keys(self, head: str) -> DenseKeys:
        """The items' keys of a dense head."""
        return self.load(DensePart(head)).keys

    @cached_property
    def has_tokens(self) -> bool:
        """Whether the items' tokens are kept; to know it takes no encoder."""
        return TokensPart(self.main_head).is_in(self.snapshot)

    @cached_property
    def token_keys(self) -> TokenKeys:
        """The items' tokens, for whoever asked `has_tokens` first."""
        return self.load(TokensPart(self.main_head))

    @property
    def implicit(self) -> ImplicitFactors | None:
        """Preferences, cold items placed by their text; None where there are no interactions."""
        found = self.find(PreferencesPart())
        return None if found is None else found.factors

    def user_directions(self, progress: Progress | None = None) -> np.ndarray:
        """As in `PreferencesPart`; what has to be solved for them is solved once."""
        if self._user_directions is None:
            found = PreferencesPart().user_directions(self, progress or silent)
            self._user_directions = found
        return self._user_directions

    @property
    def item_counts(self) -> np.ndarray:
        """How many users interacted with each item, (n_items,), as the build knows it."""
        return self.load(PreferencesPart()).item_counts

    @property
    def strength(self) -> Strength | None:
        """What tells recommendations from too little; None where nothing does."""
        found = self.find(PreferencesPart())
        return None if found is None else found.strength

    def require_interactions(self, purpose: str) -> None:
        """Raise `WorkspaceError` where the build was given none."""
        if not LogPart().is_in(self.snapshot):
            raise WorkspaceError(
                f"{self.snapshot.workspace}: nobody's interactions are here to {purpose}; "
                "build with `interactions`"
            )

    def log(self, purpose: str = "learn from") -> Interactions:
        """What the build learned from, in the owner's ids. Raises `WorkspaceError` without it."""
        self.require_interactions(purpose)
        return self.load(LogPart()).interactions()

    @property
    def rating_scale(self) -> Scale:
        """The lowest and the highest rating, None where there are none."""
        return self.snapshot.facts.get("rating_scale")

    @property
    def feedback(self) -> Feedback:
        """What ratings and weights are worth here."""
        log = self.find(LogPart())
        return Feedback() if log is None else log.feedback

    @property
    def last_time(self) -> int | None:
        """When the latest interaction of the log was; None where nobody knows."""
        log = self.find(LogPart())
        return None if log is None else log.last_time

    def history(self, user: int | None) -> History:
        """The interactions of the user in this row of the build; nothing for None."""
        log = self.find(LogPart())
        return NOTHING if log is None else log.history(user)
