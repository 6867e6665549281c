"""The workspace on disk: segments under a root that is written last, read without unpickling."""

from qkvsearch.workspace.catalog.file import CatalogRows
from qkvsearch.workspace.publish import BuildContents, Workspace
from qkvsearch.workspace.root import BuildEntry
from qkvsearch.workspace.segments import FORMAT_VERSION
from qkvsearch.workspace.snapshot import Snapshot
from qkvsearch.workspace.tables import Tables

__all__ = [
    "FORMAT_VERSION", "BuildContents", "BuildEntry", "CatalogRows", "Snapshot", "Tables",
    "Workspace",
]  # fmt: skip
