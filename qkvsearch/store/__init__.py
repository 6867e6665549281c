"""The workspace on disk: segments under a root that is written last, read without unpickling."""

from qkvsearch.store.build_contents import BuildContents
from qkvsearch.store.catalog.file import CatalogRows
from qkvsearch.store.catalog.stored import StoredCatalog
from qkvsearch.store.root import BuildEntry
from qkvsearch.store.segments import FORMAT_VERSION
from qkvsearch.store.snapshot import Snapshot
from qkvsearch.store.workspace import Workspace

__all__ = [
    "FORMAT_VERSION",
    "BuildContents",
    "BuildEntry",
    "CatalogRows",
    "Snapshot",
    "StoredCatalog",
    "Workspace",
]
