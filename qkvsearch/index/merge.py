"""Segments merged into one base, which answers as they did together."""

from __future__ import annotations

from collections.abc import Container
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch._utils.progress import Progress, silent
from qkvsearch.errors import WorkspaceError
from qkvsearch.index import StoredModels
from qkvsearch.index.component import IndexComponent
from qkvsearch.index.registry import components_of, each_component
from qkvsearch.storage import BuildContents, CatalogRows, Snapshot, Workspace
from qkvsearch.storage.catalog.file import CATALOG

# Above so many segments, or so large a share of the base's rows that joined or departed, an update
# merges. Each segment costs a query a little, and each departed row some room on disk.
MAX_SEGMENTS, MAX_CHANGED_SHARE = 32, 0.2


@dataclass(frozen=True)
class Merged:
    """segments: how many were merged, 1 where there was nothing to do. n_items: in the base now.
    dropped: former builds that were removed.
    """

    segments: int
    n_items: int
    dropped: int = 0


def merge_segments(workspace: Workspace, progress: Progress | None = None) -> Merged:
    """Merge the segments of the current build into one base, and publish; answers stay as they are
    to the last bit. Raises `WorkspaceError`.
    """
    with workspace.writing("compact"), closing(workspace.open()) as build:
        n_segments = len(build.segments)
        if not build.rows.is_plain or n_segments > 1:
            contents = merged_contents(StoredModels(build), progress or silent)
            workspace.publish(contents, "compact")
        return Merged(n_segments, build.facts["n_items"])


def merge_if_many(workspace: Workspace, command: str, progress: Progress) -> list[str]:
    """Merge what an update made too many or too large; what is to be said of it. The merged build
    takes the place of the update's own, so that a rollback returns to what was before. The update
    is done already: where merging fails, that is said, and is no error.
    """
    with closing(workspace.open()) as build:
        if not _is_due(build):
            return []
        was_whole = build.base.catalog.whole_ids
        try:
            contents = merged_contents(StoredModels(build), progress)
            workspace.publish(contents, command, instead_of=build.name)
        except WorkspaceError as error:
            return [f"What {command} did is done; its segments were not merged: {error}"]
        is_text = was_whole and not build.catalog.are_whole("items")
    return ["All ids are text from now on."] if is_text else []


def merged_contents(
    models: StoredModels, progress: Progress, but: Container[IndexComponent[Any]] = ()
) -> BuildContents:
    """A base with all parts but these. Raises `LookupError` for an array that no part owns: what
    becomes of it is unknown.
    """
    snapshot = models.snapshot
    contents = BuildContents(facts=dict(snapshot.facts))
    for name in snapshot.array_names:
        if not any(part.owns(name) for part in components_of(models)):
            raise LookupError(name)
    if snapshot.rows.is_plain:
        contents.shared[CATALOG] = snapshot.base.file(CATALOG)
    else:
        contents.catalog = CatalogRows.of_stored(snapshot.catalog)
        contents.users = snapshot.catalog.ids("users")
    for part in each_component(models, "merging", progress):
        if part not in but:
            part.merge(contents, models, progress)
    return contents


def _is_due(snapshot: Snapshot) -> bool:
    rows = snapshot.rows
    n_departed = int(np.count_nonzero(snapshot.tombstones < rows.n_base))
    changed = rows.n_stored - rows.n_base + n_departed
    kinds = {segment.catalog.whole_ids for segment in snapshot.with_items}
    return (
        len(snapshot.segments) > MAX_SEGMENTS
        or changed > MAX_CHANGED_SHARE * rows.n_base
        or len(kinds) > 1
    )
