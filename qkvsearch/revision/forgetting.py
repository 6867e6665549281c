"""A person is deleted: from the log, the records and every former build."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qkvsearch.data.ids import Id, Ids
from qkvsearch.progress import Progress, silent
from qkvsearch.revision.merging import merged_contents
from qkvsearch.stored import LogPart, PreferencesPart, StoredModels
from qkvsearch.workspace import BuildContents, CatalogRows, Workspace
from qkvsearch.workspace.catalog.file import CATALOG

FORGOTTEN = "(forgotten)"


@dataclass(frozen=True)
class Forgotten:
    """How many interactions of the log and how many records went, and how many former builds that
    may have held them. The notes say what stays.
    """

    interactions: int
    records: int
    builds: int
    notes: list[str]


def forget_user(
    workspace: Workspace, user: Id, *, dry_run: bool = False, progress: Progress | None = None
) -> Forgotten:
    """Delete a person: their part of the log, what was recorded of them, and every former build.

    Afterwards no file of the workspace holds the id. Item embeddings that were learned with their
    interactions stay until `learn` fits them again. With `dry_run` nothing changes. Raises
    `UnknownIdError`.
    """
    progress = progress or silent
    with workspace.writing("forget"):
        with closing(workspace.open()) as build:
            models, row = StoredModels(build), build.tables.user_position(user)
            if row is None and not build.tables.records.has(user):
                raise build.tables.unknown_user(user)
            text, n_interactions = build.tables.user_text(user), 0
            # The current build holds nothing of who is in the records alone.
            n_builds = len(workspace.builds()) - (row is None)
            if dry_run:
                n_records = build.tables.records.page(user, 0, 0)[1]
                return Forgotten(len(models.history(row)), n_records, n_builds, [])
            if row is not None:
                contents, n_interactions = _without(models, row, text, progress)
                workspace.publish(contents, "forget")
            n_records = workspace.forget_records(build.tables, user)
        workspace.drop_builds(though_held=True)
    learned = (
        "Item embeddings were learned with these interactions and stay as they are until `learn` "
        "fits them again."
    )
    return Forgotten(n_interactions, n_records, n_builds, [learned] if n_interactions else [])


def _without(
    models: StoredModels, row: int, text: str, progress: Progress
) -> tuple[BuildContents, int]:
    """A base without the user in this row, and how many interactions they had."""
    contents = merged_contents(models, progress)
    log = models.log("forget from")
    stays = log.users != row
    users = Ids([name for i, name in enumerate(log.user_ids.texts) if i != row], log.user_ids.fold)
    kept = log.take(stays)
    rows = (kept.users - (kept.users > row)).astype(np.int32)
    kept = replace(kept, users=rows, user_ids=users)
    LogPart().store(contents, kept)
    counts = np.bincount(kept.items, minlength=len(kept.item_ids)).astype(np.int32)
    PreferencesPart().put(contents, item_counts=counts)
    contents.shared.pop(CATALOG, None)
    contents.catalog = CatalogRows.of_tables(models.snapshot.tables)
    contents.facts = {name: _scrubbed(fact, text) for name, fact in contents.facts.items()}
    return contents, int((~stays).sum())


def _scrubbed(fact: Any, text: str) -> Any:
    """A fact without the id, be it the example of a column or a word of a line.

    >>> _scrubbed({"example": "ann", "rows": ["ann and Ann differ", "annual"]}, "ann")
    {'example': '(forgotten)', 'rows': ['(forgotten) and Ann differ', 'annual']}
    """
    if isinstance(fact, str):
        return re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", FORGOTTEN, fact)
    if isinstance(fact, Mapping):
        return {name: _scrubbed(value, text) for name, value in fact.items()}
    if isinstance(fact, list | tuple):
        return [_scrubbed(value, text) for value in fact]
    return fact
