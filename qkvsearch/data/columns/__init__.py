"""What the columns of a file are: the role that each plays, and the type of its cells."""

from qkvsearch.data.columns.facts import ColumnFacts
from qkvsearch.data.columns.roles import (
    Columns,
    check_column,
    find_column,
    find_text_columns,
    require_column,
)

__all__ = [
    "ColumnFacts", "Columns", "check_column", "find_column", "find_text_columns", "require_column",
]  # fmt: skip
