"""What a new build consists of, before it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch.store.array_files import StoredFile, read_array
from qkvsearch.store.catalog.file import CatalogRows
from qkvsearch.store.segments import AFTER
from qkvsearch.store.snapshot import Snapshot

if TYPE_CHECKING:
    from qkvsearch.tables.ids import Ids


@dataclass
class BuildContents:
    """Contents of a new build: catalog, users, arrays by name, facts for the manifest.

    base: the build that a new segment is added to; None for a whole build. The catalog and the
    arrays of a segment have its own items only. tombstones: the stored rows, of any segment, that
    are no items any more, int32, ascending. shared: files of other builds that this one links to,
    by name.
    """

    catalog: CatalogRows | None = None
    users: Ids | None = None
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    base: Snapshot | None = None
    tombstones: np.ndarray | None = None
    shared: dict[str, StoredFile] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of rows that the build stores itself."""
        if self.base is None:
            return int(self.facts["n_items"])
        return len(self.arrays[AFTER]) if AFTER in self.arrays else 0

    def has(self, name: str) -> bool:
        """Return whether the build will have an array."""
        return name in self.arrays or f"{name}.npy" in self.shared

    def array(self, name: str) -> np.ndarray:
        """Return an array that the build will have: a new one, or one of another build."""
        return self.arrays[name] if name in self.arrays else read_array(self.shared[f"{name}.npy"])
