"""The workspace on disk: segments under a root that is written last, read without unpickling."""

from qkvsearch.storage.catalog.file import CatalogRows
from qkvsearch.storage.catalog.stored import StoredCatalog
from qkvsearch.storage.root import BuildEntry
from qkvsearch.storage.segments import FORMAT_VERSION
from qkvsearch.storage.snapshot import Snapshot
from qkvsearch.storage.workspace import BuildContents, Workspace

__all__ = [
    "FORMAT_VERSION", "BuildContents", "BuildEntry", "CatalogRows", "Snapshot", "StoredCatalog",
    "Workspace",
]  # fmt: skip
