"""Workspaces of older formats: read as they are, and brought up to date by the first writer."""

from qkvsearch.workspace.former.format4 import damaged_files, open_former
from qkvsearch.workspace.former.upgrade import (
    LOST_FACTS,
    clear,
    is_former,
    known_facts,
    older_builds,
    replacing,
    upgrading,
)

__all__ = [
    "LOST_FACTS", "clear", "damaged_files", "is_former", "known_facts", "older_builds",
    "open_former", "replacing", "upgrading",
]  # fmt: skip
