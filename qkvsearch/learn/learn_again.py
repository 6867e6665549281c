"""Learn from recorded interactions: join log and records, and fit the models to the result."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch.errors import Count, QkvError, WorkspaceError, quantity
from qkvsearch.heads.component import TUNED
from qkvsearch.heads.histories import Histories
from qkvsearch.heads.registry import FROM_INTERACTIONS
from qkvsearch.heads.search_settings import TUNED_SEARCH
from qkvsearch.heads.stored_log import LOG_ROWS
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.heads.stored_next_item import NextItemComponent
from qkvsearch.heads.stored_preferences import PreferencesComponent
from qkvsearch.learn.merge import merged_contents
from qkvsearch.learn.tuned_search import forget_settings
from qkvsearch.models.user_history import History
from qkvsearch.store import CatalogRows, Snapshot, Workspace
from qkvsearch.store.catalog.file import CATALOG
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.times import UNKNOWN_TIME

# The fact with the number of the last record in the log of a build.
LEARNED = "learned_records"
# What `builds` calls a build with the default settings again.
RESET = "tune --reset"
_STRAY = (
    "{n} recorded {n:interaction is|interactions are} of items that are not in the catalog: "
    "{n:it is|they are} not learned from, even if the items are added again later."
)


@dataclass(frozen=True)
class Learned:
    """Result of learning."""

    # How many records were learned from for the first time.
    recorded: int
    # Of the new log.
    n_users: int
    n_interactions: int
    notes: list[str]


def learn(workspace: Workspace, progress: Progress | None = None) -> Learned:
    """Fit preferences, ratings and the next-item model, if the build has one, to the log and the
    new records, with the present settings, and publish the result. Texts are not encoded again.

    The records stay in their database, so that a rollback loses none. Raises `WorkspaceError` where
    there are neither a log nor records.
    """
    progress = progress or silent
    with workspace.writing("learn"), closing(workspace.open()) as build:
        models = StoredModels(build)
        # Records may be added meanwhile: what is counted, learned from and marked as learned is one
        # view of them.
        histories = Histories(models, build.catalog)
        n_new, n_stray, last = histories.records.unlearned()
        n_recorded = n_new - n_stray
        log = log_with_records(histories)
        learned = list(FROM_INTERACTIONS)
        notes = [_STRAY.format(n=Count(n_stray))] if n_stray else []
        if NextItemComponent().is_in(build):
            try:
                NextItemComponent().check(log)
                learned.append(NextItemComponent())
            except QkvError as error:
                notes.append(f"what comes next stays as it was learned before: {error}")
        contents = merged_contents(build, progress, but=learned)
        contents.facts[LEARNED] = last
        contents.facts[LOG_ROWS] = _log_rows(build, n_recorded)
        for component in learned:
            component.learn(contents, log, progress)
        if contents.shared.pop(CATALOG, None):
            # The file has the users too, and there may be new ones.
            contents.catalog = CatalogRows.of_stored(build.catalog)
        workspace.publish(contents, "learn")
    return Learned(n_recorded, len(log.user_ids), len(log), notes)


def log_with_records(histories: Histories) -> Interactions:
    """Return all histories, new records included, in the owner's ids. Raises `WorkspaceError` where
    there are none.
    """
    snapshot = histories.models.snapshot
    users: list[str] = []
    of_users: list[History] = []
    for row, user in enumerate(histories.ids.texts):
        history = histories.at(row)
        if len(history):
            users.append(user)
            of_users.append(history)
    if not users:
        raise WorkspaceError(
            f"{snapshot.workspace}: there are no interactions to learn from; record some, or "
            "build with `interactions`"
        )
    items = snapshot.catalog.ids("items")
    positions = _joined(of_users, "positions")
    ratings = _joined(of_users, "ratings")
    times = _joined(of_users, "times")
    weights = None
    if all(history.weights is not None for history in of_users):
        weights = _joined(of_users, "weights")
    has_times = "interactions.times" in snapshot or not (times == UNKNOWN_TIME).any()
    facts = snapshot.facts
    scale = facts.get("rating_scale")
    return Interactions.from_columns(
        np.repeat(np.array(users, object), [len(history) for history in of_users]),
        np.array(items.texts, object)[positions],
        ratings if np.isfinite(ratings).any() else None,
        times if has_times else None,
        weights=weights,
        item_ids=items,
        times_comparable=facts.get("times_comparable", True),
        scale=scale and tuple(scale),
        fold_ids=facts.get("fold_ids", False),
    )


def learn_preferences(
    workspace: Workspace,
    tuned: Mapping[str, Any] | None,
    progress: Progress | None = None,
) -> None:
    """Fit `ImplicitALS` to the whole log, and publish the result; everything else stays.

    tuned: {"settings": its parameters, …}, stored in the build's facts; None for the default
    settings. Raises `WorkspaceError` where there are no interactions.
    """
    progress = progress or silent
    with workspace.writing("tune"), closing(workspace.open()) as build:
        models = StoredModels(build)
        log = models.log("learn from")
        contents = merged_contents(build, progress, but=[PreferencesComponent()])
        contents.facts.pop(TUNED, None)
        if tuned:
            contents.facts[TUNED] = dict(tuned)
        PreferencesComponent().learn(contents, log, progress)
        workspace.publish(contents, "tune")


def reset_tuning(workspace: Workspace, progress: Progress | None = None) -> list[str]:
    """Go back to the default settings of recommendations and of searches, and publish the result.

    Preferences are learned again only where they were tuned. Return what was: "recommendations",
    "searches". Where nothing was, publish nothing. Raises `WorkspaceError`.
    """
    progress = progress or silent
    with workspace.writing("tune"), closing(workspace.open()) as build:
        found = {TUNED: "recommendations", TUNED_SEARCH: "searches"}
        were_tuned = [what for fact, what in found.items() if fact in build.facts]
        if not were_tuned:
            return []
        learned = [PreferencesComponent()] if TUNED in build.facts else []
        contents = merged_contents(build, progress, but=learned)
        contents.facts.pop(TUNED, None)
        forget_settings(contents)
        for component in learned:
            component.learn(contents, StoredModels(build).log("learn from"), progress)
        workspace.publish(contents, RESET)
    return were_tuned


def _joined(histories: list[History], name: str) -> np.ndarray:
    return np.concatenate([getattr(history, name) for history in histories])


def _log_rows(snapshot: Snapshot, n_recorded: int) -> list[str]:
    line = f"learned again, with {quantity(n_recorded, 'recorded interaction')} more"
    return [*snapshot.facts.get(LOG_ROWS, ()), line]
