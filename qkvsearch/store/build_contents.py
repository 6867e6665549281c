"""What a new build consists of, before it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.scratch import in_file
from qkvsearch.store.array_files import StoredFile, read_array
from qkvsearch.store.catalog.file import CatalogRows
from qkvsearch.store.segments import AFTER, ORIGIN
from qkvsearch.store.snapshot import Snapshot

if TYPE_CHECKING:
    from qkvsearch.tables.catalog import Catalog
    from qkvsearch.tables.ids import Ids

# Arrays of so many bytes or more wait in files: those of a large catalog would take a gigabyte.
LARGE = 1 << 24


@dataclass
class BuildContents:
    """Contents of a new build. The catalog and the arrays of a segment have its own items only."""

    catalog: CatalogRows | None = None
    users: Ids | None = None
    # By their full names.
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    # What the manifest says about the build.
    facts: dict[str, Any] = field(default_factory=dict)
    # The build that a new segment is added to; None for a whole build.
    base: Snapshot | None = None
    # The stored rows, of any segment, that are no items any more, int32, ascending.
    tombstones: np.ndarray | None = None
    # Files of other builds that this one links to, by name.
    shared: dict[str, StoredFile] = field(default_factory=dict)

    @classmethod
    def adding(
        cls,
        base: Snapshot,
        items: Catalog,
        positions: np.ndarray,
        removed: np.ndarray,
        facts: dict[str, Any],
    ) -> BuildContents:
        """Return a segment with new items, without the arrays of components.

        positions: the row in `base` of the item that each one replaces, −1 for none, int64 (n,). A
        replaced item is deleted, and the new one keeps its interactions. removed: rows in `base` of
        the items that are deleted as well, int64. Raises `LookupError` where the items have other
        columns.
        """
        rows = base.rows
        deleted = np.concatenate([positions[positions >= 0], removed])
        arrays = {
            AFTER: base.base.catalog.rows_before(items.ids),
            ORIGIN: np.where(positions >= 0, rows.origin[positions], -1),
        }
        return cls(
            CatalogRows.of_segment(items, base.catalog),
            arrays=arrays,
            facts=facts,
            base=base,
            tombstones=np.union1d(base.tombstones, rows.stored[deleted]),
        )

    @classmethod
    def removing(cls, base: Snapshot, deleted: np.ndarray, facts: dict[str, Any]) -> BuildContents:
        """Return a segment that deletes the items in these rows of `base`, int64 (n,)."""
        tombstones = np.union1d(base.tombstones, base.rows.stored[deleted])
        return cls(facts=facts, base=base, tombstones=tombstones)

    @property
    def n_rows(self) -> int:
        """Number of rows that the build stores itself."""
        if self.base is None:
            return int(self.facts["n_items"])
        return len(self.arrays[AFTER]) if AFTER in self.arrays else 0

    def add(self, name: str, array: np.ndarray) -> None:
        """Add an array by its full name. A large one waits in a file until the build is written."""
        self.arrays[name] = in_file(array, LARGE)

    def has(self, name: str) -> bool:
        """Return whether the build will have an array."""
        return name in self.arrays or f"{name}.npy" in self.shared

    def array(self, name: str) -> np.ndarray:
        """Return an array that the build will have: a new one, or one of another build."""
        return self.arrays[name] if name in self.arrays else read_array(self.shared[f"{name}.npy"])
