"""What every stored part of a build can do, and how its arrays follow the items that stay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from qkvsearch.progress import Progress
from qkvsearch.workspace import BuildContents, Snapshot

if TYPE_CHECKING:
    from qkvsearch.data.catalog import Catalog
    from qkvsearch.data.interactions import Interactions

T = TypeVar("T")


def main_head(facts: Mapping[str, Any]) -> str:
    """The dense head that stands for meaning where there is room for one."""
    return "lsa" if facts["encoder"] == "corpus" else list(facts["head_weights"])[-1]


class BuildReader:
    """An opened build, of which each part is loaded on its first use and kept."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.n_items: int = snapshot.facts["n_items"]
        self._loaded: dict[StoredPart[Any], Any] = {}

    def load(self, part: StoredPart[T]) -> T:
        """What the engine reads of a part that the build has."""
        if part not in self._loaded:
            self._loaded[part] = part.load(self)
        loaded: T = self._loaded[part]
        return loaded

    def find(self, part: StoredPart[T]) -> T | None:
        """What the engine reads of a part, None where the build is without it."""
        return self.load(part) if part.is_in(self.snapshot) else None

    @cached_property
    def head_weights(self) -> dict[str, float]:
        """How much each head of a search counts, the lexical one first; they add up to 1."""
        return dict(self.snapshot.facts["head_weights"])

    @cached_property
    def main_head(self) -> str:
        """The dense head that stands for meaning where there is room for one."""
        return main_head(self.snapshot.facts)


@dataclass(frozen=True)
class Change:
    """The catalog from now on, beside the one of a former build.

    origin: int64 (n_items,), each item's row number in the former build, −1 for one that was not
    there. unread: bool (n_items,), True where the former build did not read the texts that the item
    has now. replaced: how many were there and were given anew.
    """

    former: BuildReader
    catalog: Catalog
    origin: np.ndarray
    unread: np.ndarray
    replaced: int
    notes: list[str]

    @cached_property
    def read(self) -> np.ndarray:
        """Row numbers, int64 (n_items,), in arrays made of the texts that the items have now; −1
        for an item whose texts are still to be read.
        """
        return np.where(self.unread, -1, self.origin)

    @property
    def keeps_texts(self) -> bool:
        """Whether every text is where it was, and there is no other."""
        return unmoved(self.read, self.former.n_items)

    @cached_property
    def new_fields(self) -> list[list[str]]:
        """The texts still to be read, column after column, each with one text an item."""
        return [list(compress(texts, self.unread)) for texts in self.catalog.fields()]


@dataclass(frozen=True)
class StoredPart(ABC, Generic[T]):
    """One model of a build, from the builder to the engine.

    group: what the names of its arrays begin with, before a dot. arrays: what follows the dot, in
    whatever build; no array belongs to two parts.
    """

    group: str
    arrays: ClassVar[tuple[str, ...]]

    @abstractmethod
    def store(self, contents: BuildContents, *args: Any, **kwargs: Any) -> None:
        """Add a fitted model to a build: its arrays, and facts for the manifest."""

    @abstractmethod
    def load(self, build: BuildReader) -> T:
        """What the engine reads, with neither scikit-learn nor numba."""

    @abstractmethod
    def revise(self, contents: BuildContents, change: Change, progress: Progress) -> None:
        """Add what becomes of the part when items join, leave or change their texts. Nothing is
        learned. `contents` has the facts of the former build, but for `n_items`.
        """

    def owns(self, name: str) -> bool:
        """Whether an array of that whole name is this part's."""
        return name in map(self._name, self.arrays)

    def is_in(self, build: Snapshot) -> bool:
        """Whether a build has any of its arrays."""
        return any(self._name(array) in build for array in self.arrays)

    def read(self, build: Snapshot, array: str) -> np.ndarray:
        """One of its arrays, memory-mapped."""
        return build.array(self._name(array))

    def read_all(self, build: Snapshot) -> dict[str, np.ndarray]:
        """Those of its arrays that a build has, memory-mapped."""
        there = (array for array in self.arrays if self._name(array) in build)
        return {array: self.read(build, array) for array in there}

    def pending(self, contents: BuildContents, array: str) -> np.ndarray:
        """One of its arrays as it will be published, be it the former build's."""
        name = self._name(array)
        if contents.base is not None and name in contents.shared:
            return contents.base.array(name)
        return contents.arrays[name]

    def put(self, contents: BuildContents, **arrays: np.ndarray | None) -> None:
        """Add arrays of the build's own; None leaves one out. A name is never shared as well: what
        is written under it would change the former build.
        """
        for array, values in arrays.items():
            contents.shared.discard(self._name(array))
            if values is not None:
                contents.arrays[self._name(array)] = values

    def share(self, contents: BuildContents, *arrays: str) -> None:
        """Let arrays of the former build, where it has them, belong to both builds."""
        assert contents.base is not None
        contents.shared |= {name for name in map(self._name, arrays) if name in contents.base}

    def take_rows(self, contents: BuildContents, origin: np.ndarray, *arrays: str) -> None:
        """Rows of the former build's arrays in their new places; zeros where `origin` is −1. An
        array of which no row moves belongs to both builds.
        """
        assert contents.base is not None
        kept = origin >= 0
        for array in arrays:
            if self._name(array) not in contents.base:
                continue
            former = self.read(contents.base, array)
            if unmoved(origin, len(former)):
                self.share(contents, array)
                continue
            rows = np.zeros((len(origin), *former.shape[1:]), former.dtype)
            rows[kept] = former[origin[kept]]
            self.put(contents, **{array: rows})

    def _name(self, array: str) -> str:
        return f"{self.group}.{array}"


class LearnedPart(StoredPart[T]):
    """A part that is learned from interactions."""

    @abstractmethod
    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Fit the model to a log and store it, if there is something for it to learn from."""


def unmoved(origin: np.ndarray, n_former: int) -> bool:
    """True where every row is where it was, and there is no other."""
    return len(origin) == n_former and bool((origin == np.arange(n_former)).all())


def places(origin: np.ndarray, n_former: int) -> np.ndarray:
    """The new row number of each former row, −1 for one that left.

    >>> places(np.array([2, -1, 0]), 3).tolist()
    [2, -1, 0]
    """
    place = np.full(n_former, -1, dtype=np.int64)
    kept = np.flatnonzero(origin >= 0)
    place[origin[kept]] = kept
    return place
