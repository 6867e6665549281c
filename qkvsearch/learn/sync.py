"""Make the items of a build those of a file, such as a nightly export, in one new build."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch.errors import Count, QkvError, quantity, shorten
from qkvsearch.heads.component import Addition
from qkvsearch.heads.stored_log import LogComponent
from qkvsearch.learn.add import (
    Revision,
    published_addition,
    published_removal,
    read_items,
    unsplit,
)
from qkvsearch.learn.change_rules import SYNC
from qkvsearch.store import Snapshot, Workspace
from qkvsearch.store.catalog.file import stored_columns
from qkvsearch.tables.column_types import type_named
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.ids import id_text

if TYPE_CHECKING:
    from qkvsearch.tables.catalog import Catalog
    from qkvsearch.tables.dataset import Source

# A larger share of the items is only removed on request: the file may have been cut off.
MAX_REMOVED = 0.2
# The cells of the variants of an item: for each variant, the columns in which they differ.
Variants = frozenset[tuple[tuple[str, Any], ...]]


@dataclass(frozen=True)
class Synced:
    """How many items were added, changed and removed, how many were as in the file already, and how
    many were kept that could not be read from the file, as with `keep_missing`.
    """

    added: int
    changed: int
    removed: int
    unchanged: int
    kept: int
    # How many interactions of the log are with removed items.
    interactions_removed: int
    # How many items there are now.
    n_items: int
    notes: list[str]


def sync_items(
    workspace: Workspace,
    source: Source,
    columns: Columns | None = None,
    *,
    join: Source | None = None,
    keep_missing: bool = False,
    yes: bool = False,
    progress: Progress | None = None,
) -> Synced:
    """Add the new items of a file, change those that differ, and remove those that it lacks, in one
    new build; in none where nothing differs.

    join: tables that add columns to these items, by id. keep_missing: remove none. yes: also remove
    more than a fifth of the items. A column that the
    file lacks stays as it is. Raises `QkvError` where more would be removed, and `DataError` for a
    file that cannot be used.
    """
    from qkvsearch.learn.align_rows import addition

    columns = columns or Columns()
    progress = progress or silent
    frame, report = read_items(workspace, source, columns, join)
    with workspace.writing("sync"), closing(workspace.open()) as build:
        in_file = addition(build, frame, columns, report, SYNC)
        report.conclude(columns.strict)
        removed = _missing_rows(build, in_file, report.unread_ids)
        if keep_missing:
            removed = removed[:0]
        elif not yes:
            _refuse_many(build, removed, report.file)
        differing, respelled = _differing(build, in_file)
        n_unchanged = int((~differing).sum())
        new_items = replace(_taken(in_file, differing), removed=removed)
        notes = [str(report), *report.warning_lines(), *unsplit(build, new_items)]
        if respelled:
            notes.append(_said_of_respelled(build, respelled))
        revision = _revision(build, new_items, notes)
        if len(new_items.catalog):
            revision = published_addition(workspace, new_items, "sync", revision, progress)
        elif len(removed):
            revision = published_removal(workspace, build, removed, "sync", revision, progress)
        return Synced(
            added=revision.added,
            changed=revision.replaced,
            removed=revision.removed,
            unchanged=n_unchanged,
            kept=revision.n_items - revision.added - revision.replaced - n_unchanged,
            interactions_removed=revision.interactions_removed,
            n_items=revision.n_items,
            notes=revision.notes,
        )


def _missing_rows(build: Snapshot, in_file: Addition, unread_ids: Sequence[str]) -> np.ndarray:
    """Return the rows of the items that a file lacks, int64, ascending. unread_ids: of items that
    are there and cannot be read, which stay as they are.
    """
    is_missing = np.ones(build.facts["n_items"], dtype=bool)
    is_missing[in_file.replaced] = False
    is_missing[list(build.catalog.find_items(unread_ids).values())] = False
    return np.flatnonzero(is_missing)


def _refuse_many(build: Snapshot, removed: np.ndarray, file: str) -> None:
    """Raise `QkvError` where more than a fifth of the items would be removed."""
    n_items = build.facts["n_items"]
    if len(removed) > MAX_REMOVED * n_items:
        n = Count(len(removed))
        raise QkvError(
            f"{file} lacks {n} of {quantity(n_items, 'item')}, more than a fifth, and nothing is "
            f"changed: `yes` removes {n:it|them}, `keep_missing` keeps {n:it|them}"
        )


class Respelled(NamedTuple):
    """A cell with the value that it had, written otherwise."""

    # The row in the build.
    position: int
    column: str
    # What it was in the file before, and what it is now; "" where that is how it is shown.
    before: str
    now: str


def _differing(build: Snapshot, in_file: Addition) -> tuple[np.ndarray, list[Respelled]]:
    """Return which items of a file are new or have another cell or variant, bool (n,), and a cell
    of each of the others that has cells with the same value written otherwise.
    """
    catalog, positions = in_file.catalog, in_file.positions
    differing = positions < 0
    respelled: list[Respelled] = []
    names = list(catalog.frame.columns[1:])
    known = np.flatnonzero(~differing)
    before = build.catalog.cells(positions[known], names)
    now = list(zip(*stored_columns(catalog.frame[names]), strict=True))
    variants_before, variants_now = _stored_variants(build), _variants_of(catalog)
    originals_before, originals_now = _stored_originals(build), _originals_of(catalog)
    for row, cells in zip(known.tolist(), before, strict=True):
        position = int(positions[row])
        differing[row] = now[row] != cells or variants_now.get(row) != variants_before.get(position)
        texts_before = originals_before.get(position, {})
        texts_now = originals_now.get(row, {})
        if differing[row] or texts_before == texts_now:
            continue
        cell_of = dict(zip(names, cells, strict=True))
        spellings = [
            Respelled(position, name, texts_before.get(name, ""), texts_now.get(name, ""))
            for name in names
            if texts_before.get(name) != texts_now.get(name)
        ]
        differing[row] = any(_says_more(build, each, cell_of[each.column]) for each in spellings)
        if not differing[row] and spellings:
            respelled.append(spellings[0])
    return differing, respelled


def _says_more(build: Snapshot, spelling: Respelled, cell: Any) -> bool:
    """Return whether what a cell was in the file says more than the cell, so that another spelling
    is a change: a cell that could not be read, a text with HTML, a date with other words, and what
    search reads.
    """
    column_type = type_named(build.catalog.catalog_columns.stored_as(spelling.column).type)
    if cell is None or column_type.is_text:
        return True
    if not column_type.loses_words:
        return False
    if spelling.column in build.facts["text_columns"]:
        return True
    texts = (spelling.before, spelling.now)
    return any(column_type.has_lost_words(cell, text) for text in texts if text)


def _said_of_respelled(build: Snapshot, respelled: Sequence[Respelled]) -> str:
    """Return a note on items whose values are the same and are written otherwise."""
    n, first = Count(len(respelled)), respelled[0]
    (cells,) = build.catalog.cells([first.position], ["id", first.column])
    id_, cell = cells
    now, before = first.now or str(cell), first.before or str(cell)
    column = build.catalog.catalog_columns.stored_as(first.column).name
    return (
        f"{n} {n:item has|items have} the same values, written otherwise, and {n:is|are} "
        f"unchanged: {column} of {shorten(id_text(id_))} was {shorten(before)!r} and is "
        f"{shorten(now)!r}"
    )


def _stored_originals(build: Snapshot) -> Mapping[int, Mapping[str, str]]:
    """Return what the cells of each item of a build were in the file, by its row and column, where
    they are not shown as they were.
    """
    originals: dict[int, dict[str, str]] = defaultdict(dict)
    for position, name, text in build.catalog.all_originals():
        originals[position][name] = text
    return originals


def _originals_of(catalog: Catalog) -> Mapping[int, Mapping[str, str]]:
    """Return the same of the items of a file."""
    originals: dict[int, dict[str, str]] = defaultdict(dict)
    for name, texts in catalog.originals.items():
        for row, text in zip(texts.index.tolist(), texts, strict=True):
            originals[row][name] = text
    return originals


def _stored_variants(build: Snapshot) -> Mapping[int, Variants]:
    """Return the variants of each item of a build that has several, by its row."""
    varying = build.catalog.varying
    rows: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for position, *cells in build.catalog.variants(varying):
        rows[position].append(tuple(cells))
    return {position: _different(varying, cells) for position, cells in rows.items()}


def _variants_of(catalog: Catalog) -> Mapping[int, Variants]:
    """Return the variants of each item of a file that has several, by its row."""
    frame = catalog.variants
    rows: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for row, *cells in zip(frame.index.tolist(), *stored_columns(frame), strict=True):
        rows[row].append(tuple(cells))
    return {row: _different(list(frame), cells) for row, cells in rows.items()}


def _different(names: list[str], rows: list[tuple[Any, ...]]) -> Variants:
    """Return the variants of an item by the columns in which they differ. In which others the items
    of the file differ does not matter.

    >>> _different(["size", "price"], [("S", 5), ("M", 5)]) == {(("size", "S"),), (("size", "M"),)}
    True
    """
    varying = []
    for number, name in enumerate(names):
        values = {cells[number] for cells in rows} - {None}
        if len(values) > 1:
            varying.append((number, name))
    return frozenset(tuple((name, cells[number]) for number, name in varying) for cells in rows)


def _taken(addition: Addition, is_taken: np.ndarray) -> Addition:
    """Return the items of an addition for which `is_taken` (bool, n) holds."""
    if is_taken.all():
        return addition
    return replace(
        addition,
        catalog=addition.catalog.take(is_taken),
        positions=addition.positions[is_taken],
        unread=addition.unread[is_taken],
    )


def _revision(build: Snapshot, new_items: Addition, notes: list[str]) -> Revision:
    """Return what an addition changes in a build."""
    n_added = int((new_items.positions < 0).sum())
    n_items: int = build.facts["n_items"]
    is_removed = np.zeros(n_items, dtype=bool)
    is_removed[new_items.removed] = True
    return Revision(
        added=n_added,
        replaced=len(new_items.positions) - n_added,
        removed=len(new_items.removed),
        interactions_removed=LogComponent().count_with(build, is_removed),
        n_items=n_items + n_added - len(new_items.removed),
        notes=notes,
    )
