"""The stored parts of a build: what the builder stores, the engine loads and updates add to.

A new model is a file here with a class, and its name in `every`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch._utils.progress import Progress, silent
from qkvsearch.errors import WorkspaceError
from qkvsearch.index.component import LANGUAGE, MISFIT, IndexComponent, main_head
from qkvsearch.index.dense import DenseComponent, StoredHead
from qkvsearch.index.lexical import CodesComponent, LexicalComponent
from qkvsearch.index.tokens import TokensComponent
from qkvsearch.index.words import WordsComponent
from qkvsearch.retrieval import DenseKeys, TermKeys
from qkvsearch.retrieval.late_interaction import TokenKeys
from qkvsearch.retrieval.remote_keys import KeyStore, RemoteKeys
from qkvsearch.retrieval.word_index import WordIndex
from qkvsearch.storage.remote_collections import KeyPlace
from qkvsearch.text.text_encoder import TextEncoder

# What is learned from interactions is imported where it is asked for: a search does without.
if TYPE_CHECKING:
    from qkvsearch.collaborative.confidences import Feedback
    from qkvsearch.collaborative.factors import ImplicitFactors
    from qkvsearch.collaborative.strength import Strength
    from qkvsearch.collaborative.user_history import History
    from qkvsearch.data.interactions import Interactions
    from qkvsearch.data.ratings import Scale
    from qkvsearch.index.interaction_log import LogComponent
    from qkvsearch.index.learned_models import PreferencesComponent


# Facts that questions go by.
COLUMN_WEIGHTS = "column_weights"
FACTS = {"n_items": int, "text_columns": list, "encoder": str, "head_weights": dict, "rows": list}


def _check_facts(snapshot: Snapshot) -> None:
    """Raise `DamagedError` where those facts are of other types that every build goes by."""
    facts = snapshot.facts
    try:
        weights = [float(weight) for weight in facts["head_weights"].values()]
        fits = all(isinstance(facts[name], kind) for name, kind in FACTS.items())
        for of_head in facts.get(COLUMN_WEIGHTS, {}).values():
            fits &= all(float(of_head[name]) >= 0 for name in facts["text_columns"])
    except MISFIT:
        fits = False
    if not fits or not weights:
        manifest = snapshot.segments[-1].folder / MANIFEST
        raise DamagedError(manifest, "its facts are not those of a build")


class StoredModels:
    """The parts of an opened build under the names that answers ask for."""

    _user_directions: np.ndarray | None = None

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        _check_facts(snapshot)
        self.n_items: int = snapshot.facts["n_items"]
        self._loaded: dict[IndexComponent[Any], Any] = {}

    def load(self, part: IndexComponent[T]) -> T:
        """What the engine reads of a part that the build has."""
        if part not in self._loaded:
            try:
                self._loaded[part] = part.load(self)
            except QkvError:
                raise
            except MISFIT as error:
                what = f"{part.group} does not fit together: {type(error).__name__}: {error}"
                manifest = self.snapshot.segments[-1].folder / MANIFEST
                raise DamagedError(manifest, what) from error
        loaded: T = self._loaded[part]
        return loaded

    def find(self, part: IndexComponent[T]) -> T | None:
        """What the engine reads of a part, None where the build is without it."""
        return self.load(part) if part.is_in(self.snapshot) else None

    @cached_property
    def head_weights(self) -> dict[str, float]:
        """How much each head of a search counts, the lexical one first; they add up to 1."""
        return dict(self.snapshot.facts["head_weights"])

    def column_weights(self, head: str) -> list[float] | None:
        """How much each text column counts in the keys of a dense head, in the order of the
        columns; None where all count alike.
        """
        found = self.snapshot.facts.get(COLUMN_WEIGHTS, {}).get(head)
        columns = self.snapshot.facts["text_columns"]
        return None if found is None else [float(found[name]) for name in columns]

    @cached_property
    def analyzer(self) -> Analyzer:
        """What makes terms of the texts."""
        return Analyzer(self.snapshot.facts[LANGUAGE])

    @cached_property
    def answerability(self) -> Answerability:
        """What it knows of queries that it cannot answer."""
        try:
            return Answerability.of(self.snapshot.facts)
        except MISFIT:
            manifest = self.snapshot.segments[-1].folder / MANIFEST
            raise DamagedError(manifest, "its facts are not those of a build") from None

    @cached_property
    def main_head(self) -> str:
        """The dense head that stands for meaning where there is room for one."""
        return main_head(self.snapshot.facts)

    @cached_property
    def lexical_keys(self) -> TermKeys:
        """The items' keys of the lexical head."""
        return self.load(LexicalComponent())

    @cached_property
    def code_keys(self) -> TermKeys:
        """The items' ids and other codes."""
        return self.load(CodesComponent())

    @cached_property
    def words(self) -> WordIndex:
        """The items' words in order."""
        return self.load(WordsComponent())

    def encoder(self, head: str) -> TextEncoder:
        """What a dense head turns texts into vectors by. Raises as `StoredHead.encoder` does."""
        return self._dense(head).encoder

    def dense_keys(self, head: str) -> DenseKeys | RemoteKeys:
        """The items' keys of a dense head."""
        return self._dense(head).keys

    def _dense(self, head: str) -> StoredHead:
        if head not in self._heads:
            self._heads[head] = self.load(DenseComponent(head))
        return self._heads[head]

    @cached_property
    def _heads(self) -> dict[str, StoredHead]:
        return {}

    @cached_property
    def key_store(self) -> KeyStore | None:
        """Where keys are that are not here; None where all are."""
        if KeyPlace.of(self.snapshot.facts) is None:
            return None
        keys = self.dense_keys(self.main_head)
        return keys.vectors.store if isinstance(keys, RemoteKeys) else None

    @cached_property
    def has_tokens(self) -> bool:
        """Whether the items' tokens are kept; to know it takes no encoder."""
        return TokensComponent(self.main_head).is_in(self.snapshot)

    @cached_property
    def token_keys(self) -> TokenKeys:
        """The items' tokens, for whoever asked `has_tokens` first."""
        return self.load(TokensComponent(self.main_head))

    @property
    def implicit(self) -> ImplicitFactors | None:
        """Preferences, cold items placed by their text; None where there are no interactions."""
        found = self.find(self._preferences)
        return None if found is None else found.factors

    def user_directions(self, progress: Progress | None = None) -> np.ndarray:
        """As in `PreferencesComponent`; what has to be solved for them is solved once."""
        if self._user_directions is None:
            found = self._preferences.user_directions(self, progress or silent)
            self._user_directions = found
        return self._user_directions

    @property
    def item_counts(self) -> np.ndarray:
        """How many users interacted with each item, (n_items,), as the build knows it."""
        return self.load(self._preferences).item_counts

    @property
    def strength(self) -> Strength | None:
        """What tells recommendations from too little; None where nothing does."""
        found = self.find(self._preferences)
        return None if found is None else found.strength

    def require_interactions(self, purpose: str) -> None:
        """Raise `WorkspaceError` where the build was given none."""
        if not self._log.is_in(self.snapshot):
            raise WorkspaceError(
                f"{self.snapshot.workspace}: nobody's interactions are here to {purpose}; "
                "build with `interactions`"
            )

    def log(self, purpose: str = "learn from") -> Interactions:
        """What the build learned from, in the owner's ids. Raises `WorkspaceError` without it."""
        self.require_interactions(purpose)
        return self.load(self._log).interactions()

    @property
    def rating_scale(self) -> Scale:
        """The lowest and the highest rating, None where there are none."""
        return self.snapshot.facts.get("rating_scale")

    @property
    def feedback(self) -> Feedback:
        """What ratings and weights are worth here."""
        from qkvsearch.collaborative.confidences import Feedback

        log = self.find(self._log)
        return Feedback() if log is None else log.feedback

    @property
    def last_time(self) -> int | None:
        """When the latest interaction of the log was; None where nobody knows."""
        log = self.find(self._log)
        return None if log is None else log.last_time

    def history(self, user: int | None) -> History:
        """The interactions of the user in this row of the build; nothing for None."""
        from qkvsearch.collaborative.user_history import NOTHING

        log = self.find(self._log)
        return NOTHING if log is None else log.history(user)

    @property
    def _log(self) -> LogComponent:
        from qkvsearch.index.interaction_log import LogComponent

        return LogComponent()

    @property
    def _preferences(self) -> PreferencesComponent:
        from qkvsearch.index.learned_models import PreferencesComponent

        return PreferencesComponent()
