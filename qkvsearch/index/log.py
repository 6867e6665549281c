"""The stored log: each user's interactions, as one span of the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from qkvsearch._utils.progress import Progress
from qkvsearch.collaborative.confidences import Feedback
from qkvsearch.collaborative.history import UNKNOWN_TIME, History
from qkvsearch.data.interactions import Interactions
from qkvsearch.index.component import BuildReader, LearnedComponent
from qkvsearch.index.schema import ArraySpec
from qkvsearch.storage import BuildContents, Snapshot

# Of each interaction; the other arrays are of users and of items.
OF_PAIRS = ("items", "ratings", "times", "weights")


class StoredLog:
    """The log of an opened build: all of it, or one user's history.

    arrays: indptr int64 (n_users + 1,), where each user's interactions begin; items int32 (n,),
    rows of the base, ascending within a user; ratings and weights float32 (n,) and times int64
    (n,), where there are any; with weights usual_weights float32 (n_items,), as `Feedback` has
    them. What is of items that left is no part of the log.
    """

    def __init__(self, build: Snapshot, arrays: dict[str, np.ndarray]) -> None:
        self._build, self._arrays = build, arrays

    def interactions(self) -> Interactions:
        """What the build learned from, in the owner's ids."""
        lengths = np.diff(self._arrays["indptr"])
        log = Interactions(
            users=np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
            items=self._arrays["items"],
            user_ids=self._build.tables.ids("users"),
            item_ids=self._build.tables.ids("items"),
            ratings=self._arrays.get("ratings"),
            times=self._arrays.get("times"),
            times_comparable=self._build.facts.get("times_comparable", True),
            weights=self._arrays.get("weights"),
            scale=self.feedback.scale,
        )
        if self._is_placed:
            return log
        placed = replace(log, items=self._places[log.items].astype(np.int32))
        order = np.lexsort((placed.items, placed.users))
        return placed.take(order[placed.items[order] >= 0])

    @cached_property
    def feedback(self) -> Feedback:
        """What ratings and weights are worth here."""
        return feedback_of(self._build.facts, self._arrays.get("usual_weights"))

    @cached_property
    def last_time(self) -> int | None:
        """When the latest interaction was; None without times."""
        times = self._arrays.get("times", ())
        return int(np.max(times)) if len(times) else None

    def history(self, user: int | None) -> History:
        """That of the user in this row of the build; an empty one for None."""
        arrays = self._arrays
        span = slice(0) if user is None else slice(*arrays["indptr"][user : user + 2])
        positions = arrays["items"][span].astype(np.int64)
        there: Any = slice(None)
        if not self._is_placed:
            positions = self._places[positions]
            there = np.argsort(positions, kind="stable")
            there = there[positions[there] >= 0]
            positions = positions[there]
        n = len(positions)

        def of_pairs(name: str, unknown: Any = None) -> Any:
            return arrays[name][span][there] if name in arrays else unknown

        times = of_pairs("times", np.full(n, UNKNOWN_TIME, np.int64))
        ratings = of_pairs("ratings", np.full(n, np.nan, np.float32))
        weights = of_pairs("weights")
        confidences = self.feedback.confidences(positions, ratings, weights)
        return History(positions, confidences, ratings, times, weights)

    def liking(self, item: int) -> np.ndarray:
        """The rows of the users for whom the item in this row counts for anything, int64 (n,)."""
        row = np.flatnonzero(self._places == item)
        pairs = np.flatnonzero(np.isin(self._arrays["items"], row))
        ratings, weights = (
            self._arrays[name][pairs] if name in self._arrays else None
            for name in ("ratings", "weights")
        )
        items = np.full(len(pairs), item, dtype=np.int64)
        likes = self.feedback.confidences(items, ratings, weights) > 0
        users = np.searchsorted(self._arrays["indptr"], pairs[likes], side="right") - 1
        return np.asarray(users, dtype=np.int64)

    @cached_property
    def _places(self) -> np.ndarray:
        """The row number of each of the base's items now, −1 for one that left."""
        return self._build.rows.place_of_base

    @cached_property
    def _is_placed(self) -> bool:
        """Whether every item has the row number that the base gave it."""
        return unmoved(self._places)


def feedback_of(facts: Mapping[str, Any], usual_weights: np.ndarray | None) -> Feedback:
    """What the numbers of a build's log are worth, by its facts."""
    scale = facts.get("rating_scale")
    return Feedback(scale and tuple(scale), facts.get("usual_weight"), usual_weights)


@dataclass(frozen=True)
class LogComponent(LearnedComponent[StoredLog]):
    """Where anybody's interactions were given. They stay where items leave, and are read without
    those of the items that left. What the numbers are worth stays as it was when all was learned.
    """

    group: str = "interactions"
    arrays: ClassVar = {
        "indptr": ArraySpec("i", ("users",), spans="pairs"),
        "items": ArraySpec("i", ("pairs",), below="items"),
        "ratings": ArraySpec("f", ("pairs",)),
        "times": ArraySpec("i", ("pairs",)),
        "weights": ArraySpec("f", ("pairs",)),
        "usual_weights": ArraySpec("f", ("items",), rows="interactions"),
    }

    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Nothing but what its numbers are worth: the log is kept as it is."""
        feedback = Feedback.of(log)
        self.drop(contents)
        self.store(contents, log)
        self.put(contents, usual_weights=feedback.usual_weights)
        self.note_feedback(contents, feedback)

    def note_feedback(self, contents: BuildContents, feedback: Feedback) -> None:
        """What its numbers are worth, among the facts of a build."""
        if feedback.usual_weight is not None:
            contents.facts["usual_weight"] = feedback.usual_weight
        if feedback.scale is not None:
            contents.facts["rating_scale"] = feedback.scale

    def store(self, contents: BuildContents, log: Interactions) -> None:
        indptr = np.searchsorted(log.users, np.arange(len(log.user_ids) + 1))
        contents.users = log.user_ids
        self.put(contents, indptr=indptr, **{name: getattr(log, name) for name in OF_PAIRS})
        self.note_size(
            contents, len(log.user_ids), len(log), log.times is not None, log.times_comparable
        )

    def note_size(
        self, contents: BuildContents, n_users: int, n: int, has_times: bool, comparable: bool
    ) -> None:
        """How much of it there is, among the facts of a build."""
        contents.facts |= {"n_users": n_users, "n_interactions": n}
        if has_times:
            contents.facts["times_comparable"] = comparable

    def drop(self, contents: BuildContents) -> None:
        super().drop(contents)
        for name in ("usual_weight", "rating_scale", "times_comparable"):
            contents.facts.pop(name, None)

    def feedback(self, contents: BuildContents) -> Feedback:
        """What ratings and weights are worth, once the log is stored."""
        usual = "usual_weights"
        has_weights = self.is_pending(contents, usual)
        return feedback_of(contents.facts, self.pending(contents, usual) if has_weights else None)

    def load(self, build: BuildReader) -> StoredLog:
        snapshot, usual = build.snapshot, "usual_weights"
        names = [name for name in self.names_in(snapshot) if name != usual]
        arrays = self.piece(snapshot.base, *names, users=snapshot.facts["n_users"])
        if usual in self.names_in(snapshot):
            arrays |= self.read(snapshot, usual)
        return StoredLog(snapshot, arrays)

    def merge(self, contents: BuildContents, build: BuildReader, progress: Progress) -> None:
        super().merge(contents, build, progress)
        if not unmoved(build.snapshot.rows.place_of_base):
            self.store(contents, build.load(self).interactions())


def unmoved(places: np.ndarray) -> bool:
    """True where every row is where it was."""
    return bool((places == np.arange(len(places))).all())
