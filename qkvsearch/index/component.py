"""What every stored part of a build can do, and how its arrays follow the items."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from qkvsearch._utils.progress import Progress
from qkvsearch.errors import DamagedError, QkvError
from qkvsearch.index.schema import ArraySpec, check_form, check_numbers
from qkvsearch.retrieval.answerability import Answerability
from qkvsearch.storage import BuildContents, Snapshot
from qkvsearch.storage.arrays import read_array
from qkvsearch.storage.segments import MANIFEST, Segment
from qkvsearch.text.analysis import Analyzer

if TYPE_CHECKING:
    from qkvsearch.data.catalog import Catalog
    from qkvsearch.data.interactions import Interactions

T = TypeVar("T")
# The fact that names the language of a build's texts.
LANGUAGE = "language"
# What is raised by arrays and facts that have the checksums written, and yet are not what any build
# writes.
MISFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

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


def main_head(facts: Mapping[str, Any]) -> str:
    """The dense head that stands for meaning where there is room for one."""
    return "lsa" if facts["encoder"] == "corpus" else list(facts["head_weights"])[-1]


class BuildReader:
    """An opened build, of which each part is loaded on its first use and kept."""

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


@dataclass(frozen=True)
class Addition:
    """Items that join a build, some in the place of others.

    former: the build before. catalog: the new items alone, by id. positions: int64 (n,), the item
    row in the former build of the one that each replaces, −1 for none. unread: bool (n,), False
    where the texts are those of the item that it replaces, of which they were read before.
    """

    former: BuildReader
    catalog: Catalog
    positions: np.ndarray
    unread: np.ndarray

    @cached_property
    def replaced(self) -> np.ndarray:
        """The item rows in the former build, int64, of those that are replaced."""
        return self.positions[self.positions >= 0]

    @cached_property
    def new_fields(self) -> list[list[str]]:
        """The texts still to be read, column after column, each with one text an item."""
        return [list(compress(texts, self.unread)) for texts in self.catalog.fields()]


@dataclass(frozen=True)
class IndexComponent(ABC, Generic[T]):
    """One model of a build, from the builder to the engine.

    group: what the names of its arrays begin with, before a dot. arrays: what follows the dot, in
    whatever build, and what each looks like; no array belongs to two parts.

    Whoever calls `extend`, `withdraw` and `merge` gives `contents` the facts of the former build,
    with `n_items` as it is from now on.
    """

    group: str
    arrays: ClassVar[Mapping[str, ArraySpec]]

    @abstractmethod
    def store(self, contents: BuildContents, *args: Any, **kwargs: Any) -> None:
        """Add a fitted model to a whole build: its arrays, and facts for the manifest."""

    @abstractmethod
    def load(self, build: BuildReader) -> T:
        """What the engine reads, with neither scikit-learn nor numba: of all segments together.
        Raises `DamagedError`.
        """

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        """Add what a segment has of the items that join, and what they change of the whole build.
        Nothing is learned.
        """

    def withdraw(self, contents: BuildContents, build: BuildReader, leaving: np.ndarray) -> None:
        """Add what changes of the whole build where items leave with their interactions, which are
        in the rows `leaving`, int64 (n,), of `build`.
        """

    def merge(self, contents: BuildContents, build: BuildReader, progress: Progress) -> None:
        """Add the arrays of a whole build that answers as all segments of `build` do together."""
        snapshot = build.snapshot
        for name in self.names_in(snapshot):
            if snapshot.rows.is_plain or not self.arrays[name].rows:
                self.share(contents, snapshot, name)
            else:
                self.put(contents, **{name: self.read(snapshot, name)[name]})

    def owns(self, name: str) -> bool:
        """Whether an array of that whole name is this part's."""
        return name in map(self.name_of, self.arrays)

    def is_in(self, build: Snapshot) -> bool:
        """Whether a build has the part."""
        return bool(self.names_in(build))

    def names_in(self, build: Snapshot) -> list[str]:
        """Those of its arrays that a build has."""
        return [array for array in self.arrays if self.name_of(array) in build]

    def read(self, build: Snapshot, *names: str, **sizes: int) -> dict[str, np.ndarray]:
        """Its arrays of these names, by default all that there are, of the build's items where they
        are of items; checked together. sizes: lengths that are known already.
        """
        found = {}
        for name in names or self.names_in(build):
            if self.arrays[name].rows == "texts":
                found[name] = build.rows.take(self._pieces(build, name, sizes))
            else:
                found[name] = self._whole(build, name, sizes)
                if self.arrays[name].rows:
                    found[name] = build.rows.by_origin(found[name])
        return found

    def rows_at(self, build: Snapshot, name: str, positions: np.ndarray) -> np.ndarray:
        """Rows (n, …) of an array, of the items in the rows `positions` (n,); zeros where that is
        −1, and where there is nothing of an item.
        """
        if self.arrays[name].rows == "texts":
            pieces, stored = self._pieces(build, name, {}), build.rows.stored
        else:
            pieces, stored = [self._whole(build, name, {})], build.rows.origin
        wanted = np.where(positions >= 0, stored[positions], -1)
        found = np.zeros((len(wanted), *pieces[0].shape[1:]), pieces[0].dtype)
        start = 0
        for piece in pieces:
            ours = np.flatnonzero((wanted >= start) & (wanted < start + len(piece)))
            found[ours] = piece[wanted[ours] - start]
            start += len(piece)
        return found

    def piece(self, segment: Segment, *names: str, **sizes: int) -> dict[str, np.ndarray]:
        """Its arrays in one segment, checked together."""
        return self._piece(segment, names, sizes)

    def pending(self, contents: BuildContents, array: str) -> np.ndarray:
        """One of its arrays as it will be published, be it another build's."""
        name = self.name_of(array)
        if name in contents.arrays:
            return contents.arrays[name]
        return read_array(contents.shared[f"{name}.npy"])

    def is_pending(self, contents: BuildContents, array: str) -> bool:
        """Whether `pending` has it."""
        name = self.name_of(array)
        return name in contents.arrays or f"{name}.npy" in contents.shared

    def put(self, contents: BuildContents, **arrays: Any) -> None:
        """Add arrays of the build's own; None leaves one out. A name is never shared as well: what
        is written under it would change the other build.
        """
        for array, values in arrays.items():
            name = self.name_of(array)
            contents.shared.pop(f"{name}.npy", None)
            contents.arrays.pop(name, None)
            if values is not None:
                contents.arrays[name] = values

    def share(self, contents: BuildContents, build: Snapshot, *arrays: str) -> None:
        """Let arrays of another build belong to both."""
        for name in map(self.name_of, arrays):
            contents.shared[f"{name}.npy"] = build.file(name)

    def name_of(self, array: str) -> str:
        """What a build calls one of its arrays."""
        return f"{self.group}.{array}"

    def _whole(self, build: Snapshot, name: str, sizes: dict[str, int]) -> np.ndarray:
        """An array that only one segment has, or of which the newest counts."""
        whole = self.name_of(name)
        array = build.array(whole)
        sizes["items"] = build.base.n_rows
        check_form(build.file(whole).path, array, self.arrays[name], sizes)
        return array

    def _pieces(self, build: Snapshot, name: str, sizes: dict[str, int]) -> list[np.ndarray]:
        return [self._piece(segment, [name], sizes)[name] for segment in build.with_items]

    def _piece(
        self, segment: Segment, names: Iterable[str], sizes: dict[str, int]
    ) -> dict[str, np.ndarray]:
        sizes["items"] = segment.n_rows
        paths = {name: segment.folder / f"{self.name_of(name)}.npy" for name in names}
        for name, path in paths.items():
            if not segment.has(self.name_of(name)):
                raise DamagedError(path, "it is not there, and its segment has items")
        found = {name: segment.array(self.name_of(name)) for name in paths}
        for check in (check_form, check_numbers):
            for name, array in found.items():
                check(paths[name], array, self.arrays[name], sizes)
        return found


class LearnedComponent(IndexComponent[T]):
    """A part that is learned from interactions. Items that join have none."""

    @abstractmethod
    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Fit the model to a log and store it, if there is something for it to learn from; nothing
        stays of what `contents` had of it.
        """

    def drop(self, contents: BuildContents) -> None:
        """Leave the part out."""
        self.put(contents, **dict.fromkeys(self.arrays))
        contents.facts.pop(self.group, None)
