"""A workspace changed without a rebuild: items join or leave, or preferences are learned anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch.attention import exclusion_mask
from qkvsearch.data.columns import Columns
from qkvsearch.data.ids import Id
from qkvsearch.errors import QkvError
from qkvsearch.progress import Progress, silent
from qkvsearch.revision.items import with_items, without_items
from qkvsearch.stored import TUNED, Change, PreferencesPart, StoredModels, parts_of
from qkvsearch.workspace import BuildContents, Snapshot, Workspace
from qkvsearch.workspace.where import Where

if TYPE_CHECKING:
    from qkvsearch.data.readers import Source


@dataclass(frozen=True)
class Revision:
    """What became of a workspace: how many items were added, replaced and removed, how many
    interactions left with them, how many items there are now, and what is to be said about it.
    """

    added: int
    replaced: int
    removed: int
    interactions_removed: int
    n_items: int
    notes: list[str]


def add_items(
    path: str | Path,
    source: Source,
    columns: Columns | None = None,
    progress: Progress | None = None,
) -> Revision:
    """Add the items of a file or frame to the workspace at `path`, and publish.

    An item whose id is already there is replaced; its interactions stay. New ones are cold: where
    the build learned how text tells of preferences, `recommend` places them by their text. Raises
    `QkvError`, and `DataError` where the file lacks a column that search reads.
    """
    return _revise(path, lambda build: with_items(build, source, columns or Columns()), progress)


def remove_items(
    path: str | Path,
    items: Id | Iterable[Id] = (),
    *,
    where: Where | None = None,
    progress: Progress | None = None,
) -> Revision:
    """Remove items from the workspace at `path`, with their interactions, and publish.

    `items`: ids, or titles that one item has; or `where`, a condition over the catalog's columns.
    Nothing is removed where one of them is unknown (`UnknownIdError`). Raises `QkvError` where no
    item would be left.
    """
    is_many = isinstance(items, Iterable) and not isinstance(items, str)
    named: list[Any] = list(items) if is_many else [items]  # type: ignore[arg-type]
    if bool(named) == (where is not None):
        raise QkvError("name the items to remove, or give a condition (`where`): one of the two")

    def plan(build: Snapshot) -> Change:
        if where is not None:
            return without_items(build, build.tables.mask(where, build.facts["n_items"]))
        positions = [build.tables.item_position(item) for item in named]
        return without_items(build, ~exclusion_mask(build.facts["n_items"], positions))

    return _revise(path, plan, progress)


def learn_preferences(
    path: str | Path, tuned: Mapping[str, Any] | None, progress: Progress | None = None
) -> None:
    """Fit `ImplicitALS` to the whole log of the workspace at `path`, and publish; all else stays.

    tuned: {"settings": its parameters, …}, kept among the build's facts; None for the default
    settings. Where another build is published meanwhile, it begins again from that one. Raises
    `WorkspaceError` where there are no interactions; what was there before then stays.
    """
    workspace, progress = Workspace(path), progress or silent

    def learn(build: Snapshot) -> None:
        log = StoredModels(build).log("learn from")
        nobody = np.zeros(build.facts["n_items"], dtype=bool)
        contents = revised_contents(without_items(build, nobody), progress)
        contents.facts.pop(TUNED, None)
        if tuned:
            contents.facts[TUNED] = dict(tuned)
        PreferencesPart().learn(contents, log, progress)
        workspace.publish(contents)

    workspace.revise(learn)


def revised_contents(change: Change, progress: Progress) -> BuildContents:
    """Rows that stay are copied, new texts are read by the encoders that there are, and arrays that
    stay as they are belong to both builds. Nothing is learned. Raises `LookupError` for an array
    that no part owns: what becomes of it is unknown.
    """
    build = change.former.snapshot
    facts = {name: fact for name, fact in build.facts.items() if name not in ("files", "format")}
    facts["n_items"] = len(change.catalog)
    facts["columns"] = [column.to_record() for column in change.catalog.columns]
    contents = BuildContents(change.catalog, build.tables.ids("users"), facts=facts, base=build)
    parts = [part for part in parts_of(change.former) if part.is_in(build)]
    for name in build.facts["files"]:
        if not any(part.owns(name) for part in parts):
            raise LookupError(name)
    for step, part in enumerate(parts):
        progress("revising", step, len(parts))
        part.revise(contents, change, progress)
    progress("revising", len(parts), len(parts))
    return contents


def _revise(
    path: str | Path, plan: Callable[[Snapshot], Change], progress: Progress | None
) -> Revision:
    """Derive a build from the current one and publish it."""
    workspace, progress = Workspace(path), progress or silent
    return workspace.revise(lambda build: _publish(workspace, plan(build), progress))


def _publish(workspace: Workspace, change: Change, progress: Progress) -> Revision:
    """The build that the change makes of the former one; none where nothing changes."""
    facts, n_items = change.former.snapshot.facts, len(change.catalog)
    added = int((change.origin < 0).sum())
    counts = {
        "added": added,
        "replaced": change.replaced,
        "removed": change.former.n_items + added - n_items,
        "interactions_removed": 0,
    }
    if any(counts.values()):
        contents = revised_contents(change, progress)
        before = facts.get("n_interactions", 0)
        counts["interactions_removed"] = before - contents.facts.get("n_interactions", 0)
        contents.facts |= _history(facts, counts)
        progress("saving", 0, 1)
        workspace.publish(contents)
        progress("saving", 1, 1)
    return Revision(**counts, n_items=n_items, notes=change.notes)


def _history(facts: Any, counts: dict[str, int]) -> dict[str, Any]:
    """The sum of all updates since the build, and a line about it below those of the build."""
    former = facts.get("revised", {})
    total = {name: former.get(name, 0) + count for name, count in counts.items()}
    line = (
        f"since then: {total['added']:,} added, {total['replaced']:,} replaced, "
        f"{total['removed']:,} removed with {total['interactions_removed']:,} interactions"
    )
    rows = facts["rows"][:-1] if former else facts["rows"]
    return {"revised": total, "rows": [*rows, line]}
