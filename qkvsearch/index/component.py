"""What every stored part of a build can do, and how its arrays follow the items."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from qkvsearch._utils.progress import Progress
from qkvsearch.errors import DamagedError
from qkvsearch.storage import BuildContents, Snapshot
from qkvsearch.storage.array_files import read_array
from qkvsearch.storage.segments import Segment

if TYPE_CHECKING:
    from qkvsearch.data.catalog import Catalog
    from qkvsearch.data.interactions import Interactions
    from qkvsearch.index import StoredModels

T = TypeVar("T")
# The fact that names the language of a build's texts.
LANGUAGE = "language"
# The fact that has the weights of text columns, by head.
COLUMN_WEIGHTS = "column_weights"
# What is raised by arrays and facts that have the checksums written, and yet are not what any build
# writes.
MISFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def main_head(facts: Mapping[str, Any]) -> str:
    """The dense head that stands for meaning where there is room for one."""
    return "lsa" if facts["encoder"] == "corpus" else list(facts["head_weights"])[-1]


@dataclass(frozen=True)
class Addition:
    """Items that join a build, some in the place of others.

    former: the build before. catalog: the new items alone, by id. positions: int64 (n,), the item
    row in the former build of the one that each replaces, −1 for none. unread: bool (n,), False
    where the texts are those of the item that it replaces, of which they were read before.
    """

    former: StoredModels
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


class ArraySpec(NamedTuple):
    """kinds: of its dtype, in NumPy's letters. shape: a name for each length; "items" are the rows
    of a segment, and other lengths of one name are equal in all arrays that are read together.

    rows: whether the rows are made of the items' texts, which every segment has of its own items,
    or of their interactions, which the base alone has. spans: it is one longer than `shape` says,
    and holds where the spans of that dimension begin. below: it holds row numbers of that one.
    """

    kinds: str
    shape: tuple[str, ...]
    rows: Literal["", "texts", "interactions"] = ""
    spans: str = ""
    below: str = ""


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
    def load(self, models: StoredModels) -> T:
        """What the engine reads, with neither scikit-learn nor numba: of all segments together.
        Raises `DamagedError`.
        """

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        """Add what a segment has of the items that join, and what they change of the whole build.
        Nothing is learned.
        """

    def withdraw(self, contents: BuildContents, models: StoredModels, leaving: np.ndarray) -> None:
        """Add what changes of the whole build where items leave with their interactions, which are
        in the rows `leaving`, int64 (n,), of `models`.
        """

    def merge(self, contents: BuildContents, models: StoredModels, progress: Progress) -> None:
        """Add the arrays of a whole build that answers as all segments of `models` do together."""
        snapshot = models.snapshot
        for name in self.names_in(snapshot):
            if snapshot.rows.is_plain or not self.arrays[name].rows:
                self.share(contents, snapshot, name)
            else:
                self.put(contents, **{name: self.read(snapshot, name)[name]})

    def owns(self, name: str) -> bool:
        """Whether an array of that whole name is this part's."""
        return name in map(self.name_of, self.arrays)

    def is_in(self, snapshot: Snapshot) -> bool:
        """Whether a build has the part."""
        return bool(self.names_in(snapshot))

    def names_in(self, snapshot: Snapshot) -> list[str]:
        """Those of its arrays that a build has."""
        return [array for array in self.arrays if self.name_of(array) in snapshot]

    def read(self, snapshot: Snapshot, *names: str, **sizes: int) -> dict[str, np.ndarray]:
        """Its arrays of these names, by default all that there are, of the build's items where they
        are of items; checked together. sizes: lengths that are known already.
        """
        found = {}
        for name in names or self.names_in(snapshot):
            if self.arrays[name].rows == "texts":
                found[name] = snapshot.rows.take(self._pieces(snapshot, name, sizes))
            else:
                found[name] = self._whole(snapshot, name, sizes)
                if self.arrays[name].rows:
                    found[name] = snapshot.rows.by_origin(found[name])
        return found

    def rows_at(self, snapshot: Snapshot, name: str, positions: np.ndarray) -> np.ndarray:
        """Rows (n, …) of an array, of the items in the rows `positions` (n,); zeros where that is
        −1, and where there is nothing of an item.
        """
        if self.arrays[name].rows == "texts":
            pieces, stored = self._pieces(snapshot, name, {}), snapshot.rows.stored
        else:
            pieces, stored = [self._whole(snapshot, name, {})], snapshot.rows.origin
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

    def share(self, contents: BuildContents, snapshot: Snapshot, *arrays: str) -> None:
        """Let arrays of another build belong to both."""
        for name in map(self.name_of, arrays):
            contents.shared[f"{name}.npy"] = snapshot.file(name)

    def name_of(self, array: str) -> str:
        """What a build calls one of its arrays."""
        return f"{self.group}.{array}"

    def _whole(self, snapshot: Snapshot, name: str, sizes: dict[str, int]) -> np.ndarray:
        """An array that only one segment has, or of which the newest counts."""
        whole = self.name_of(name)
        array = snapshot.array(whole)
        sizes["items"] = snapshot.base.n_rows
        check_shape(snapshot.file(whole).path, array, self.arrays[name], sizes)
        return array

    def _pieces(self, snapshot: Snapshot, name: str, sizes: dict[str, int]) -> list[np.ndarray]:
        return [self._piece(segment, [name], sizes)[name] for segment in snapshot.with_items]

    def _piece(
        self, segment: Segment, names: Iterable[str], sizes: dict[str, int]
    ) -> dict[str, np.ndarray]:
        sizes["items"] = segment.n_rows
        paths = {name: segment.folder / f"{self.name_of(name)}.npy" for name in names}
        for name, path in paths.items():
            if not segment.has(self.name_of(name)):
                raise DamagedError(path, "it is not there, and its segment has items")
        found = {name: segment.array(self.name_of(name)) for name in paths}
        for check in (check_shape, check_numbers):
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


def check_shape(path: Path, array: np.ndarray, spec: ArraySpec, sizes: dict[str, int]) -> None:
    """Raise `DamagedError` where an array has another dtype or shape. sizes: lengths that are known
    by their names; those that are seen for the first time are added.
    """
    lengths = [length - bool(spec.spans) for length in array.shape]
    if array.dtype.kind in spec.kinds and len(lengths) == len(spec.shape):
        expected = [sizes.setdefault(*pair) for pair in zip(spec.shape, lengths, strict=True)]
        if lengths == expected and min(lengths) >= 0:
            return
    known = ", ".join(f"{name} = {sizes[name]}" for name in spec.shape if name in sizes)
    raise DamagedError(
        path, f"{array.dtype.str} {array.shape} does not go with the other arrays ({known})"
    )


def check_numbers(path: Path, array: np.ndarray, spec: ArraySpec, sizes: dict[str, int]) -> None:
    """Raise `DamagedError` where row numbers lead out of the array that they are of."""
    if spec.spans:
        ends = array[0], array[-1]
        if ends != (0, sizes[spec.spans]) or (np.diff(array) < 0).any():
            raise DamagedError(path, f"spans that do not lead from 0 to {sizes[spec.spans]}")
    limit = sizes.get(spec.below)
    if limit is not None and len(array) and (array.min() < 0 or array.max() >= limit):
        raise DamagedError(path, f"row numbers outside of 0 to {limit - 1}")
