"""Base class of the stored components of a build, and the specification of their arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.callbacks import Progress
from qkvsearch.errors import DamagedError
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.segments import Segment
from qkvsearch.text.encoders import dense_heads

if TYPE_CHECKING:
    from qkvsearch.heads.stored_models import StoredModels
    from qkvsearch.tables.catalog import Catalog
    from qkvsearch.tables.interactions import Interactions

T = TypeVar("T")
# The fact that names the language of a build's texts.
LANGUAGE = "language"
# The fact with the shares of the heads of a recommendation, as `HeadShares` has them.
RECOMMEND_HEADS = "recommend_heads"
# The fact that has the weights of text columns, by head.
COLUMN_WEIGHTS = "column_weights"
# Exceptions that mean that arrays or facts have the right checksum, and yet no build wrote them.
MISFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def main_head(facts: Mapping[str, Any]) -> str:
    """Return the dense head that represents meaning where only one head can be used."""
    return "lsa" if facts["encoder"] == "corpus" else dense_heads(facts["head_weights"])[-1]


@dataclass(frozen=True)
class Addition:
    """Items to be added to a build. An item with a known id replaces the old one.

    previous: the build. catalog: only the new items, by id. positions: int64 (n,), the row in the
    build of the item that each one replaces, −1 for none. unread: bool (n,), False where the texts
    are those of the replaced item, which are encoded already.
    """

    previous: StoredModels
    catalog: Catalog
    positions: np.ndarray
    unread: np.ndarray

    @cached_property
    def replaced(self) -> np.ndarray:
        """Rows in the build of the items that are replaced, int64."""
        return self.positions[self.positions >= 0]

    @cached_property
    def new_fields(self) -> list[list[str]]:
        """The texts to be encoded: a list for each text column, one text for each unread item."""
        return [list(compress(texts, self.unread)) for texts in self.catalog.fields()]


class ArraySpec(NamedTuple):
    """The expected dtype, shape and content of a stored array.

    kinds: NumPy's letters of the dtype kinds. shape: a name for each length. "items" is the number
    of rows of a segment; lengths with the same name are equal in all arrays that are read together.

    rows: "texts" where a row is made of an item's texts, so that every segment has its own rows;
    "interactions" where only the base has rows. spans: the array has where the spans of that
    dimension begin and is one longer than `shape` says. below: it has rows of that dimension.
    """

    kinds: str
    shape: tuple[str, ...]
    rows: Literal["", "texts", "interactions"] = ""
    spans: str = ""
    below: str = ""


@dataclass(frozen=True)
class IndexComponent(ABC, Generic[T]):
    """One stored model of a build.

    group: the prefix of the names of its arrays. arrays: the specification of each array, by the
    rest of its name.

    Callers of `extend`, `delete` and `merge` pass `contents` with the facts of the previous build
    and the new `n_items`.
    """

    group: str
    arrays: ClassVar[Mapping[str, ArraySpec]]

    @abstractmethod
    def store(self, contents: BuildContents, *args: Any, **kwargs: Any) -> None:
        """Add a fitted model to a whole build: its arrays, and facts for the manifest."""

    @abstractmethod
    def load(self, models: StoredModels) -> T:
        """Load the model, without importing scikit-learn or numba. Raises `DamagedError`."""

    def extend(self, contents: BuildContents, addition: Addition, progress: Progress) -> None:
        """Add the arrays of a segment with new items, and what changes. Nothing is learned."""

    def delete(self, contents: BuildContents, models: StoredModels, deleted: np.ndarray) -> None:
        """Add what changes where items are deleted. deleted: their rows in `models`, int64 (n,)."""

    def merge(self, contents: BuildContents, models: StoredModels, progress: Progress) -> None:
        """Add the arrays of one base that answers as all segments of `models` do together."""
        snapshot = models.snapshot
        for name in self.names_in(snapshot):
            if snapshot.rows.is_plain or not self.arrays[name].rows:
                self.share(contents, snapshot, name)
            else:
                self.put(contents, **{name: self.read(snapshot, name)[name]})

    def owns(self, name: str) -> bool:
        """Return whether an array with this full name belongs to the component."""
        return name in map(self.name_of, self.arrays)

    def is_in(self, snapshot: Snapshot) -> bool:
        """Return whether a build has the component."""
        return bool(self.names_in(snapshot))

    def names_in(self, snapshot: Snapshot) -> list[str]:
        """Return the names of its arrays that a build has."""
        return [array for array in self.arrays if self.name_of(array) in snapshot]

    def read(self, snapshot: Snapshot, *names: str, **sizes: int) -> dict[str, np.ndarray]:
        """Read and check arrays, by default all that the build has, with the rows in the order of
        the build's items. sizes: lengths by their names in `ArraySpec.shape`.
        """
        arrays = {}
        for name in names or self.names_in(snapshot):
            if self.arrays[name].rows == "texts":
                arrays[name] = snapshot.rows.take(self._pieces(snapshot, name, sizes))
            else:
                arrays[name] = self._whole(snapshot, name, sizes)
                if self.arrays[name].rows:
                    arrays[name] = snapshot.rows.by_origin(arrays[name])
        return arrays

    def rows_at(self, snapshot: Snapshot, name: str, positions: np.ndarray) -> np.ndarray:
        """Read rows (n, …) of an array for items `positions` (n,); zeros for −1 and for none."""
        if self.arrays[name].rows == "texts":
            pieces, stored = self._pieces(snapshot, name, {}), snapshot.rows.stored
        else:
            pieces, stored = [self._whole(snapshot, name, {})], snapshot.rows.origin
        stored_rows = np.where(positions >= 0, stored[positions], -1)
        rows = np.zeros((len(stored_rows), *pieces[0].shape[1:]), pieces[0].dtype)
        start = 0
        for piece in pieces:
            own = np.flatnonzero((stored_rows >= start) & (stored_rows < start + len(piece)))
            rows[own] = piece[stored_rows[own] - start]
            start += len(piece)
        return rows

    def piece(self, segment: Segment, *names: str, **sizes: int) -> dict[str, np.ndarray]:
        """Read and check arrays of one segment."""
        return self._piece(segment, names, sizes)

    def pending(self, contents: BuildContents, array: str) -> np.ndarray:
        """Return one of its arrays that will be published: a new one or a shared one."""
        return contents.array(self.name_of(array))

    def is_pending(self, contents: BuildContents, array: str) -> bool:
        """Return whether `contents` has one of its arrays."""
        return contents.has(self.name_of(array))

    def put(self, contents: BuildContents, **arrays: Any) -> None:
        """Add arrays to the build, and share them no longer; None removes one."""
        for array, values in arrays.items():
            name = self.name_of(array)
            contents.shared.pop(f"{name}.npy", None)
            contents.arrays.pop(name, None)
            if values is not None:
                contents.arrays[name] = values

    def share(self, contents: BuildContents, snapshot: Snapshot, *arrays: str) -> None:
        """Share arrays of another build."""
        for name in map(self.name_of, arrays):
            contents.shared[f"{name}.npy"] = snapshot.file(name)

    def name_of(self, array: str) -> str:
        """Return the full name of one of its arrays."""
        return f"{self.group}.{array}"

    def _whole(self, snapshot: Snapshot, name: str, sizes: dict[str, int]) -> np.ndarray:
        """Read an array from the newest segment that has it."""
        full_name = self.name_of(name)
        array = snapshot.array(full_name)
        sizes["items"] = snapshot.base.n_rows
        check_shape(snapshot.file(full_name).path, array, self.arrays[name], sizes)
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
        arrays = {name: segment.array(self.name_of(name)) for name in paths}
        for check in (check_shape, check_numbers):
            for name, array in arrays.items():
                check(paths[name], array, self.arrays[name], sizes)
        return arrays


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


def check_shape(path: Path, array: np.ndarray, spec: ArraySpec, sizes: dict[str, int]) -> None:
    """Raise `DamagedError` for another dtype or shape. sizes: lengths by name, extended here."""
    lengths = [length - bool(spec.spans) for length in array.shape]
    if array.dtype.kind in spec.kinds and len(lengths) == len(spec.shape):
        expected = [sizes.setdefault(*pair) for pair in zip(spec.shape, lengths, strict=True)]
        if lengths == expected and min(lengths) >= 0:
            return
    expected_sizes = ", ".join(f"{name} = {sizes[name]}" for name in spec.shape if name in sizes)
    raise DamagedError(
        path,
        f"{array.dtype.str} {array.shape} does not go with the other arrays ({expected_sizes})",
    )


def check_numbers(path: Path, array: np.ndarray, spec: ArraySpec, sizes: dict[str, int]) -> None:
    """Raise `DamagedError` where row numbers or spans are out of range."""
    if spec.spans:
        ends = array[0], array[-1]
        if ends != (0, sizes[spec.spans]) or (np.diff(array) < 0).any():
            raise DamagedError(path, f"spans that do not lead from 0 to {sizes[spec.spans]}")
    limit = sizes.get(spec.below)
    if limit is not None and len(array) and (array.min() < 0 or array.max() >= limit):
        raise DamagedError(path, f"row numbers outside of 0 to {limit - 1}")
