"""The models of an opened build, each loaded on its first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.errors import DamagedError, NotBuiltError, QkvError
from qkvsearch.heads.answerability import Answerability
from qkvsearch.heads.bm25 import TermKeys
from qkvsearch.heads.common_subjects import CommonSubjects, SubjectsComponent
from qkvsearch.heads.component import (
    COLUMN_WEIGHTS,
    LANGUAGE,
    LANGUAGES,
    MISFIT,
    IndexComponent,
    main_head,
)
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.dense_keys import ItemKeys
from qkvsearch.heads.late_interaction import TokenKeys
from qkvsearch.heads.passage_keys import PassageKeysComponent, UnitKeys
from qkvsearch.heads.passage_tokens import PassageTokensComponent
from qkvsearch.heads.passages import PassagesComponent, Units
from qkvsearch.heads.search_settings import SearchSettings
from qkvsearch.heads.tokens import TokensComponent
from qkvsearch.heads.word_index import WordIndex
from qkvsearch.heads.words import CodesComponent, LexicalComponent, WordsComponent
from qkvsearch.store import Snapshot
from qkvsearch.store.segments import MANIFEST
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.encoders import SECOND_PASS, dense_heads
from qkvsearch.text.related_words import MAX_MEAN_LENGTH
from qkvsearch.text.text_encoder import TextEncoder

# What is learned from interactions is imported by the methods that need it: search does not.
if TYPE_CHECKING:
    from qkvsearch.heads.stored_log import LogComponent
    from qkvsearch.heads.stored_preferences import PreferencesComponent
    from qkvsearch.models.confidences import Feedback
    from qkvsearch.models.preferences import Preferences
    from qkvsearch.models.strength import Strength
    from qkvsearch.models.user_history import History
    from qkvsearch.models.user_vectors import ImplicitFactors
    from qkvsearch.tables.interactions import Interactions
    from qkvsearch.tables.ratings import Scale

T = TypeVar("T")
# Facts that every build has, and their types.
FACTS = {
    "n_items": int,
    "columns": list,
    "text_columns": list,
    "encoder": str,
    "head_weights": dict,
    "rows": list,
    LANGUAGE: str,
    "qkvsearch": str,
}


class StoredModels:
    """The models of one build.

    Raises `DamagedError` where the facts in the build's manifest are incomplete or of other types.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._check_facts()
        self.n_items: int = snapshot.facts["n_items"]
        self._loaded: dict[IndexComponent[Any], Any] = {}
        # Keys of dense heads in place of stored ones.
        self._keys_in_search: Mapping[str, ItemKeys[Any]] = {}
        self._unit_keys: dict[str, UnitKeys] = {}
        self._common_to_items: dict[str, np.ndarray] = {}

    def _check_facts(self) -> None:
        try:
            fits = _are_of_a_build(self.snapshot.facts)
        except MISFIT:
            fits = False
        if not fits:
            raise self._damaged("its facts are not those of a build")

    def _damaged(self, what: str) -> DamagedError:
        return DamagedError(self.snapshot.segments[-1].folder / MANIFEST, what)

    def load(self, component: IndexComponent[T]) -> T:
        """Load a component once. Raises `DamagedError` where its arrays do not fit together."""
        loaded: T | None = self._loaded.get(component)
        if loaded is None:
            try:
                loaded = self._loaded[component] = component.load(self)
            except QkvError:
                raise
            except MISFIT as error:
                what = f"{component.group} does not fit together: {type(error).__name__}: {error}"
                raise self._damaged(what) from error
        return loaded

    def find(self, component: IndexComponent[T]) -> T | None:
        """Load a component; return None where the build is without it."""
        return self.load(component) if component.is_in(self.snapshot) else None

    # --- search ---

    @cached_property
    def head_weights(self) -> dict[str, float]:
        """Weight of each head of a search, the lexical one first. The weights add up to 1.

        The build learned them, and calibrated by them which queries have an answer.
        """
        return dict(self.snapshot.facts["head_weights"])

    @cached_property
    def search_settings(self) -> SearchSettings:
        """The settings of searches that `tune search` found."""
        return SearchSettings.of(self.snapshot.facts)

    @property
    def search_weights(self) -> Mapping[str, float]:
        """Weight of each head by which a search ranks: those that `tune search` found, if any."""
        return self.search_settings.heads or self.head_weights

    @property
    def second_pass(self) -> float:
        """The weight of the second pass as a share of the main head's; 0 where there is none."""
        tuned = self.search_settings.second_pass
        return SECOND_PASS.get(self.main_head, 0.0) if tuned is None else tuned

    @cached_property
    def families(self) -> float:
        """How much words of the same family count; 0 where texts are long."""
        tuned = self.search_settings.families
        if tuned is not None:
            return tuned
        return 0.0 if self.words.mean_length > MAX_MEAN_LENGTH else 1.0

    def with_search(
        self, settings: SearchSettings, keys: Mapping[str, ItemKeys[Any]] | None = None
    ) -> StoredModels:
        """Return the same models with other settings of searches. All else is shared.

        keys: those of the dense heads with the weights of columns in `settings`.
        """
        models = copy(self)
        vars(models).pop("families", None)
        models.search_settings = settings
        models._keys_in_search = keys or {}
        models._unit_keys = {}
        models._common_to_items = {}
        return models

    @cached_property
    def dense_heads(self) -> list[str]:
        """The dense heads of a search, in the order of their weights."""
        return dense_heads(self.head_weights)

    @cached_property
    def main_head(self) -> str:
        """The dense head that represents meaning where only one head can be used."""
        return main_head(self.snapshot.facts)

    def column_weights(self, head: str) -> list[float] | None:
        """Return the text columns' weights in the keys of a head; None where all are equal."""
        weights = self.snapshot.facts.get(COLUMN_WEIGHTS, {}).get(head)
        if weights is None:
            return None
        return [float(weights[name]) for name in self.snapshot.facts["text_columns"]]

    @property
    def tuned_column_weights(self) -> list[float] | None:
        """The text columns' weights that `tune search` found; None where it found none."""
        columns = self.search_settings.columns
        if columns is None:
            return None
        return [float(columns[name]) for name in self.snapshot.facts["text_columns"]]

    @cached_property
    def analyzer(self) -> Analyzer:
        """The analyzer that turns texts into terms."""
        return Analyzer(self.snapshot.facts[LANGUAGE])

    @property
    def languages(self) -> Sequence[str]:
        """The ISO codes of the languages of the texts, that of most texts first."""
        languages: Sequence[str] = self.snapshot.facts.get(LANGUAGES, ())
        return languages

    @cached_property
    def answerability(self) -> Answerability:
        """The thresholds below which a query counts as not answered by any item."""
        try:
            return Answerability.of(self.snapshot.facts)
        except MISFIT:
            raise self._damaged("its facts are not those of a build") from None

    @cached_property
    def subjects(self) -> CommonSubjects | None:
        """What queries whose words the catalog lacks are compared with; None for nothing."""
        return self.find(SubjectsComponent(self.main_head))

    def common_to_items(self, letters: str) -> np.ndarray:
        """Return what the items have in common with queries in such letters about anything, or the
        passages where these are searched: see `CommonSubjects.of_items`. Only with `subjects`.
        """
        if letters not in self._common_to_items:
            assert self.subjects is not None
            keys = self.keys_in_search(self.main_head)
            self._common_to_items[letters] = self.subjects.of_items(keys, letters)
        return self._common_to_items[letters]

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

    @cached_property
    def units(self) -> Units | None:
        """The items and passages that are searched; None where no text is long."""
        return self.find(PassagesComponent())

    def unit_keys(self, head: str) -> UnitKeys:
        """Return the keys of items and passages in a dense head. Only where there are `units`."""
        assert self.units is not None
        if head not in self._unit_keys:
            of_passages = self.load(PassageKeysComponent(head))
            self._unit_keys[head] = UnitKeys(self.search_keys(head), of_passages, self.units)
        return self._unit_keys[head]

    def encoder(self, head: str) -> TextEncoder:
        """Return the encoder of a dense head. Raises as `StoredHead.encoder` does."""
        return self.load(DenseComponent(head)).encoder

    def dense_keys(self, head: str) -> ItemKeys[Any]:
        """Return the items' keys of a dense head."""
        return self.load(DenseComponent(head)).keys

    def search_keys(self, head: str) -> ItemKeys[Any]:
        """Return the items' keys by which a search ranks.

        They differ from `dense_keys` where `tune search` found weights of columns.
        """
        if self.search_settings.columns is None:
            return self.dense_keys(head)
        if head in self._keys_in_search:
            return self._keys_in_search[head]
        return self.load(DenseComponent(head)).tuned_keys

    def keys_in_search(self, head: str) -> ItemKeys[Any]:
        """Return what a search compares a query with: the keys of items, or of passages too."""
        return self.search_keys(head) if self.units is None else self.unit_keys(head)

    @cached_property
    def has_tokens(self) -> bool:
        """Whether the items' tokens are stored; this needs no encoder."""
        return TokensComponent(self.main_head).is_in(self.snapshot)

    @cached_property
    def token_keys(self) -> TokenKeys:
        """The items' tokens. Only where `has_tokens`."""
        return self.load(TokensComponent(self.main_head))

    @cached_property
    def unit_token_keys(self) -> TokenKeys:
        """The tokens of items and passages. Only where `has_tokens` and there are `units`."""
        return self.load(PassageTokensComponent(self.main_head))

    # --- recommendations ---

    @property
    def implicit(self) -> ImplicitFactors | None:
        """The preferences, with cold items placed by their text; None without interactions."""
        heads = self.preferences
        return None if heads is None else heads.factors

    @property
    def preferences(self) -> Preferences | None:
        """The heads of a recommendation; None without interactions."""
        preferences = self.find(self._preferences)
        return None if preferences is None else preferences.heads

    @property
    def item_counts(self) -> np.ndarray:
        """How many users of the log interacted with each item, (n_items,)."""
        return self.load(self._preferences).item_counts

    @property
    def strength(self) -> Strength | None:
        """The test of whether a recommendation rests on too little; None without interactions."""
        preferences = self.find(self._preferences)
        return None if preferences is None else preferences.strength

    def require_interactions(self, purpose: str) -> None:
        """Raise `NotBuiltError` where the build has no interactions."""
        if not self._log.is_in(self.snapshot):
            raise NotBuiltError(
                f"this workspace has no interactions to {purpose}; build with `interactions`"
            )

    def log(self, purpose: str = "learn from") -> Interactions:
        """Return the log, in the owner's ids. Raises `NotBuiltError` where there is none."""
        self.require_interactions(purpose)
        return self.load(self._log).interactions()

    @property
    def rating_scale(self) -> Scale:
        """The lowest and the highest rating; None without ratings."""
        return self.snapshot.facts.get("rating_scale")

    @property
    def feedback(self) -> Feedback:
        """The rule that turns ratings and weights into confidences."""
        from qkvsearch.models.confidences import Feedback

        log = self.find(self._log)
        return Feedback() if log is None else log.feedback

    @property
    def last_time(self) -> int | None:
        """The time of the latest interaction in the log; None without times."""
        log = self.find(self._log)
        return None if log is None else log.last_time

    def history(self, user: int | None) -> History:
        """Return the log's history of the user in this row; an empty one for None."""
        from qkvsearch.models.user_history import EMPTY_HISTORY

        log = self.find(self._log)
        return EMPTY_HISTORY if log is None else log.history(user)

    @property
    def _log(self) -> LogComponent:
        from qkvsearch.heads.stored_log import LogComponent

        return LogComponent()

    @property
    def _preferences(self) -> PreferencesComponent:
        from qkvsearch.heads.stored_preferences import PreferencesComponent

        return PreferencesComponent()


def _are_of_a_build(facts: Mapping[str, Any]) -> bool:
    """Return whether facts have what a build writes. May raise an error of `MISFIT`."""
    if not all(isinstance(facts[name], kind) for name, kind in FACTS.items()):
        return False
    if not all(isinstance(column["name"], str) for column in facts["columns"]):
        return False
    head_weights = [float(weight) for weight in facts["head_weights"].values()]
    column_weights = [
        float(of_head[name])
        for of_head in facts.get(COLUMN_WEIGHTS, {}).values()
        for name in facts["text_columns"]
    ]
    fit = SearchSettings.of(facts).fit(facts["head_weights"], facts["text_columns"])
    return fit and bool(head_weights) and all(weight >= 0 for weight in column_weights)
