"""Items join or leave: a segment with what is new, and marks for what departed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.progress import Progress, silent
from qkvsearch.attention import exclusion_mask
from qkvsearch.data.columns import Columns
from qkvsearch.data.ids import Id
from qkvsearch.errors import QkvError, quantity
from qkvsearch.index import StoredModels
from qkvsearch.index.component import Addition
from qkvsearch.index.merge import merge_if_many
from qkvsearch.index.registry import each_component
from qkvsearch.index.tokens import LEFT_OUT
from qkvsearch.query.where import Where
from qkvsearch.storage import BuildContents, CatalogRows, Snapshot, Workspace
from qkvsearch.storage.segments import AFTER, ORIGIN

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
    workspace: Workspace,
    source: Source,
    columns: Columns | None = None,
    progress: Progress | None = None,
) -> Revision:
    """Add the items of a file or frame, and publish.

    An item whose id is already there is replaced; its interactions stay. New ones are cold: where
    the build learned how text tells of preferences, `recommend` places them by their text. Raises
    `QkvError`, and `DataError` where the file lacks a column that search reads.
    """
    from qkvsearch.data.readers import load
    from qkvsearch.index.align_rows import addition

    frame, report = load(source, "items")
    progress = progress or silent
    with workspace.writing("add"), closing(workspace.open()) as build:
        joining = addition(build, frame, columns or Columns(), report)
        n_added = int((joining.positions < 0).sum())
        n_items = build.facts["n_items"] + n_added
        done = Revision(n_added, len(joining.positions) - n_added, 0, 0, n_items, [str(report)])
        contents = _with_rows(build, joining, done)
        for part in each_component(joining.former, "revising", progress):
            part.extend(contents, joining, progress)
        return _published(workspace, contents, "add", done, progress)


def remove_items(
    workspace: Workspace,
    items: Id | Iterable[Id] = (),
    *,
    where: Where | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Revision:
    """Remove items with their interactions, and publish; with `dry_run` say what would be removed,
    and change nothing.

    `items`: ids, or titles that one item has; or `where`, a condition over the catalog's columns.
    Nothing is removed where one of them is unknown (`UnknownIdError`). Raises `QkvError` where no
    item would be left.
    """
    is_many = isinstance(items, Iterable) and not isinstance(items, str)
    named: list[Any] = list(items) if is_many else [items]  # type: ignore[arg-type]
    if bool(named) == (where is not None):
        raise QkvError("name the items to remove, or give a condition (`where`): one of the two")
    if dry_run:
        with closing(workspace.open()) as build:
            return _leaving(build, named, where)[1]
    progress = progress or silent
    with workspace.writing("remove"), closing(workspace.open()) as build:
        leaving, done = _leaving(build, named, where)
        if not len(leaving):
            return done
        reader, contents = StoredModels(build), _segment(build, done)
        contents.tombstones = np.union1d(build.tombstones, build.rows.stored[leaving])
        for part in each_component(reader, "revising", progress):
            part.withdraw(contents, reader, leaving)
        return _published(workspace, contents, "remove", done, progress)


def _leaving(
    snapshot: Snapshot, named: Sequence[Any], where: Where | None
) -> tuple[np.ndarray, Revision]:
    """Row numbers of the items to remove, and what becomes of the workspace. Raises `QkvError`
    where no item would be left.
    """
    n_items: int = snapshot.facts["n_items"]
    found = [snapshot.catalog.find_item(item) for item in named]
    if where is None:
        mask = ~exclusion_mask(n_items, [position for position, _ in found])
    else:
        mask = snapshot.catalog.mask(where)
    if mask.all():
        raise QkvError(
            f"{snapshot.workspace}: that is every item, and a workspace has at least one; "
            "build it again from other items, or delete the folder"
        )
    leaving = np.flatnonzero(mask)
    rows = snapshot.catalog.cells(leaving, ["id", "title"])
    return leaving, Revision(
        added=0,
        replaced=0,
        removed=len(leaving),
        interactions_removed=_n_interactions(snapshot, mask),
        n_items=n_items - len(leaving),
        notes=[note for _, note in found if note],
        gone=[{"id": id_, "title": title} for id_, title in rows],
    )


def _n_interactions(snapshot: Snapshot, leaving: np.ndarray) -> int:
    """How many the log has with the items for which `leaving` (bool, n_items) is True."""
    if "interactions.items" not in snapshot:
        return 0
    places = snapshot.rows.item_rows_of_base[snapshot.array("interactions.items")]
    return int(leaving[places[places >= 0]].sum())


def _with_rows(snapshot: Snapshot, joining: Addition, done: Revision) -> BuildContents:
    """A segment with the new items, each with its place among those of the base."""
    contents, rows, replaced = _segment(snapshot, done), snapshot.rows, joining.positions
    ids = joining.catalog.ids
    contents.catalog = CatalogRows.of_segment(joining.catalog, snapshot.catalog)
    contents.arrays[AFTER] = snapshot.base.catalog.rows_before(ids)
    contents.arrays[ORIGIN] = np.where(replaced >= 0, rows.origin[replaced], -1)
    contents.tombstones = np.union1d(snapshot.tombstones, rows.stored[replaced[replaced >= 0]])
    contents.facts["columns"] = [column.to_record() for column in joining.catalog.columns]
    return contents


def _segment(snapshot: Snapshot, done: Revision) -> BuildContents:
    facts = {**snapshot.facts, **_history(snapshot.facts, done), "n_items": done.n_items}
    if "n_interactions" in facts:
        facts["n_interactions"] -= done.interactions_removed
    return BuildContents(facts=facts, base=snapshot)


def _published(
    workspace: Workspace,
    contents: BuildContents,
    command: str,
    done: Revision,
    progress: Progress,
) -> Revision:
    progress("saving", 0, 1)
    workspace.publish(contents, command)
    merged = merge_if_many(workspace, command, progress)
    progress("saving", 1, 1)
    return replace(done, notes=[*done.notes, *_left_out(contents), *merged])


def _left_out(contents: BuildContents) -> list[str]:
    """What the build had until now, and has no more."""
    why = contents.facts.get(LEFT_OUT)
    is_new = why and contents.base is not None and LEFT_OUT not in contents.base.facts
    return [f"Left out: {why}."] if is_new else []


def _history(facts: Mapping[str, Any], done: Revision) -> dict[str, Any]:
    """The sum of all updates since the build, and a line about it below those of the build."""
    former = facts.get("revised", {})
    names = ("added", "replaced", "removed", "interactions_removed")
    total = {name: former.get(name, 0) + getattr(done, name) for name in names}
    line = (
        f"since then: {total['added']:,} added, {total['replaced']:,} replaced, "
        f"{total['removed']:,} removed with "
        f"{quantity(total['interactions_removed'], 'interaction')}"
    )
    rows = facts["rows"][:-1] if former else facts["rows"]
    return {"revised": total, "rows": [*rows, line]}
