"""The stored log of interactions, and users' histories: the log with what was recorded since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.progress import Progress
from qkvsearch._utils.validation import check_id
from qkvsearch.collaborative.confidences import Feedback
from qkvsearch.collaborative.user_history import NOW, UNKNOWN_TIME, History, Interaction
from qkvsearch.data.ids import Ids, are_integers
from qkvsearch.data.interactions import Interactions
from qkvsearch.errors import QkvError
from qkvsearch.index.component import ArraySpec, LearnedComponent
from qkvsearch.storage import BuildContents, Snapshot, StoredCatalog

if TYPE_CHECKING:
    from qkvsearch.index import StoredModels

# Histories and embeddings are held of at most 2,048 users at a time, but for the vectors of
# `similar_users`, and at most 200,000 rows of a table of what to recommend to them.
BLOCK, ROWS = 2048, 200_000
# Of each interaction; the other arrays are of users and of items.
OF_PAIRS = ("items", "ratings", "times", "weights")


class StoredLog:
    """The log of an opened build: all of it, or one user's history.

    arrays: indptr int64 (n_users + 1,), where each user's interactions begin; items int32 (n,),
    rows of the base, ascending within a user; ratings and weights float32 (n,) and times int64
    (n,), where there are any; with weights usual_weights float32 (n_items,), as `Feedback` has
    them. What is of items that left is no part of the log.
    """

    def __init__(self, snapshot: Snapshot, arrays: dict[str, np.ndarray]) -> None:
        self._build, self._arrays = snapshot, arrays

    def interactions(self) -> Interactions:
        """What the build learned from, in the owner's ids."""
        lengths = np.diff(self._arrays["indptr"])
        log = Interactions(
            users=np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
            items=self._arrays["items"],
            user_ids=self._build.catalog.ids("users"),
            item_ids=self._build.catalog.ids("items"),
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
        return self._build.rows.item_rows_of_base

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

    def load(self, models: StoredModels) -> StoredLog:
        snapshot, usual = models.snapshot, "usual_weights"
        names = [name for name in self.names_in(snapshot) if name != usual]
        arrays = self.piece(snapshot.base, *names, users=snapshot.facts["n_users"])
        if usual in self.names_in(snapshot):
            arrays |= self.read(snapshot, usual)
        return StoredLog(snapshot, arrays)

    def merge(self, contents: BuildContents, models: StoredModels, progress: Progress) -> None:
        super().merge(contents, models, progress)
        if not unmoved(models.snapshot.rows.item_rows_of_base):
            self.store(contents, models.load(self).interactions())


def unmoved(places: np.ndarray) -> bool:
    """True where every row is where it was."""
    return bool((places == np.arange(len(places))).all())


@dataclass(frozen=True)
class Histories:
    """The users of a build in its order, then those recorded since, and what each did."""

    models: StoredModels
    catalog: StoredCatalog

    @cached_property
    def _built(self) -> Ids:
        return self.catalog.ids("users")

    @cached_property
    def _recorded(self) -> dict[str, list[Interaction]]:
        return self.catalog.records.by_user()

    @cached_property
    def ids(self) -> Ids:
        """Whole numbers stay numbers where those of the build are, whoever was recorded since."""
        newcomers = [user for user in self._recorded if user not in self._built]
        return JoinedIds(self._built, newcomers) if newcomers else self._built

    @property
    def mixed(self) -> bool:
        """Whether some ids are numbers and some are text."""
        return self._built.integer and not self.ids.integer and len(self._built) > 0

    def __len__(self) -> int:
        return len(self.ids)

    def blocks(self, k: int = 1) -> list[tuple[int, int]]:
        """First row and last + 1 of each, where a table has k rows for every user."""
        size = min(BLOCK, max(1, ROWS // max(k, 1)))
        return [(start, min(start + size, len(self))) for start in range(0, len(self), size)]

    def at(self, row: int, recent: int | None = None) -> History:
        """The history of the user in this row of `ids`."""
        built = row if row < len(self._built) else None
        history = self._of_row(built, self._recorded.get(self.ids.texts[row], []))
        return history if recent is None else history.recent(recent)

    @property
    def recorded_rows(self) -> np.ndarray:
        """Rows of `ids`, int64 (n,), of the users of whom anything was recorded."""
        return np.array([self.ids.find(user) for user in self._recorded], dtype=np.int64)

    def n_recorded(self, row: int) -> int:
        """How much was recorded of the user in this row of `ids`."""
        return len(self._recorded.get(self.ids.texts[row], []))

    def n_users(self, item: int) -> int:
        """How many interacted with the item in this row, those recorded since included."""
        known = 0 if self.models.implicit is None else int(self.models.item_counts[item])
        since = (self.catalog.user_position(user) for user in self.catalog.records.users_of(item))
        return known + sum(
            row is None or item not in self.models.history(row).positions for row in since
        )

    @property
    def user_counts(self) -> np.ndarray:
        """`n_users` of every item, int64 (n_items,)."""
        counts = np.zeros(self.models.n_items, dtype=np.int64)
        if self.models.implicit is not None:
            counts += self.models.item_counts.astype(np.int64)
        for user, interactions in self._recorded.items():
            row = self._built.find(user)
            known = self.models.history(row if row >= 0 else None).positions
            counts[np.setdiff1d([one.position for one in interactions], known)] += 1
        return counts

    def liking(self, item: int) -> set[int]:
        """Rows of `ids`: the users who like the item in this row, those recorded since included."""
        log = self.models.find(LogComponent())
        found = set() if log is None else set(log.liking(item).tolist())
        for name in self.catalog.records.users_of(item):
            row = self.ids.find(name)
            found.discard(row)
            if item in self.at(row).liked.positions:
                found.add(row)
        return found

    def of(
        self,
        user: Any,
        likes: Sequence[int] = (),
        recent: int | None = None,
        rated: Sequence[Interaction] = (),
    ) -> History:
        """What a user interacted with, what was recorded since, what they rate now, and the items
        they say they like.

        likes: row numbers. recent: with each interaction counting half for every `recent` later
        ones. Raises `UnknownIdError` for a user who is not there, `QkvError` for nobody.
        """
        if user is None and not likes and not rated:
            raise QkvError("nobody to recommend to: name a user, or something they like")
        row = None if user is None else self.catalog.user_position(check_id("user", user))
        recorded = [] if user is None else self.catalog.records.of(user)
        is_new = user is not None and row is None and not recorded
        if is_new and not self.catalog.records.has(user):
            raise self.catalog.unknown_user(user)
        liked = [Interaction(item, None, NOW) for item in likes]
        history = self._of_row(row, [*recorded, *rated]).then(liked, self.models.feedback)
        return history if recent is None else history.recent(recent)

    def _of_row(self, row: int | None, recorded: Sequence[Interaction]) -> History:
        """What the build knows of the user in this row, None for a new one, then `recorded`."""
        history = self.models.history(row)
        return history.then(history.recorded_later(recorded), self.models.feedback)


class JoinedIds(Ids):
    """The ids of a build, and then those of others: text among them makes no number a text."""

    def __init__(self, built: Ids, others: Sequence[str]) -> None:
        super().__init__([*built.texts, *others], built.fold)
        self._numbers, self._n_built = built.integer, len(built)

    def __getitem__(self, position: Any) -> Any:
        text = self.texts[position]
        if not self._numbers:
            return text
        return int(text) if position < self._n_built or are_integers([text]) else text
