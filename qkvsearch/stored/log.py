"""The stored log: each user's interactions, as one span of the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from qkvsearch.collaborative.confidences import Feedback
from qkvsearch.collaborative.history import UNKNOWN_TIME, History
from qkvsearch.data.interactions import Interactions
from qkvsearch.progress import Progress
from qkvsearch.stored.part import BuildReader, Change, LearnedPart, places, unmoved
from qkvsearch.workspace import BuildContents, Snapshot

# Of each interaction; the other arrays are of users and of items.
OF_PAIRS = ("items", "ratings", "times", "weights")


class StoredLog:
    """The log of an opened build: all of it, or one user's history.

    arrays: indptr int64 (n_users + 1,), where each user's interactions begin; items int32 (n,),
    ascending within a user; ratings and weights float32 (n,) and times int64 (n,), where there are
    any; with weights usual_weights float32 (n_items,), as `Feedback` has them.
    """

    def __init__(self, build: Snapshot, arrays: dict[str, np.ndarray]) -> None:
        self._build, self._arrays = build, arrays

    def interactions(self) -> Interactions:
        """What the build learned from, in the owner's ids."""
        lengths = np.diff(self._arrays["indptr"])
        return Interactions(
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
        n = len(positions)
        times = arrays["times"][span] if "times" in arrays else np.full(n, UNKNOWN_TIME, np.int64)
        ratings = arrays["ratings"][span] if "ratings" in arrays else np.full(n, np.nan, np.float32)
        weights = arrays["weights"][span] if "weights" in arrays else None
        confidences = self.feedback.confidences(positions, ratings, weights)
        return History(positions, confidences, ratings, times, weights)


def feedback_of(facts: Mapping[str, Any], usual_weights: np.ndarray | None) -> Feedback:
    """As the facts of a build tell. Builds of older versions say less, and mean what they did."""
    scale = facts.get("rating_scale")
    return Feedback(
        scale and tuple(scale),
        facts.get("usual_weight"),
        usual_weights,
        dislikes_count="disliked_below" not in facts,
    )


@dataclass(frozen=True)
class LogPart(LearnedPart[StoredLog]):
    """Where anybody's interactions were given."""

    group: str = "interactions"
    arrays: ClassVar = ("indptr", *OF_PAIRS, "usual_weights")

    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Nothing but what its numbers are worth: the log is kept as it is."""
        feedback = Feedback.of(log)
        self.store(contents, log)
        self.put(contents, usual_weights=feedback.usual_weights)
        if feedback.usual_weight is not None:
            contents.facts["usual_weight"] = feedback.usual_weight
        if feedback.scale is not None:
            contents.facts["rating_scale"] = feedback.scale
            contents.facts["disliked_below"] = sum(feedback.scale) / 2

    def store(self, contents: BuildContents, log: Interactions) -> None:
        indptr = np.searchsorted(log.users, np.arange(len(log.user_ids) + 1))
        contents.users = log.user_ids
        contents.facts |= {"n_users": len(log.user_ids), "n_interactions": len(log)}
        self.put(contents, indptr=indptr, **{name: getattr(log, name) for name in OF_PAIRS})
        if log.times is not None:
            contents.facts["times_comparable"] = log.times_comparable

    def feedback(self, contents: BuildContents) -> Feedback:
        """What ratings and weights are worth, once the log is stored."""
        usual = "usual_weights"
        has_weights = self._name(usual) in contents.shared | contents.arrays.keys()
        return feedback_of(contents.facts, self.pending(contents, usual) if has_weights else None)

    def load(self, build: BuildReader) -> StoredLog:
        return StoredLog(build.snapshot, self.read_all(build.snapshot))

    def revise(self, contents: BuildContents, change: Change, progress: Progress) -> None:
        """The log in the new row numbers, without the items that left. What its numbers are worth
        stays as it was when everything was learned.
        """
        n_former = change.former.n_items
        self.take_rows(contents, change.origin, "usual_weights")
        # Where all items that join come after all others, no row number changes.
        if unmoved(change.origin[:n_former], n_former):
            self.share(contents, "indptr", *OF_PAIRS)
            return
        place, log = places(change.origin, n_former), change.former.load(self).interactions()
        log = log.take(place[log.items] >= 0)
        items = place[log.items].astype(np.int32)
        order = np.lexsort((items, log.users))  # ids that become numbers have another order
        self.store(contents, replace(log, items=items, item_ids=change.catalog.ids).take(order))
