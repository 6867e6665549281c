"""The stored preferences of users: all heads of a recommendation, and what each counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from qkvsearch._utils.callbacks import Progress
from qkvsearch.heads.component import (
    RECOMMEND_HEADS,
    TUNED,
    Addition,
    BuildModels,
    LearnedComponent,
)
from qkvsearch.heads.dense_keys import DenseKeys
from qkvsearch.heads.interaction_rows import counts_by_item
from qkvsearch.heads.preference_head import Remaining
from qkvsearch.heads.preference_heads import PREFERENCE_HEADS
from qkvsearch.heads.stored_log import LogComponent
from qkvsearch.models.preferences import (
    COLLABORATIVE,
    HeadShares,
    Preferences,
    learn_preferences,
    learners,
    settings_by_head,
    with_scales,
)
from qkvsearch.models.recommend_head import FittedHead
from qkvsearch.models.strength import Strength, usual_level
from qkvsearch.models.user_vectors import ImplicitFactors
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.array_spec import ArraySpec, Layout, layouts
from qkvsearch.tables.interactions import Interactions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# The fact with the best score below which recommendations count as weak.
WEAK_BELOW = "weak_below"


class StoredPreferences(NamedTuple):
    """Loaded preferences."""

    # What scores histories, with cold items placed by their text.
    heads: Preferences
    # The embeddings of the other items at length 1, to compare items.
    unit_rows: DenseKeys
    # How many users interacted with each item, int32 (n_items,).
    item_counts: np.ndarray
    # The test for weak recommendations.
    strength: Strength


@dataclass(frozen=True)
class PreferencesComponent(LearnedComponent[StoredPreferences]):
    """What the heads of a recommendation have learned from who interacted with what.

    How each head is stored is in a file of its own, and in `PREFERENCE_HEADS`.
    """

    group: str = "implicit"
    arrays: ClassVar = {
        "item_counts": ArraySpec("i", ("items",), rows="interactions"),
        "n_liking": ArraySpec("i", ("items",), rows="interactions"),
        **{name: spec for head in PREFERENCE_HEADS.values() for name, spec in head.arrays.items()},
    }

    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Learn all heads, with the settings in the build's facts, and store them."""
        feedback = LogComponent().feedback(contents)
        confidences = log.matrix(feedback.confidences(log.items, log.ratings, log.weights))
        preferences = self.learned(contents, confidences, progress)
        n_liking = counts_by_item(log, confidences.data > 0)
        self.store(contents, preferences, counts_by_item(log), n_liking)

    def learned(
        self,
        contents: BuildContents,
        confidences: csr_matrix,
        progress: Progress,
        factors: ImplicitFactors | None = None,
    ) -> Preferences:
        """Return preferences learned from confidences (n_users, n_items), with the settings in the
        build's facts. factors: those of all interactions, if they are learned already.
        """
        learn = learners(_settings(contents), 0, progress)
        if factors is not None:
            learn_embeddings = learn[COLLABORATIVE]
            learn[COLLABORATIVE] = lambda part: (
                factors if part is confidences else learn_embeddings(part)
            )
        weighing = partial(progress, "weighing the heads")
        return learn_preferences(confidences, learn, progress=weighing)

    def store(
        self,
        contents: BuildContents,
        preferences: Preferences,
        item_counts: np.ndarray,
        n_liking: np.ndarray,
    ) -> None:
        """Store preferences after the main head's keys. item_counts: of interactions with each
        item; n_liking: those of them with a confidence.
        """
        for head in PREFERENCE_HEADS.values():
            head.remove(self, contents)
        for name, fitted in preferences.heads.items():
            self.put(contents, **PREFERENCE_HEADS[name].store(contents, fitted))
        self.put(contents, item_counts=item_counts, n_liking=n_liking)
        contents.facts[RECOMMEND_HEADS] = asdict(preferences.shares)
        contents.facts[WEAK_BELOW] = usual_level(preferences.scores, n_liking)

    def forget(self, contents: BuildContents, log: Interactions) -> None:
        feedback = LogComponent().feedback(contents)
        confidences = log.matrix(feedback.confidences(log.items, log.ratings, log.weights))
        n_liking = counts_by_item(log, confidences.data > 0)
        self.put(contents, item_counts=counts_by_item(log), n_liking=n_liking)

        settings = settings_by_head(_settings(contents))
        heads: dict[str, FittedHead] = {}
        for name, head in PREFERENCE_HEADS.items():
            remaining = Remaining(confidences, n_liking > 0, settings[name])
            fitted = head.forget(self, contents, remaining)
            if fitted is not None:
                heads[name] = fitted
        preferences = Preferences(heads, HeadShares(**contents.facts[RECOMMEND_HEADS]))
        # One head alone needs no scale.
        if len(heads) > 1:
            preferences = with_scales(preferences, confidences)
        contents.facts[RECOMMEND_HEADS] = asdict(preferences.shares)
        contents.facts[WEAK_BELOW] = usual_level(preferences.scores, n_liking)

    def drop(self, contents: BuildContents) -> None:
        super().drop(contents)
        for head in PREFERENCE_HEADS.values():
            head.remove(self, contents)
        contents.facts.pop(WEAK_BELOW, None)
        contents.facts.pop(RECOMMEND_HEADS, None)

    def load(self, models: BuildModels) -> StoredPreferences:
        snapshot = models.snapshot
        arrays = self._all_arrays(models)
        heads: dict[str, FittedHead] = {}
        for name, head in PREFERENCE_HEADS.items():
            fitted = head.load(arrays, models)
            if fitted is not None:
                heads[name] = fitted
        return StoredPreferences(
            heads=Preferences(heads, HeadShares(**snapshot.facts[RECOMMEND_HEADS])),
            unit_rows=DenseKeys(arrays["unit_rows"]),
            item_counts=arrays["item_counts"],
            strength=Strength(float(snapshot.facts[WEAK_BELOW]), arrays["n_liking"]),
        )

    def _all_arrays(self, models: BuildModels) -> dict[str, np.ndarray]:
        """Read and check all arrays that a build has, in the order of its items."""
        names = self.names_in(models.snapshot)
        sizes: dict[str, int] = {}
        for head in PREFERENCE_HEADS.values():
            sizes.update(head.sizes(names, models))
        layout_of = layouts(self.arrays)
        lists = [name for name in names if layout_of[name] is Layout.LISTS_OF_BASE]
        of_rows = [
            name for name in names if name not in lists and layout_of[name] is not Layout.ENTRIES
        ]
        arrays = self.read(models.snapshot, *of_rows, **sizes)
        for starts_name in lists:
            arrays.update(self.renumbered_lists(models.snapshot, starts_name))
        return arrays

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        super().extend(contents, addition, progress)
        if len(addition.removed):
            self.delete(contents, addition.previous.snapshot, addition.removed)

    def delete(self, contents: BuildContents, snapshot: Snapshot, deleted: np.ndarray) -> None:
        for head in PREFERENCE_HEADS.values():
            head.delete(self, contents, snapshot, deleted)


def _settings(contents: BuildContents) -> dict[str, float]:
    """Return the settings of all heads that `tune` found; none for the default ones."""
    settings: dict[str, float] = contents.facts.get(TUNED, {}).get("settings", {})
    return settings
