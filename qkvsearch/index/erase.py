"""A person is deleted: from the log, the records and every former build."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qkvsearch._utils.progress import Progress, silent
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
            models, row = StoredModels(build), build.catalog.user_position(user)
            is_known = row is not None or build.catalog.records.has(user)
            # A run that was killed, or a build from other files, left them to former builds alone.
            if not (is_known or _is_in_folders(workspace, user)):
                raise build.catalog.unknown_user(user)
            text, n_interactions = build.catalog.user_text(user), 0
            stays = row is None and not _is_told(build, text)
            n_builds = len(workspace.builds()) - stays
            if dry_run:
                n_records = build.catalog.records.page(user, 0, 0)[1]
                return Forgotten(len(models.history(row)), n_records, n_builds, [])
            if not stays:
                contents, n_interactions = _without(models, row, text, progress)
                workspace.publish(contents, "forget")
            n_records = workspace.forget_records(build.catalog, user)
        workspace.drop_builds(even_in_use=True)
        notes = [LEARNED] if n_interactions else []
        return Forgotten(n_interactions, n_records, n_builds, [*notes, *_left(workspace, text)])


def _left(workspace: Workspace, user: Id) -> Iterator[str]:
    """What may still hold the user, and has to be removed by hand."""
    if _is_in_folders(workspace, user):
        yield f"A former build could not be removed: delete in {BUILDS_FOLDER} what is not listed."


def _is_in_folders(workspace: Workspace, user: Id) -> bool:
    """Whether any build on the disk, listed or not, has the user."""
    for manifest in (workspace.path / BUILDS_FOLDER).glob(f"*/{MANIFEST}"):
        with suppress(QkvError):
            segment = Segment(manifest.parent)
            if CATALOG not in segment.files:
                continue
            with closing(segment):
                if segment.catalog.find("users", [id_text(user, segment.catalog.whole_users)]):
                    return True
    return False


def _is_told(snapshot: Snapshot, text: str) -> bool:
    """Whether the facts of any segment have the id."""
    fold = snapshot.catalog.fold_ids
    return any(
        segment.facts != _scrubbed(segment.facts, text, fold) for segment in snapshot.segments
    )


def _without(
    models: StoredModels, row: int | None, text: str, progress: Progress
) -> tuple[BuildContents, int]:
    """A base without the user in this row, if any, and how many interactions they had."""
    contents, fold = merged_contents(models, progress), models.snapshot.catalog.fold_ids
    contents.facts = dict(_scrubbed(contents.facts, text, fold))
    if row is None:
        return contents, 0
    log = models.log("forget from")
    stays = log.users != row
    users = Ids([name for i, name in enumerate(log.user_ids.texts) if i != row], log.user_ids.fold)
    kept = log.take(stays)
    rows = (kept.users - (kept.users > row)).astype(np.int32)
    kept = replace(kept, users=rows, user_ids=users)
    LogComponent().store(contents, kept)
    counts = np.bincount(kept.items, minlength=len(kept.item_ids)).astype(np.int32)
    PreferencesComponent().put(contents, item_counts=counts)
    PreferencesComponent().forget_user(contents, row)
    contents.shared.pop(CATALOG, None)
    contents.catalog = CatalogRows.of_stored(models.snapshot.catalog)
    return contents, int((~stays).sum())


def _scrubbed(facts: Mapping[str, Any], text: str, fold: bool = False) -> Mapping[str, Any]:
    """Without the id in what was read of the log: lines about its rows, examples of its columns.
    Other facts are about no person, and may be spelled like an id, such as "text". fold: in every
    spelling that differs in case alone.

    >>> _scrubbed({"encoder": "ann", "rows": ["ann and Ann differ", "annual"]}, "ann")
    {'encoder': 'ann', 'rows': ['(forgotten) and Ann differ', 'annual']}
    """
    word = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE if fold else 0)
    found = dict(facts)
    if "rows" in facts:
        found["rows"] = [word.sub(FORGOTTEN, line) for line in facts["rows"]]
    if "interaction_columns" in facts:
        found["interaction_columns"] = [
            column
            if column["role"] == "item"
            else {**column, "example": word.sub(FORGOTTEN, column.get("example", ""))}
            for column in facts["interaction_columns"]
        ]
    return found
