"""Merge segments into one base that answers as they did together."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Container
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch.errors import QkvError
from qkvsearch.heads.component import IndexComponent
from qkvsearch.heads.registry import components_of, each_component
from qkvsearch.store import BuildContents, CatalogRows, Snapshot, Workspace
from qkvsearch.store.catalog.file import CATALOG

# Above this number of segments, or share of added and deleted rows in the base, an update merges.
# Each segment costs a query a little time, and each deleted row some space on disk.
MAX_SEGMENTS, MAX_CHANGED_SHARE = 32, 0.2
# What may fail in a merge without a bug: damaged files, a deadline, a server of keys that is gone,
# a full disk, and too little memory.
CIRCUMSTANCES = (QkvError, OSError, sqlite3.Error, MemoryError)
log = logging.getLogger("qkvsearch.learn")


@dataclass(frozen=True)
class Merged:
    """Result of a merge."""

    # How many segments were merged, 1 where there was nothing to do.
    segments: int
    # How many items the base has.
    n_items: int
    # How many previous builds were removed.
    dropped: int = 0


def merge_segments(workspace: Workspace, progress: Progress | None = None) -> Merged:
    """Merge the segments of the current build into one base, and publish it.

    Answers stay the same to the last bit. Raises `WorkspaceError`.
    """
    with workspace.writing("compact"), closing(workspace.open()) as build:
        n_segments = len(build.segments)
        if not build.rows.is_plain or n_segments > 1:
            contents = merged_contents(build, progress or silent)
            workspace.publish(contents, "compact")
        return Merged(n_segments, build.facts["n_items"])


def merge_if_many(workspace: Workspace, command: str, progress: Progress) -> list[str]:
    """Merge if an update left too many or too large segments, and return notes. The merged build
    replaces that of the update, so that a rollback returns to the build before the update. A merge
    that fails by circumstances is a note and no error, because the update itself is published; the
    log says why. A bug is an error.
    """
    try:
        return _merge_if_due(workspace, command, progress)
    except CIRCUMSTANCES as error:
        log.warning("%s: the segments could not be merged: %s", workspace.path, error)
        return [f"{command} is done, but its segments could not be merged; the next change tries"]


def _merge_if_due(workspace: Workspace, command: str, progress: Progress) -> list[str]:
    with closing(workspace.open()) as build:
        if not _is_due(build):
            return []
        had_whole_ids = build.base.catalog.whole_ids
        contents = merged_contents(build, progress)
        workspace.publish(contents, command, instead_of=build.name)
        is_text = had_whole_ids and not build.catalog.are_whole("items")
    return ["All ids are text now, because some are not whole numbers."] if is_text else []


def merged_contents(
    snapshot: Snapshot, progress: Progress, but: Container[IndexComponent[Any]] = ()
) -> BuildContents:
    """Return the contents of a base with all components except those in `but`. Raises `LookupError`
    for an array that belongs to no component.
    """
    contents = BuildContents(facts=dict(snapshot.facts))
    for name in snapshot.array_names:
        if not any(component.owns(name) for component in components_of(snapshot)):
            raise LookupError(name)
    if snapshot.rows.is_plain:
        contents.shared[CATALOG] = snapshot.base.file(CATALOG)
    else:
        contents.catalog = CatalogRows.of_stored(snapshot.catalog)
        contents.users = snapshot.catalog.ids("users")
    for component in each_component(snapshot, "merging", progress):
        if component not in but:
            component.merge(contents, snapshot)
    return contents


def _is_due(snapshot: Snapshot) -> bool:
    """Return whether a build has too many segments, too many changed rows, or ids of two kinds."""
    rows = snapshot.rows
    n_added = rows.n_stored - rows.n_base
    n_deleted = int(np.count_nonzero(snapshot.tombstones < rows.n_base))
    # Text ids joined whole numbers: every read would put all items in another order.
    kinds_of_ids = {segment.catalog.whole_ids for segment in snapshot.with_items}
    return (
        len(snapshot.segments) > MAX_SEGMENTS
        or n_added + n_deleted > MAX_CHANGED_SHARE * rows.n_base
        or len(kinds_of_ids) > 1
    )
