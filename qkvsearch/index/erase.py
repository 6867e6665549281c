"""Erase a user's data: from the log, the records and every previous build."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch.data.ids import Id, Ids, id_text
from qkvsearch.errors import QkvError
from qkvsearch.index import StoredModels
from qkvsearch.index.interaction_log import LogComponent
from qkvsearch.index.learned_models import PreferencesComponent
from qkvsearch.index.merge import merged_contents
from qkvsearch.storage import BuildContents, CatalogRows, Snapshot, Workspace
from qkvsearch.storage.catalog.file import CATALOG
from qkvsearch.storage.segments import BUILDS_FOLDER, MANIFEST, Segment

FORGOTTEN = "(forgotten)"
LEARNED = (
    "Item embeddings were learned with these interactions and stay as they are until `learn` fits "
    "them again."
)


@dataclass(frozen=True)
class Forgotten:
    """Result of erasing a user: how many interactions of the log, records and previous builds were
    deleted. The notes say what stays.
    """

    interactions: int
    records: int
    builds: int
    notes: list[str]


def forget_user(
    workspace: Workspace, user: Id, *, dry_run: bool = False, progress: Progress | None = None
) -> Forgotten:
    """Delete a user's interactions and records, and every previous build.

    Afterwards no file of the workspace has the id. Item embeddings that were learned with these
    interactions stay until `learn` fits them again. dry_run: change nothing. Raises
    `UnknownIdError`.
    """
    progress = progress or silent
    with workspace.writing("forget"):
        with closing(workspace.open()) as build:
            models, row = StoredModels(build), build.catalog.user_position(user)
            is_known = row is not None or build.catalog.records.has(user)
            # After a killed run or a build from other files only previous builds have the user.
            if not (is_known or _is_in_folders(workspace, user)):
                raise build.catalog.unknown_user(user)
            text, n_interactions = build.catalog.user_text(user), 0
            is_unchanged = row is None and not _is_in_facts(build, text)
            n_builds = len(workspace.builds()) - is_unchanged
            if dry_run:
                n_records = build.catalog.records.page(user, 0, 0)[1]
                return Forgotten(len(models.history(row)), n_records, n_builds, [])
            if not is_unchanged:
                contents, n_interactions = _without(models, row, text, progress)
                workspace.publish(contents, "forget")
            plain_id = id_text(user, build.catalog.are_whole("users"))
            n_records = workspace.records.forget(plain_id, fold=build.catalog.fold_ids)
        workspace.drop_builds(even_in_use=True)
        notes = [LEARNED] if n_interactions else []
        return Forgotten(n_interactions, n_records, n_builds, [*notes, *_left(workspace, text)])


def _left(workspace: Workspace, user: Id) -> Iterator[str]:
    """Yield notes about files that may still have the user and must be removed by hand."""
    if _is_in_folders(workspace, user):
        yield (
            "A previous build could not be removed: delete the folders in "
            f"{BUILDS_FOLDER} that `builds` does not list."
        )


def _is_in_folders(workspace: Workspace, user: Id) -> bool:
    """Return whether any build on the disk, listed or not, has the user."""
    for manifest in (workspace.path / BUILDS_FOLDER).glob(f"*/{MANIFEST}"):
        with suppress(QkvError):
            segment = Segment(manifest.parent)
            if CATALOG not in segment.files:
                continue
            with closing(segment):
                if segment.catalog.find("users", [id_text(user, segment.catalog.whole_users)]):
                    return True
    return False


def _is_in_facts(snapshot: Snapshot, text: str) -> bool:
    """Return whether the facts of any segment have the id."""
    fold = snapshot.catalog.fold_ids
    return any(
        segment.facts != _scrubbed(segment.facts, text, fold) for segment in snapshot.segments
    )


def _without(
    models: StoredModels, row: int | None, text: str, progress: Progress
) -> tuple[BuildContents, int]:
    """Return a base without the user in this row, if any, and the number of their interactions."""
    contents, fold = merged_contents(models, progress), models.snapshot.catalog.fold_ids
    contents.facts = dict(_scrubbed(contents.facts, text, fold))
    if row is None:
        return contents, 0
    log = models.log("forget from")
    remains = log.users != row
    users = Ids([name for i, name in enumerate(log.user_ids.texts) if i != row], log.user_ids.fold)
    others = log.take(remains)
    rows = (others.users - (others.users > row)).astype(np.int32)
    others = replace(others, users=rows, user_ids=users)
    LogComponent().store(contents, others)
    counts = np.bincount(others.items, minlength=len(others.item_ids)).astype(np.int32)
    PreferencesComponent().put(contents, item_counts=counts)
    PreferencesComponent().forget_user(contents, row)
    contents.shared.pop(CATALOG, None)
    contents.catalog = CatalogRows.of_stored(models.snapshot.catalog)
    return contents, int((~remains).sum())


def _scrubbed(facts: Mapping[str, Any], text: str, fold: bool = False) -> Mapping[str, Any]:
    """Replace the id in facts about the log: lines about its rows, examples of its columns. Other
    facts are not about users, and may contain the same text, such as "text". fold: ids that differ
    only in case are the same.

    >>> _scrubbed({"encoder": "ann", "rows": ["ann and Ann differ", "annual"]}, "ann")
    {'encoder': 'ann', 'rows': ['(forgotten) and Ann differ', 'annual']}
    """
    word = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE if fold else 0)
    scrubbed = dict(facts)
    if "rows" in facts:
        scrubbed["rows"] = [word.sub(FORGOTTEN, line) for line in facts["rows"]]
    if "interaction_columns" in facts:
        scrubbed["interaction_columns"] = [
            column
            if column["role"] == "item"
            else {**column, "example": word.sub(FORGOTTEN, column.get("example", ""))}
            for column in facts["interaction_columns"]
        ]
    return scrubbed
