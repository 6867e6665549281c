"""Workspaces of older formats: read as they are, and brought up to date by the first writer."""

from qkvsearch.workspace.former.format4 import open_former
from qkvsearch.workspace.former.upgrade import (
    is_former,
    read_facts,
    remove_database,
    replacing,
    upgrading,
)

__all__ = [
    "is_former", "open_former", "read_facts", "remove_database", "replacing", "upgrading",
]  # fmt: skip
