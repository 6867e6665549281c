"""The workspace on disk: SQLite and array files, published atomically, read without unpickling."""

from qkvsearch.workspace.arrays import FORMAT_VERSION
from qkvsearch.workspace.publish import BuildContents, Workspace
from qkvsearch.workspace.snapshot import Snapshot
from qkvsearch.workspace.tables import Tables

__all__ = ["FORMAT_VERSION", "BuildContents", "Snapshot", "Tables", "Workspace"]
