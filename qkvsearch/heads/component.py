"""Base classes of the stored models of a build, its components.

A component declares its arrays and how the rows of new items are made. The store puts together the
arrays of segments (`StoredArrays`), so that a component knows nothing of them. These are the
exceptions, and the methods that know:

| arrays | why the store cannot put them together | who does |
|---|---|---|
| `lexical`, `codes` | terms differ, and a weight depends on all items | `TermsComponent` |
| `words` | a segment's numbers of words are those of its own spellings | `WordsComponent` |
| `passages`, `passage_…` of a head | an item has several | `PassagesComponent` and the like |
| remote keys, their sums | the keys are on a server, and in no array | `DenseComponent` |
| `implicit.gram` | it is a sum over all items with interactions | `CollaborativeHead` |
| `interactions` | renumbering the whole log would cost each question seconds | `StoredLog` |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.callbacks import Progress
from qkvsearch.heads.search_settings import SearchSettings
from qkvsearch.heads.word_index import WordIndex
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.stored_arrays import StoredArrays
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.encoders import LEARNED, dense_heads

if TYPE_CHECKING:
    from qkvsearch.tables.catalog import Catalog
    from qkvsearch.tables.interactions import Interactions

T = TypeVar("T")
# The fact that names the language of a build's texts.
LANGUAGE = "language"
# The facts with the ISO codes of all languages of the texts, and with the transformer that would
# have been chosen for them if it had been installed, "" for none.
LANGUAGES, BETTER_ENCODER = "languages", "better_encoder"
# The fact that says which heads take no part in searches, and why; missing where all do.
HEADS_LEFT_OUT = "heads_left_out"
# The fact with the name of the catalog's file, "" for none.
CATALOG_NAME = "catalog_name"
# The fact with the shares of the heads of a recommendation, as `HeadShares` has them.
RECOMMEND_HEADS = "recommend_heads"
# The fact with the settings of preferences that `tune` found; missing for the default settings.
TUNED = "tuned"
# The fact that has the weights of text columns, by head.
COLUMN_WEIGHTS = "column_weights"
# Exceptions that mean that arrays or facts have the right checksum, and yet no build wrote them.
MISFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def main_head(facts: Mapping[str, Any]) -> str:
    """Return the dense head that represents meaning where only one head can be used."""
    last = dense_heads(facts["head_weights"])[-1]
    return "lsa" if last in LEARNED else last


class BuildModels(Protocol):
    """What a component asks of the other models of its build. `StoredModels` is one."""

    @property
    def snapshot(self) -> Snapshot:
        """The opened build."""

    @property
    def analyzer(self) -> Analyzer:
        """The analyzer that turns texts into terms."""

    @property
    def main_head(self) -> str:
        """The dense head that represents meaning where only one head can be used."""

    @property
    def words(self) -> WordIndex:
        """The items' words in order."""

    @property
    def has_tokens(self) -> bool:
        """Whether the items' tokens are stored."""

    def column_weights(self, head: str) -> list[float] | None:
        """Return the text columns' weights in the keys of a head; None where all are equal."""

    @property
    def search_settings(self) -> SearchSettings:
        """The settings of searches that `tune search` found."""

    @property
    def tuned_column_weights(self) -> list[float] | None:
        """The text columns' weights that `tune search` found; None where it found none."""

    def load(self, component: IndexComponent[T]) -> T:
        """Load a component once."""


@dataclass(frozen=True)
class Addition:
    """Items to be added to a build. An item with a known id replaces the old one."""

    # The models of the build that the items are added to.
    previous: BuildModels
    # Only the new items, in the order of their ids.
    catalog: Catalog
    # The row in the build of the item that each one replaces, −1 for none, int64 (n,).
    positions: np.ndarray
    # False where the texts are those of the replaced item, which are encoded already, bool (n,).
    unread: np.ndarray
    # Rows in the build of the items that are removed at once, int64.
    removed: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @cached_property
    def replaced(self) -> np.ndarray:
        """Rows in the build of the items that are replaced, int64."""
        return self.positions[self.positions >= 0]

    @property
    def deleted(self) -> np.ndarray:
        """Rows in the build of the items that are replaced or removed, int64."""
        return np.concatenate([self.replaced, self.removed])

    @cached_property
    def new_fields(self) -> list[list[str]]:
        """The texts to be encoded: a list for each text column, one text for each unread item."""
        return [list(compress(texts, self.unread)) for texts in self.catalog.fields()]


@dataclass(frozen=True)
class IndexComponent(StoredArrays, ABC, Generic[T]):
    """One stored model of a build.

    Callers of `extend`, `delete` and `merge` pass `contents` with the facts of the previous build
    and the new `n_items`.
    """

    @abstractmethod
    def store(self, contents: BuildContents, *args: Any, **kwargs: Any) -> None:
        """Add a fitted model to a whole build: its arrays, and facts for the manifest."""

    @abstractmethod
    def load(self, models: BuildModels) -> T:
        """Load the model, without importing scikit-learn or numba. Raises `DamagedError`."""

    def new_rows(self, addition: Addition, progress: Progress) -> Mapping[str, np.ndarray]:
        """Return the arrays of a segment with the new items. Nothing is learned from them."""
        return {}

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        """Add the arrays of a segment with new items, and sums that change, also by the items that
        are removed.
        """
        self.put(contents, **self.new_rows(addition, progress))

    def delete(self, contents: BuildContents, snapshot: Snapshot, deleted: np.ndarray) -> None:
        """Change sums where items are deleted. deleted: their rows in the build, int64 (n,)."""


class LearnedComponent(IndexComponent[T]):
    """A component that is learned from interactions. New items have no rows in it."""

    @abstractmethod
    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Fit the model to a log and store it; drop it where there is nothing to learn from."""

    @abstractmethod
    def forget(self, contents: BuildContents, log: Interactions) -> None:
        """Make what `contents` have of the component independent of a user who is erased, as far as
        that takes no learning. log: the interactions that are left, at least one.

        What is counted from the log is counted anew. What was learned about an item that nobody has
        any more becomes that of an item without interactions: it would tell that the user had it.
        """

    def drop(self, contents: BuildContents) -> None:
        """Remove the component from `contents`."""
        self.put(contents, **dict.fromkeys(self.arrays))
        contents.facts.pop(self.group, None)
