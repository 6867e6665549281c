"""Workspaces of older formats: read as they are, and brought up to date by the first writer."""

from qkvsearch.workspace.former.format4 import open_former
from qkvsearch.workspace.former.upgrade import (
    LOST_FACTS,
    is_former,
    known_facts,
    older_builds,
    remove_database,
    replacing,
    upgrading,
)

__all__ = [
    "LOST_FACTS", "is_former", "known_facts", "older_builds", "open_former", "remove_database",
    "replacing", "upgrading",
]  # fmt: skip
