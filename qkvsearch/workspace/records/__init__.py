"""What was recorded: a database of its own that every build of a workspace sees."""

from qkvsearch.workspace.records.changes import append, forget, undo
from qkvsearch.workspace.records.database import RecordsDatabase
from qkvsearch.workspace.records.rows import Record, Recorded

__all__ = [
    "Record",
    "Recorded",
    "RecordsDatabase",
    "append",
    "forget",
    "undo",
]
