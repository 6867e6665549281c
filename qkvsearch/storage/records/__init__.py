"""Recorded interactions: one database for all builds of a workspace."""

from qkvsearch.storage.records.database import RecordsDatabase
from qkvsearch.storage.records.record_rows import Record, Recorded

__all__ = ["Record", "Recorded", "RecordsDatabase"]
