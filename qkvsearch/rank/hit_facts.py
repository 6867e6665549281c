"""What is said about recommended hits: that they are weak or cold, and the rating they may get."""

from __future__ import annotations

import numpy as np

from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.heads.stored_ratings import RatingsComponent
from qkvsearch.models.recommend_heads import HEADS
from qkvsearch.models.strength import best_unseen
from qkvsearch.models.user_history import History
from qkvsearch.rank.ranking import Ranking


def with_strength(ranking: Ranking, history: History, models: StoredModels) -> Ranking:
    """Mark the hits as `weak`, and note the reason in numbers, where preferences rank by too short
    a history. `where`, damping and diversity never make a hit weak.
    """
    if not ranking or ranking.head is None or models.strength is None:
        return ranking
    # Without what damping and diversity added.
    heads = [head for head in ranking.head.addends or [ranking.head] if head.name in HEADS]
    if not heads:
        return ranking
    scores = np.sum([head.scores for head in heads], axis=0)
    why = models.strength.why_weak(history, best_unseen(scores, history))
    if not why:
        return ranking
    return ranking.annotated(weak=[True] * len(ranking)).noted([why])


def with_facts(ranking: Ranking, history: History, models: StoredModels) -> Ranking:
    """Mark the hits that nobody interacted with before the build as `cold`, and predict ratings
    where the history has any.
    """
    if models.implicit is None:
        return ranking
    return with_ratings(with_cold(ranking, models), history, models)


def with_cold(ranking: Ranking, models: StoredModels) -> Ranking:
    """Mark the hits that nobody interacted with before the build as `cold`."""
    is_cold = models.item_counts[ranking.positions] == 0
    if not is_cold.any():
        return ranking
    return ranking.annotated(cold=[True if cold else None for cold in is_cold])


def with_ratings(ranking: Ranking, history: History, models: StoredModels) -> Ranking:
    """Predict the ratings of the hits, where the history has any rating to go by."""
    is_rated = np.isfinite(history.ratings)
    model = models.find(RatingsComponent())
    if model is None or not is_rated.any():
        return ranking
    bias, embedding = model.fold_in(history.positions[is_rated], history.ratings[is_rated])
    predicted = model.predict(embedding, bias, ranking.positions)
    return ranking.annotated(predicted_rating=predicted.tolist())
