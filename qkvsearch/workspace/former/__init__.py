"""Workspaces of older formats: read as they are, and brought up to date by the first writer."""

from __future__ import annotations

from pathlib import Path

from qkvsearch.workspace.former.database import DATABASE
from qkvsearch.workspace.root import ROOT


def is_former(workspace: Path) -> bool:
    """Whether an older version wrote the workspace, and none of today's since."""
    return (workspace / DATABASE).is_file() and not (workspace / ROOT).exists()
