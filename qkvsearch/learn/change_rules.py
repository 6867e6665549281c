"""What the rows of a file change of the items that a build has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ChangeRule:
    """How the rows of a file change the items that are there.

    The default is what `add` does: a row replaces its item, and a column that the file lacks is
    empty afterwards.
    """

    # A column that the file lacks stays as it is.
    keeps_columns: bool = False
    # All ids of the file are there already, so that it needs neither titles nor texts.
    known_only: bool = False
    # A cell that is not of the type of its column is an error; otherwise it is emptied.
    refuses_unfit: bool = False
    # Cells as they were shown to whoever sends them back, by the id and the stored column. An item
    # that still has such a cell keeps it: it is not read again.
    shown: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


REPLACE = ChangeRule()
UPDATE = ChangeRule(keeps_columns=True, known_only=True)
# A request that changes some columns of one item.
PATCH = ChangeRule(keeps_columns=True, known_only=True, refuses_unfit=True)
SYNC = ChangeRule(keeps_columns=True)
