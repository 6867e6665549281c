"""Recorded interactions: one database for all builds of a workspace."""

from qkvsearch.store.records.database import RecordsDatabase
from qkvsearch.store.records.record_rows import NewRecord, Origin, Record

__all__ = ["NewRecord", "Origin", "Record", "RecordsDatabase"]
