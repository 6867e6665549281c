"""How a head of a recommendation is stored and shown.

What it learns, and how it scores, is its `RecommendHead` in `models`. To store a new one, write a
`PreferenceHead` in a file of its own, as `neighbours_head.py` does, and add it to
`PREFERENCE_HEADS` in `preference_heads.py`. `PreferencesComponent` has the arrays of all heads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from qkvsearch.heads.component import BuildModels
from qkvsearch.models.recommend_head import FittedHead, Settings
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.array_spec import ArraySpec
from qkvsearch.store.stored_arrays import StoredArrays

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Fitted = TypeVar("Fitted", bound=FittedHead)


class Remaining(NamedTuple):
    """What is left of a log after a user has been erased."""

    # (n_users, n_items).
    confidences: csr_matrix
    # bool (n_items,): whether anyone likes an item.
    is_liked: np.ndarray
    # The parameters of the head that forgets.
    settings: Settings


class PreferenceHead(ABC, Generic[Fitted]):
    """A head of a recommendation, as a build has it.

    `stored` is the component with the arrays of all heads.
    """

    # That of its `RecommendHead`.
    name: str
    # What the page calls it, by language.
    titles: ClassVar[Mapping[str, str]]
    # Its arrays, by names that no other head has.
    arrays: ClassVar[Mapping[str, ArraySpec]]
    # The facts that `store` writes.
    facts: tuple[str, ...] = ()

    @abstractmethod
    def store(self, contents: BuildContents, fitted: Fitted) -> Mapping[str, np.ndarray | None]:
        """Return its arrays, None for one that it lacks; write facts for the manifest."""

    @abstractmethod
    def load(self, arrays: Mapping[str, np.ndarray], models: BuildModels) -> Fitted | None:
        """Return the head of a build; None where the build is without it. arrays: those that the
        build has, of all heads, with a row or a list for each item.
        """

    @abstractmethod
    def forget(
        self, stored: StoredArrays, contents: BuildContents, remaining: Remaining
    ) -> Fitted | None:
        """Make its arrays in `contents` independent of a user who is erased, as
        `LearnedComponent.forget` says. Return the head that they are now; None for none.
        """

    def delete(
        self, stored: StoredArrays, contents: BuildContents, snapshot: Snapshot, deleted: np.ndarray
    ) -> None:
        """Change sums where items are deleted. deleted: their rows in the build, int64 (n,)."""

    def sizes(self, names: list[str], models: BuildModels) -> dict[str, int]:
        """Return the lengths, by their names in `arrays`, that other models of the build determine.
        names: of the arrays that the build has.
        """
        return {}

    def remove(self, stored: StoredArrays, contents: BuildContents) -> None:
        """Remove its arrays and facts from `contents`."""
        absent: dict[str, Any] = dict.fromkeys(self.arrays)
        stored.put(contents, **absent)
        for fact in self.facts:
            contents.facts.pop(fact, None)
