"""The stored log of interactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch._utils.scratch import pieces_of
from qkvsearch.heads.component import BuildModels, LearnedComponent
from qkvsearch.models.confidences import Feedback
from qkvsearch.models.user_history import History
from qkvsearch.store import BuildContents, Snapshot
from qkvsearch.store.array_spec import ArraySpec
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.times import UNKNOWN_TIME

# Arrays with one number for each interaction; the others are of users and of items.
NUMBERS = ("ratings", "times", "weights")
PAIR_ARRAYS = ("items", *NUMBERS)
# The facts with lines on how the log was read and learned from, and whether the scale of its
# ratings is inferred from them.
LOG_ROWS, SCALE_INFERRED = "log_rows", "rating_scale_inferred"


class UsersOfItem(NamedTuple):
    """Who has an item in the log: the rows of the users, ascending, and what they gave it, as in
    `StoredLog`, with None for what the log lacks.
    """

    users: np.ndarray
    ratings: np.ndarray | None = None
    times: np.ndarray | None = None
    weights: np.ndarray | None = None


class StoredLog:
    """The log of an opened build: all of it, or one user's history.

    arrays: indptr int64 (n_users + 1,), where each user's interactions begin; items int32 (n,),
    rows of the base, ascending within a user; ratings and weights float32 (n,) and times int64
    (n,), where there are any; with weights usual_weights float32 (n_items,), as `Feedback` has
    them. What is of deleted items is not in the log.
    """

    def __init__(self, snapshot: Snapshot, arrays: dict[str, np.ndarray]) -> None:
        self._build, self._arrays = snapshot, arrays

    def interactions(self) -> Interactions:
        """Return the whole log in the owner's ids, without deleted items."""
        arrays = LogComponent().renumbered_lists(self._build, "indptr")
        lengths = np.diff(arrays["indptr"])
        return Interactions(
            users=np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
            items=arrays["items"],
            user_ids=self._build.catalog.ids("users"),
            item_ids=self._build.catalog.ids("items"),
            ratings=arrays.get("ratings"),
            times=arrays.get("times"),
            times_comparable=self._build.facts.get("times_comparable", True),
            weights=arrays.get("weights"),
            scale=self.feedback.scale,
        )

    @cached_property
    def feedback(self) -> Feedback:
        """The rule that turns ratings and weights into confidences."""
        return feedback_of(self._build.facts, self._arrays.get("usual_weights"))

    @cached_property
    def last_time(self) -> int | None:
        """The time of the latest interaction; None without times."""
        times = self._arrays.get("times", ())
        return int(np.max(times)) if len(times) else None

    def history(self, user: int | None) -> History:
        """Return the history of the user in this row of the build; an empty one for None."""
        arrays = self._arrays
        span = slice(0) if user is None else slice(*arrays["indptr"][user : user + 2])
        positions = arrays["items"][span].astype(np.int64)
        order: Any = slice(None)
        if not self._is_plain:
            # Deleted items are left out, and the others sorted by where they are now.
            positions = self._item_rows[positions]
            order = np.argsort(positions, kind="stable")
            order = order[positions[order] >= 0]
            positions = positions[order]
        n = len(positions)

        def of_pairs(name: str, default: Any = None) -> Any:
            if name not in arrays:
                return default
            return arrays[name][span][order]

        times = of_pairs("times", np.full(n, UNKNOWN_TIME, np.int64))
        ratings = of_pairs("ratings", np.full(n, np.nan, np.float32))
        weights = of_pairs("weights")
        confidences = self.feedback.confidences(positions, ratings, weights)
        return History(positions, confidences, ratings, times, weights)

    def users_of(self, items: Sequence[int]) -> dict[int, UsersOfItem]:
        """Return the users of each of the items in these rows, in one pass over the log."""
        is_asked = np.isin(self._item_rows, items)
        stored = self._arrays["items"]
        found = [np.zeros(0, dtype=np.int64)]
        for rows in pieces_of(len(stored)):
            found.append(rows.start + np.flatnonzero(is_asked[stored[rows]]))
        pairs = np.concatenate(found)
        item_of = self._item_rows[stored[pairs]]
        order = np.argsort(item_of, kind="stable")
        pairs, item_of = pairs[order], item_of[order]
        users = np.searchsorted(self._arrays["indptr"], pairs, side="right") - 1
        of_items = {}
        for item in items:
            own = slice(*np.searchsorted(item_of, [item, item + 1]))
            numbers = {
                name: self._arrays[name][pairs[own]] for name in NUMBERS if name in self._arrays
            }
            of_items[item] = UsersOfItem(users[own], **numbers)
        return of_items

    @cached_property
    def _item_rows(self) -> np.ndarray:
        """The item row of each row of the base, −1 for a deleted item."""
        return self._build.rows.item_rows_of_base

    @property
    def _is_plain(self) -> bool:
        """Whether every item has the same row as in the base."""
        return self._build.rows.keeps_base


def feedback_of(facts: Mapping[str, Any], usual_weights: np.ndarray | None) -> Feedback:
    """Return the rule that turns ratings and weights into confidences, from a build's facts."""
    scale = facts.get("rating_scale")
    return Feedback(scale and tuple(scale), facts.get("usual_weight"), usual_weights)


@dataclass(frozen=True)
class LogComponent(LearnedComponent[StoredLog]):
    """The log of interactions, where the build got any.

    Interactions with deleted items stay stored and are skipped by reading. Confidences stay as they
    were when the models were learned.
    """

    group: str = "interactions"
    arrays: ClassVar = {
        "indptr": ArraySpec("i", ("users",), rows="interactions", lists="pairs"),
        "items": ArraySpec("i", ("pairs",), rows="interactions", below="items"),
        "ratings": ArraySpec("f", ("pairs",), rows="interactions"),
        "times": ArraySpec("i", ("pairs",), rows="interactions"),
        "weights": ArraySpec("f", ("pairs",), rows="interactions"),
        "usual_weights": ArraySpec("f", ("items",), rows="interactions"),
    }

    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Store the log, and learn how its ratings and weights become confidences."""
        feedback = Feedback.of(log)
        self.drop(contents)
        self.store(contents, log)
        self.put(contents, usual_weights=feedback.usual_weights)
        self.note_feedback(contents, feedback)

    def forget(self, contents: BuildContents, log: Interactions) -> None:
        """Store the log that is left. The scale of ratings and the usual weights are what a build
        from this log has.
        """
        if contents.facts.get(SCALE_INFERRED):
            log = replace(log, scale=None)
        self.learn(contents, log, silent)

    def count_with(self, snapshot: Snapshot, items: np.ndarray) -> int:
        """Count the interactions of a build's log with these items, bool (n_items,)."""
        if not self.is_in(snapshot):
            return 0
        # The only array that is needed: a writer compares each one with its checksum.
        item_of = snapshot.rows.item_rows_of_base[snapshot.array(self.name_of("items"))]
        return int(items[item_of[item_of >= 0]].sum())

    def note_feedback(self, contents: BuildContents, feedback: Feedback) -> None:
        """Store the scale and the usual weight in the facts."""
        if feedback.usual_weight is not None:
            contents.facts["usual_weight"] = feedback.usual_weight
        if feedback.scale is not None:
            contents.facts["rating_scale"] = feedback.scale

    def store(self, contents: BuildContents, log: Interactions) -> None:
        """Store a log without its `Feedback`."""
        indptr = np.searchsorted(log.users, np.arange(len(log.user_ids) + 1))
        contents.users = log.user_ids
        self.put(contents, indptr=indptr, **{name: getattr(log, name) for name in PAIR_ARRAYS})
        self.note_size(
            contents, len(log.user_ids), len(log), log.times is not None, log.times_comparable
        )

    def note_size(
        self, contents: BuildContents, n_users: int, n: int, has_times: bool, comparable: bool
    ) -> None:
        """Store the size of the log in the facts."""
        contents.facts |= {"n_users": n_users, "n_interactions": n}
        if has_times:
            contents.facts["times_comparable"] = comparable

    def drop(self, contents: BuildContents) -> None:
        super().drop(contents)
        for name in ("usual_weight", "rating_scale", "times_comparable"):
            contents.facts.pop(name, None)

    def feedback(self, contents: BuildContents) -> Feedback:
        """Return the rule that turns ratings and weights of a stored log into confidences."""
        usual = "usual_weights"
        has_weights = self.is_pending(contents, usual)
        return feedback_of(contents.facts, self.pending(contents, usual) if has_weights else None)

    def load(self, models: BuildModels) -> StoredLog:
        snapshot, usual = models.snapshot, "usual_weights"
        names = [name for name in self.names_in(snapshot) if name != usual]
        arrays = self.base_arrays(snapshot, *names, users=snapshot.facts["n_users"])
        if usual in self.names_in(snapshot):
            arrays |= self.read(snapshot, usual)
        return StoredLog(snapshot, arrays)
