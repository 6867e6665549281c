"""The stored log: each user's interactions, as one span of the arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from qkvsearch.collaborative.confidences import confidences, rating_scale
from qkvsearch.collaborative.history import UNKNOWN_TIME, History
from qkvsearch.data.interactions import Interactions
from qkvsearch.progress import Progress
from qkvsearch.stored.part import BuildReader, Change, LearnedPart, places, unmoved
from qkvsearch.workspace import BuildContents, Snapshot

Scale = tuple[float, float] | None


class StoredLog:
    """The log of an opened build: all of it, or one user's history.

    arrays: indptr int64 (n_users + 1,), where each user's interactions begin; items int32 (n,),
    ascending within a user; ratings float32 (n,) and times int64 (n,), where there are any.
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
        )

    def history(self, user: int | None) -> History:
        """That of the user in this row of the build; an empty one for None."""
        arrays, scale = self._arrays, self._build.facts.get("rating_scale")
        span = slice(0) if user is None else slice(*arrays["indptr"][user : user + 2])
        positions = arrays["items"][span].astype(np.int64)
        n = len(positions)
        times = arrays["times"][span] if "times" in arrays else np.full(n, UNKNOWN_TIME, np.int64)
        ratings = arrays["ratings"][span] if "ratings" in arrays else np.full(n, np.nan, np.float32)
        return History(positions, confidences(ratings, n, scale), ratings, times)


@dataclass(frozen=True)
class LogPart(LearnedPart[StoredLog]):
    """Where anybody's interactions were given."""

    group: str = "interactions"
    arrays: ClassVar = ("indptr", "items", "ratings", "times")

    def learn(self, contents: BuildContents, log: Interactions, progress: Progress) -> None:
        """Nothing but the scale of the ratings: the log is kept as it is."""
        self.store(contents, log)

    def store(self, contents: BuildContents, log: Interactions) -> None:
        indptr = np.searchsorted(log.users, np.arange(len(log.user_ids) + 1))
        contents.users = log.user_ids
        contents.facts |= {"n_users": len(log.user_ids), "n_interactions": len(log)}
        self.put(contents, indptr=indptr, items=log.items, ratings=log.ratings, times=log.times)
        if log.ratings is not None:
            contents.facts["rating_scale"] = rating_scale(log.ratings)
        if log.times is not None:
            contents.facts["times_comparable"] = log.times_comparable

    def load(self, build: BuildReader) -> StoredLog:
        return StoredLog(build.snapshot, self.read_all(build.snapshot))

    def revise(self, contents: BuildContents, change: Change, progress: Progress) -> None:
        """The log in the new row numbers, without the items that left. The scale of the ratings
        stays the one that everything was learned on.
        """
        n_former = change.former.n_items
        # Where all items that join come after all others, no row number changes.
        if unmoved(change.origin[:n_former], n_former):
            self.share(contents, *self.arrays)
            return
        place, log = places(change.origin, n_former), change.former.load(self).interactions()
        log = log.take(place[log.items] >= 0)
        items = place[log.items].astype(np.int32)
        order = np.lexsort((items, log.users))  # ids that become numbers have another order
        scale = contents.facts.get("rating_scale")
        self.store(contents, replace(log, items=items, item_ids=change.catalog.ids).take(order))
        if scale is not None:
            contents.facts["rating_scale"] = scale
