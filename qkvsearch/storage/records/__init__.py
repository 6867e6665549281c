"""Recorded interactions: one database for all builds of a workspace."""

from qkvsearch.storage.records.changes import append, forget, undo
from qkvsearch.storage.records.database import RecordsDatabase
from qkvsearch.storage.records.record_rows import Record, Recorded

__all__ = [
    "Record",
    "Recorded",
    "RecordsDatabase",
    "append",
    "forget",
    "undo",
]
