"""A person to a head: the history, what it is solved to, and what of it carries each score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch.embeddings.factors import ImplicitFactors
from qkvsearch.embeddings.labelled import LabelledVectors
from qkvsearch.errors import QkvError
from qkvsearch.retrieval import DenseKeys, Head, Ranking
from qkvsearch.stored import History, StoredModels
from qkvsearch.workspace import Tables

HEAD = "collaborative"


@dataclass(frozen=True)
class Recommender:
    """The collaborative models of a build, and what people did since."""

    factors: ImplicitFactors
    models: StoredModels
    tables: Tables

    def history(self, user: Any, likes: Sequence[Any] = ()) -> History:
        """What a user met, what was recorded since, and what someone says they like on top."""
        if user is None and not likes:
            raise QkvError("nobody to recommend to: name a user, or something they like")
        scale = self.models.rating_scale
        position = None if user is None else self.tables.user_position(user)
        recorded = [] if user is None else self.tables.recorded(user)
        if user is not None and position is None and not recorded:
            raise self.tables.unknown_user(user)
        history = self.models.history(position)
        liked = [(self.tables.item_position(item), None) for item in likes]
        history = history.then(history.recorded_later(recorded).items(), scale)
        return history.then(liked, scale)

    def head(self, history: History) -> Head | None:
        """Scores of all items by an exact solve, as sums over the history; None where it holds
        nothing liked, or nothing that anyone met: there is no direction to look in.
        """
        vectors = self.factors.history_vectors(history.positions, history.confidences)
        if not vectors.any():
            return None
        ids, _ = self.tables.names(history.positions)
        return DenseKeys(self.factors.item_embeddings).head(HEAD, LabelledVectors(ids, vectors))

    def with_reasons(self, ranking: Ranking, history: History) -> Ranking:
        """Each hit with `because`: all of the history and what it adds to the score."""
        ids, titles = self.tables.names(history.positions)
        titled = dict(zip(ids, titles, strict=True))
        reasons = [
            [
                {"id": part.query, "title": titled[part.query], "contribution": part.value}
                for part in ranking.explain(i)
            ]
            for i in range(len(ranking))
        ]
        return ranking.annotated(because=reasons)

    def with_ratings(self, ranking: Ranking, history: History) -> Ranking:
        """Each hit with the rating it would be given, where the history has ratings to go by."""
        ratings, rated = self.models.ratings, np.isfinite(history.ratings)
        if ratings is None or not rated.any():
            return ranking
        bias, embedding = ratings.fold_in(history.positions[rated], history.ratings[rated])
        predicted = ratings.predict(embedding, bias, ranking.positions)
        return ranking.annotated(predicted_rating=predicted.tolist())
