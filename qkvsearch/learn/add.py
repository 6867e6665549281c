"""Add and remove items: a new segment, and tombstones for deleted rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch._utils.files import own_and_other_files
from qkvsearch.attention import exclusion_mask
from qkvsearch.errors import Count, QkvError, listed_names, quantity
from qkvsearch.heads.component import Addition
from qkvsearch.heads.passages import PassagesComponent
from qkvsearch.heads.registry import each_component
from qkvsearch.heads.stored_log import LogComponent
from qkvsearch.learn.change_rules import REPLACE, ChangeRule
from qkvsearch.learn.merge import merge_if_many
from qkvsearch.rank.options import as_list
from qkvsearch.store import BuildContents, Snapshot, Workspace
from qkvsearch.store.remote_collections import RemoteCollection
from qkvsearch.tables.columns import Columns, check_column
from qkvsearch.tables.ids import Id
from qkvsearch.text.passages import passages
from qkvsearch.text.pretrained.encoding_cache import forget_texts
from qkvsearch.where import Where

if TYPE_CHECKING:
    import pandas as pd

    from qkvsearch.tables.dataset import Source
    from qkvsearch.tables.report import ReadReport

# The fact with the totals of all updates since the build.
REVISED = "revised"


@dataclass(frozen=True)
class Revision:
    """Result of adding or removing items, or of a dry run."""

    # Numbers of items.
    added: int
    replaced: int
    removed: int
    # How many interactions of the log are with removed items.
    interactions_removed: int
    # How many items the new build has.
    n_items: int
    notes: list[str]
    # Id and title of each removed item.
    gone: Sequence[dict[str, Any]] = ()


def add_items(
    workspace: Workspace,
    source: Source,
    columns: Columns | None = None,
    progress: Progress | None = None,
    *,
    join: Source | None = None,
    rule: ChangeRule = REPLACE,
) -> Revision:
    """Add the items of a file or frame to the current build, and publish the result.

    join: tables that add columns to these items, by id. An item with a known id keeps its
    interactions; the rule says which of its cells it keeps, by default none. `recommend` places new
    items by their text, if the build learned how texts predict preferences. Raises `QkvError`, and
    `DataError` where the file lacks the id, the title or all columns that search reads.
    """
    from qkvsearch.learn.align_rows import addition

    columns = columns or Columns()
    progress = progress or silent
    frame, report = read_items(workspace, source, columns, join)
    with workspace.writing("add"), closing(workspace.open()) as build:
        new_items = addition(build, frame, columns, report, rule)
        report.conclude(columns.strict)
        n_added = int((new_items.positions < 0).sum())
        n_items = build.facts["n_items"] + n_added
        notes = [str(report), *report.warning_lines(), *unsplit(build, new_items)]
        revision = Revision(n_added, len(new_items.positions) - n_added, 0, 0, n_items, notes)
        return published_addition(workspace, new_items, "add", revision, progress)


def read_items(
    workspace: Workspace, source: Source, columns: Columns, join: Source | None = None
) -> tuple[pd.DataFrame, ReadReport]:
    """Return the rows of items of a file or frame, as text, with the columns of the tables of
    `join`, and of the other sheets of `book.xlsx#*`. Raises `DataError`.
    """
    from qkvsearch.tables.dataset import load_items
    from qkvsearch.tables.joining import with_details

    items, details = load_items(source, columns, join)
    assert items is not None
    table, report = items
    names = [name for part, _ in (items, *details) for name in part.columns]
    for name in columns.ignore:
        check_column(name, names, report.file, "`ignore`")
    frame = table.frame()
    if details:
        of_ids = replace(columns, id=columns.id or _column_of_ids(workspace, table.columns))
        frame, _ = with_details(frame, details, of_ids, report)
        report.notes += [str(of_details) for _, of_details in details]
        report.warnings += [text for _, of_details in details for text in of_details.warnings]
    return frame, report


def _column_of_ids(workspace: Workspace, names: Iterable[str]) -> str | None:
    """Return the column of a file that has the name of the workspace's ids, None for none."""
    with closing(workspace.open()) as build:
        columns = build.catalog.catalog_columns
        name = next(column.name for column in columns if column.role == "id")
    return next((other for other in names if other.casefold() == name.casefold()), None)


def published_addition(
    workspace: Workspace, new_items: Addition, command: str, revision: Revision, progress: Progress
) -> Revision:
    """Publish the build with new items and without those that they replace or that are removed.

    revision: what to report, to which notes are added. The caller is the writer.
    """
    build = new_items.previous.snapshot
    facts = _facts(build, revision)
    facts["columns"] = [column.to_record() for column in new_items.catalog.columns]
    contents = BuildContents.adding(
        build, new_items.catalog, new_items.positions, new_items.removed, facts
    )
    for component in each_component(build, "revising", progress):
        component.extend(contents, new_items, progress)
    changed = new_items.positions[new_items.unread]
    texts = stored_texts(build, np.concatenate([changed[changed >= 0], new_items.removed]))
    revision = _published(workspace, contents, command, revision, progress)
    forgotten = forget_texts(texts - set(chain(*new_items.new_fields)))
    return replace(revision, notes=[*revision.notes, *forgotten])


def published_removal(
    workspace: Workspace,
    build: Snapshot,
    deleted: np.ndarray,
    command: str,
    revision: Revision,
    progress: Progress,
) -> Revision:
    """Publish the build without the items in these rows, int64. The caller is the writer."""
    contents = BuildContents.removing(build, deleted, _facts(build, revision))
    for component in each_component(build, "revising", progress):
        component.delete(contents, build, deleted)
    texts = stored_texts(build, deleted)
    revision = _published(workspace, contents, command, revision, progress)
    return replace(revision, notes=[*revision.notes, *forget_texts(texts)])


def unsplit(build: Snapshot, new_items: Addition) -> list[str]:
    """Return a note on new long texts, where the build has no passages."""
    if PassagesComponent().is_in(build):
        return []
    fields = new_items.catalog.fields()
    n_long = Count(sum(bool(passages(text)) for texts in fields for text in texts))
    if not n_long:
        return []
    texts = quantity(int(n_long), "long text")
    why = "the workspace was built without any, and so without passages; build it again"
    if RemoteCollection.of(build.facts) is not None:
        why = "the keys are on a server, without those of passages"
    return [f"{texts} {n_long:is|are} searched whole: {why}"]


def remove_items(
    workspace: Workspace,
    items: Id | Iterable[Id] = (),
    *,
    where: Where | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Revision:
    """Remove items with their interactions, and publish the result.

    items: ids or unique titles. where: a condition over the catalog's columns, in place of `items`.
    dry_run: change nothing. Raises `UnknownIdError` for an unknown item, and removes none then;
    `QkvError` where no item would be left.
    """
    named = as_list(items)
    if bool(named) == (where is not None):
        raise QkvError("name the items to remove, or give a condition (`where`): one of the two")
    if dry_run:
        with closing(workspace.open()) as build:
            _, revision = _plan_removal(build, named, where)
            return revision
    progress = progress or silent
    with workspace.writing("remove"), closing(workspace.open()) as build:
        deleted, revision = _plan_removal(build, named, where)
        if not len(deleted):
            return revision
        return published_removal(workspace, build, deleted, "remove", revision, progress)


def stored_texts(snapshot: Snapshot, positions: np.ndarray) -> set[str]:
    """Return the texts of items, which encoders read."""
    names = snapshot.facts["text_columns"]
    rows = snapshot.catalog.searched_texts(positions, names) if names else []
    return {text for row in rows for text in row}


def _plan_removal(
    snapshot: Snapshot, named: Sequence[Any], where: Where | None
) -> tuple[np.ndarray, Revision]:
    """Return the rows of the items to remove, and the result of removing them. Raises `QkvError`
    where no item would be left.
    """
    n_items: int = snapshot.facts["n_items"]
    matches = [snapshot.catalog.titles.find_item(item) for item in named]
    if where is None:
        mask = ~exclusion_mask(n_items, [position for position, _ in matches])
    else:
        mask = snapshot.catalog.conditions.mask(where)
    if mask.all():
        own, others = own_and_other_files(snapshot.workspace)
        its_files = "its folder"
        if others:
            its_files = f"{listed_names(own)}; leave {listed_names(others, 3)} in its folder"
        raise QkvError(
            "that is every item, and a workspace has at least one: build it again from other "
            f"items, or delete {its_files}"
        )
    deleted = np.flatnonzero(mask)
    rows = snapshot.catalog.cells(deleted, ["id", "title"])
    return deleted, Revision(
        added=0,
        replaced=0,
        removed=len(deleted),
        interactions_removed=LogComponent().count_with(snapshot, mask),
        n_items=n_items - len(deleted),
        notes=[note for _, note in matches if note],
        gone=[{"id": id_, "title": title} for id_, title in rows],
    )


def _facts(snapshot: Snapshot, revision: Revision) -> dict[str, Any]:
    """Return the facts of the build after a revision."""
    facts = dict(snapshot.facts)
    facts[REVISED] = _totals(facts, revision)
    facts["n_items"] = revision.n_items
    if "n_interactions" in facts:
        facts["n_interactions"] -= revision.interactions_removed
    return facts


def _published(
    workspace: Workspace,
    contents: BuildContents,
    command: str,
    revision: Revision,
    progress: Progress,
) -> Revision:
    progress("saving", 0, 1)
    workspace.publish(contents, command)
    merged = merge_if_many(workspace, command, progress)
    progress("saving", 1, 1)
    return replace(revision, notes=[*revision.notes, *merged])


def _totals(facts: Mapping[str, Any], revision: Revision) -> dict[str, int]:
    """Return the totals of all updates since the build. The number of interactions is left out if
    it was: `forget` removes it, because some of them may have been the user's.
    """
    names = ["added", "replaced", "removed", "interactions_removed"]
    previous = facts.get(REVISED)
    if previous is None:
        previous = dict.fromkeys(names, 0)
    return {name: previous[name] + getattr(revision, name) for name in names if name in previous}


def revised_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return a line about all updates since the build, none where there are no updates."""
    total = facts.get(REVISED)
    if total is None:
        return []
    line = (
        f"since then: {total['added']:,} added, {total['replaced']:,} replaced, "
        f"{total['removed']:,} removed"
    )
    if "interactions_removed" in total:
        line += f" with {quantity(total['interactions_removed'], 'interaction')}"
    return [line]
