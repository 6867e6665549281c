"""A person to a head: the history, what it is solved to, and what of it carries each score."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch.answers.control import ItemSimilarity, damped, diversified, log_popularity
from qkvsearch.answers.next_item import SequenceScorer, in_order
from qkvsearch.collaborative.factors import ImplicitFactors
from qkvsearch.collaborative.history import NOW, History, Interaction
from qkvsearch.errors import QkvError, WorkspaceError, suggest
from qkvsearch.labelled import LabelledVectors
from qkvsearch.retrieval import DenseKeys, Head, Part, Ranking
from qkvsearch.stored import StoredModels
from qkvsearch.workspace import Tables

if TYPE_CHECKING:
    from qkvsearch.sequences.model import NextItemModel

HEAD = "collaborative"
TASTES, NEXT_ITEM = MODELS = ("tastes", "next-item")


@dataclass(frozen=True)
class Recommender:
    """The collaborative models of a build, and what people did since."""

    factors: ImplicitFactors
    models: StoredModels
    tables: Tables

    def history(self, user: Any, likes: Sequence[Any] = (), recent: int | None = None) -> History:
        """What a user met, what was recorded since, and what someone says they like on top.

        recent: with each interaction counting half for every so many that came later.
        """
        if user is None and not likes:
            raise QkvError("nobody to recommend to: name a user, or something they like")
        position = None if user is None else self.tables.user_position(user)
        recorded = [] if user is None else self.tables.records.of(user)
        is_new = user is not None and position is None and not recorded
        if is_new and not self.tables.records.has(user):
            raise self.tables.unknown_user(user)
        liked = [(self.tables.item_position(item), None, NOW) for item in likes]
        history = self.met(position, recorded).then(liked, self.models.rating_scale)
        check_recent(recent)
        return history if recent is None else history.recent(recent)

    def met(self, position: int | None, recorded: Sequence[Interaction]) -> History:
        """What the user in this row of the build met, and what was recorded of them since."""
        history = self.models.history(position)
        return history.then(history.recorded_later(recorded), self.models.rating_scale)

    def check_rating(self, rating: float | None) -> None:
        """Raises `QkvError` for one that is not on the scale of the log's."""
        scale = self.models.rating_scale
        if rating is not None and scale is None:
            raise QkvError("the interactions here have no ratings: leave the rating out")
        if rating is not None and scale is not None and not scale[0] <= rating <= scale[1]:
            raise QkvError(f"a rating here is from {scale[0]:g} to {scale[1]:g}, not {rating:g}")

    def by(self, model: str, recent: int | None) -> Callable[[History, float], Head | None]:
        """What turns a history into a head: one of `MODELS`. Raises `QkvError`."""
        check_model(model, recent)
        return self.head if model == TASTES else self.sequel

    def head(self, history: History, damping: float = 0.0) -> Head | None:
        """Scores of all items by an exact solve, as sums over the history; None where it holds
        nothing liked, or nothing that anyone met: there is no direction to look in.
        """
        check_damping(damping)
        vectors = self.factors.history_vectors(history.positions, history.confidences)
        if not vectors.any():
            return None
        ids, _ = self.tables.names(history.positions)
        keys = DenseKeys(self.factors.item_embeddings)
        return self._damped(keys.head(HEAD, LabelledVectors(ids, vectors)), damping)

    def sequel(self, history: History, damping: float = 0.0) -> Head | None:
        """Scores by what comes next after the history, in its order; None where it has nothing
        that anyone met at the build. Raises `WorkspaceError` where the build has no such model.
        """
        check_damping(damping)
        rows = in_order(history)
        ids, _ = self.tables.names(rows)
        return self._damped(SequenceScorer(self.next_item, rows, ids).head(), damping)

    @property
    def next_item(self) -> NextItemModel:
        """Raises `WorkspaceError` where the build has no model of what comes next."""
        if self.models.next_item is None:
            raise WorkspaceError(
                "no model of what comes next is here (--model next-item): build with --next-item"
            )
        return self.models.next_item

    def _damped(self, head: Head | None, damping: float) -> Head | None:
        if head is None or not damping:
            return head
        return damped(head, log_popularity(self.models.item_counts), damping)

    def diverse(self, ranking: Ranking, diversity: float, k: int) -> Ranking:
        """k of a ranking's hits, relevant and unlike one another. Raises `QkvError`."""
        if not 0 <= diversity <= 1:
            raise QkvError(f"the diversity is a number from 0 to 1, not {diversity}")
        if not diversity:
            return ranking
        similarity = ItemSimilarity.of(self.models, self.factors.item_embeddings, ranking.positions)
        return diversified(ranking, similarity, diversity, k)

    def with_reasons(
        self, ranking: Ranking, history: History, shared_with: Sequence[Container[int]] = ()
    ) -> Ranking:
        """Each hit with `because`: all of the history and what it adds to the score, and without an
        id what damping, diversity and a constant add.

        shared_with: for each hit, where hits are users, the row numbers of what that one met, so
        that each item of the history says whether it is `shared`.
        """
        ids, titles = self.tables.names(history.positions)
        met = zip(titles, history.positions.tolist(), strict=True)
        known = dict(zip(ids, met, strict=True))

        def reason(part: Part, theirs: Container[int] | None) -> dict[str, Any]:
            title, position = known.get(part.query, (part.head, -1))
            found = {"id": part.query, "title": title, "contribution": part.value}
            return found if theirs is None else {**found, "shared": position in theirs}

        others: Sequence[Container[int] | None] = shared_with or [None] * len(ranking)
        reasons = [
            [reason(part, theirs) for part in ranking.explain(i)] for i, theirs in enumerate(others)
        ]
        return ranking.annotated(because=reasons)

    def with_facts(self, ranking: Ranking, history: History) -> Ranking:
        """Each hit with `cold` where nobody had met it at the build, and with the rating it would
        be given, where the history has ratings to go by.
        """
        met = self.models.item_counts[ranking.positions] > 0
        ranking = ranking.annotated(cold=[None if known else True for known in met])
        ratings, rated = self.models.ratings, np.isfinite(history.ratings)
        if ratings is None or not rated.any():
            return ranking
        bias, embedding = ratings.fold_in(history.positions[rated], history.ratings[rated])
        predicted = ratings.predict(embedding, bias, ranking.positions)
        return ranking.annotated(predicted_rating=predicted.tolist())


def check_model(model: str, recent: int | None) -> None:
    """Raises `QkvError`."""
    if model not in MODELS:
        raise QkvError(f"no model {model!r}{suggest(model, list(MODELS))}")
    if model == NEXT_ITEM and recent is not None:
        raise QkvError("what comes next goes by the order already: leave --recent out")


def check_damping(damping: float) -> None:
    """Raises `QkvError`."""
    if not 0 <= damping < np.inf:
        raise QkvError(f"the damping is a number from 0 up, not {damping}")


def check_recent(half_life: int | None) -> None:
    """Raises `QkvError`."""
    if half_life is not None and not half_life >= 1:
        raise QkvError(f"recent is a number of interactions, 1 or more, not {half_life}")
