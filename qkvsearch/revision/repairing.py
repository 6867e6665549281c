"""What is damaged is derived again, where it can be."""

from __future__ import annotations

from dataclasses import dataclass

from qkvsearch.progress import Progress
from qkvsearch.workspace import Workspace


@dataclass(frozen=True)
class Repaired:
    """rebuilt: what was made again. lost: what could not be. The notes say what to do."""

    rebuilt: list[str]
    lost: list[str]
    notes: list[str]


def repair(workspace: Workspace, progress: Progress | None = None) -> Repaired:
    raise NotImplementedError
