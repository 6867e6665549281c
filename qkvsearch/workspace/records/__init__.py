"""What was recorded: a database of its own that every build of a workspace sees."""

from qkvsearch.workspace.records.changes import append, forget, undo
from qkvsearch.workspace.records.database import RecordsDatabase
from qkvsearch.workspace.records.repair import RecordsRepair, repair_records
from qkvsearch.workspace.records.rows import Record, Recorded
from qkvsearch.workspace.records.view import Records

__all__ = [
    "Record",
    "Recorded",
    "Records",
    "RecordsDatabase",
    "RecordsRepair",
    "append",
    "forget",
    "repair_records",
    "undo",
]
