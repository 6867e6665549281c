"""Where it lives on disk: SQLite and array files, published atomically, read without unpickling."""

from qkvsearch.workspace.store import BuildContents, Snapshot, Workspace

__all__ = ["BuildContents", "Snapshot", "Workspace"]
