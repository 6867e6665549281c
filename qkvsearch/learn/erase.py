"""Erase a user's data: from the log, the records and every previous build."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch._utils.validation import require
from qkvsearch.errors import QkvError, quantity
from qkvsearch.heads.registry import FROM_INTERACTIONS
from qkvsearch.heads.stored_log import LOG_ROWS
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.heads.stored_next_item import NextItemComponent
from qkvsearch.learn.add import REVISED
from qkvsearch.learn.merge import merged_contents
from qkvsearch.store import BuildContents, CatalogRows, Workspace
from qkvsearch.store.catalog.file import CATALOG
from qkvsearch.store.logged_searches import forget_in_log
from qkvsearch.store.root import Erasure
from qkvsearch.store.segments import BUILDS_FOLDER, MANIFEST, Segment
from qkvsearch.tables.ids import Id, Ids, id_text
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.times import UNKNOWN_TIME

# An example of a rating or a weight.
NUMBER = re.compile(r"-?\d+(\.\d+)?")
LEARNED = (
    "All counts are without the user. Embeddings of items, and what else was learned with these "
    "interactions, stay until `learn` fits them again."
)
FINISHED = "An earlier `forget` of this user had been interrupted; it is finished now."


@dataclass(frozen=True)
class Forgotten:
    """Result of erasing a user: how many interactions of the log, records and previous builds were
    deleted, and how many logged searches whose text contains the id. The notes say what stays.
    """

    interactions: int
    records: int
    builds: int
    notes: list[str]
    searches: int = 0


def forget_user(
    workspace: Workspace, user: Id, *, dry_run: bool = False, progress: Progress | None = None
) -> Forgotten:
    """Delete a user's interactions and records, and every previous build.

    Afterwards no file of the workspace has the id, and nothing that is counted counts the user.
    The log of searches, which has no ids, loses the searches whose text contains the id.
    What was learned with these interactions stays until `learn` fits it again. dry_run: change
    nothing. Raises `UnknownIdError`, and `DataError` for a blank id.
    """
    # A blank one would be found in every search of the log.
    require(bool(id_text(user).strip()), "user", user, "an id that is not blank")
    progress = progress or silent
    unfinished = workspace.unfinished_erasure()
    n_searches = forget_in_log(workspace.path, user, dry_run=True)
    with workspace.writing("forget"):  # which finishes it
        with closing(workspace.open()) as build:
            models = StoredModels(build)
            row = build.catalog.users.position(user)
            is_known = row is not None or build.records.has(user)
            # After a killed run or a build from other files only previous builds have the user.
            if not (is_known or _is_in_folders(workspace, user)):
                if n_searches:
                    notes = [] if dry_run else [*_forgotten_searches(workspace, user)]
                    return Forgotten(0, 0, 0, notes, n_searches)
                if unfinished is not None and unfinished.user == id_text(user):
                    return Forgotten(0, 0, 0, [FINISHED])
                raise build.catalog.users.unknown(user)
            # The current build is deleted as well if its log has the user.
            n_builds = len(workspace.builds()) - (0 if row is not None else 1)
            n_interactions = 0
            if dry_run:
                n_records = build.records.page(user, 0, 0)[1]
                return Forgotten(len(models.history(row)), n_records, n_builds, [], n_searches)
            contents = None
            if row is not None:
                contents, n_interactions = _without(models, row, progress)
            plain_id = id_text(user, build.catalog.are_whole("users"))
            n_records = _publish(workspace, contents, plain_id, fold=build.catalog.fold_ids)
        # Now our own build is closed, and its folder can be removed on every system.
        notes = [LEARNED] if n_interactions else []
        notes += [*_finished(workspace), *_left(workspace, user)]
        notes += _forgotten_searches(workspace, user)
        return Forgotten(n_interactions, n_records, n_builds, notes, n_searches)


def _publish(workspace: Workspace, contents: BuildContents | None, user: str, *, fold: bool) -> int:
    """Erase a user from the list of builds and from the records. Return the number of records.

    contents: of a build without the user, None where the current one has none of them. The new root
    is written while nobody else can record, and before the records are deleted. An error up to then
    changes nothing. After it the root says what is still to be deleted. If we are killed or cannot
    delete, the next writer does it (`Workspace.finish_erasing`).
    """
    is_published = False
    try:
        with workspace.records.forgetting(user, fold=fold) as (n_records, last):
            erasure = Erasure(user, fold, last)
            if contents is None:
                workspace.keep_current_only(erasure)
            else:
                workspace.publish(contents, "forget", erasure=erasure)
            is_published = True
    except (OSError, QkvError):
        if not is_published:
            raise
    return n_records


def _finished(workspace: Workspace) -> Iterator[str]:
    """Delete what is to be deleted; yield a note where that fails, as the user is erased."""
    try:
        workspace.finish_erasing()
    except (OSError, QkvError) as error:
        yield f"Not all deleted rows are out of the files yet; the next change goes on: {error}"


def _forgotten_searches(workspace: Workspace, user: Id) -> Iterator[str]:
    """Delete the logged searches that name a user; yield a note where that fails."""
    try:
        forget_in_log(workspace.path, user)
    except QkvError as error:
        yield f"The log of searches may still have the id in it: {error}"


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


def _without(models: StoredModels, row: int, progress: Progress) -> tuple[BuildContents, int]:
    """Return a base without the user in this row, and the number of their interactions.

    Everything that is counted is counted anew from the interactions that are left.
    """
    contents = merged_contents(models.snapshot, progress)
    log = models.log("forget from")
    others = _without_user(log, row)
    components = [*FROM_INTERACTIONS, NextItemComponent()]
    if len(others):
        for component in components:
            if component.is_in(models.snapshot):
                component.forget(contents, others)
    else:  # as in a build without interactions
        for component in components:
            component.drop(contents)
        for name in ("n_users", "n_interactions"):
            contents.facts.pop(name, None)
        contents.users = None
    _forget_reports(contents, others)
    contents.shared.pop(CATALOG, None)
    contents.catalog = CatalogRows.of_stored(models.snapshot.catalog)
    return contents, len(log) - len(others)


def _without_user(log: Interactions, row: int) -> Interactions:
    """Return a log without the user in this row. Later users move up."""
    names = [name for i, name in enumerate(log.user_ids.texts) if i != row]
    others = log.take(log.users != row)
    is_later = others.users > row
    rows = np.where(is_later, others.users - 1, others.users).astype(np.int32)
    return replace(others, users=rows, user_ids=Ids(names, log.user_ids.fold))


def _forget_reports(contents: BuildContents, log: Interactions) -> None:
    """Replace what the build reported on the rows and the cells of the file of interactions: its
    numbers and its examples are those of a file with the user.
    """
    facts = contents.facts
    n_interactions = quantity(len(log), "interaction")
    n_users = quantity(len(log.user_ids), "user")
    facts[LOG_ROWS] = [f"since a user was erased: {n_interactions} of {n_users}"]
    facts["interaction_columns"] = [
        {
            **record,
            "empty": _share_empty(record["role"], log),
            "example": _example(record["role"], record["example"], log),
            "changed": {},
        }
        for record in facts.get("interaction_columns", ())
    ]
    # Some of the interactions with removed items may have been the user's.
    if REVISED in facts:
        totals = facts[REVISED]
        facts[REVISED] = {name: totals[name] for name in totals if name != "interactions_removed"}


def _share_empty(role: str, log: Interactions) -> float:
    """Return the share of the interactions that have no number for this role."""
    if role == "rating" and log.ratings is not None:
        is_empty = np.isnan(log.ratings)
    elif role == "time" and log.times is not None:
        is_empty = log.times == UNKNOWN_TIME
    else:
        return 0.0
    return round(float(is_empty.mean()), 4) if len(log) else 0.0


def _example(role: str, example: str, log: Interactions) -> str:
    """Return the example of a column if an interaction that is left has it, otherwise ""."""
    if role == "item":
        item = log.item_ids.find(example)
        return example if item >= 0 and (log.items == item).any() else ""
    numbers = {"rating": log.ratings, "weight": log.weights}.get(role)
    if numbers is None or NUMBER.fullmatch(example) is None:
        return ""
    return example if (numbers == np.float32(example)).any() else ""
