"""A workspace changed without a rebuild: items join or leave, or preferences are learned anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch.attention import exclusion_mask
from qkvsearch.data.columns import Columns
from qkvsearch.data.ids import Id
from qkvsearch.errors import QkvError
from qkvsearch.progress import Progress, silent
from qkvsearch.revision.items import require_some_left, with_items, without_items
from qkvsearch.stored import TUNED, Change, LogPart, PreferencesPart, StoredModels, parts_of
from qkvsearch.workspace import BuildContents, Snapshot, Workspace
from qkvsearch.workspace.where import Where

if TYPE_CHECKING:
    from qkvsearch.data.readers import Source


@dataclass(frozen=True)
class Revision:
    """What became of a workspace, or would with a dry run: how many items were added, replaced and
    removed, how many interactions left with them, how many items there are now, and what is to be
    said about it. `gone`: id and title of each item that was removed.
    """

    added: int
    replaced: int
    removed: int
    interactions_removed: int
    n_items: int
    notes: list[str]
    gone: Sequence[dict[str, Any]] = ()


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
    workspace, progress, named = Workspace(path), progress or silent, columns or Columns()
    return workspace.revise(
        lambda build: _publish(workspace, with_items(build, source, named), progress)
    )


def remove_items(
    path: str | Path,
    items: Id | Iterable[Id] = (),
    *,
    where: Where | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Revision:
    """Remove items from the workspace at `path`, with their interactions, and publish; with
    `dry_run` say what would be removed, and change nothing.

    `items`: ids, or titles that one item has; or `where`, a condition over the catalog's columns.
    Nothing is removed where one of them is unknown (`UnknownIdError`). Raises `QkvError` where no
    item would be left.
    """
    is_many = isinstance(items, Iterable) and not isinstance(items, str)
    named: list[Any] = list(items) if is_many else [items]  # type: ignore[arg-type]
    if bool(named) == (where is not None):
        raise QkvError("name the items to remove, or give a condition (`where`): one of the two")
    workspace, progress = Workspace(path), progress or silent

    def remove(build: Snapshot) -> Revision:
        n_items = build.facts["n_items"]
        found = [build.tables.item_named(item) for item in named]
        if where is None:
            leaving = ~exclusion_mask(n_items, [position for position, _ in found])
        else:
            leaving = build.tables.mask(where, n_items)
        gone = build.tables.cells_of(np.flatnonzero(leaving), ["id", "title"])
        if dry_run:
            done = planned_removal(build, leaving)
        else:
            done = _publish(workspace, without_items(build, leaving), progress)
        rows = [{"id": id_, "title": title} for id_, title in gone]
        return replace(done, gone=rows, notes=[*(note for _, note in found if note), *done.notes])

    return workspace.revise(remove)


def planned_removal(build: Snapshot, leaving: np.ndarray) -> Revision:
    """What would become of a workspace. Raises `QkvError` where no item would be left."""
    require_some_left(build, leaving)
    log = LogPart().read_all(build).get("items", np.zeros(0, dtype=np.int32))
    n_removed, n_interactions = int(leaving.sum()), int(leaving[log].sum())
    return Revision(0, 0, n_removed, n_interactions, len(leaving) - n_removed, [])


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
    return Revision(n_items=n_items, notes=change.notes, **counts)  # type: ignore[arg-type]


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
