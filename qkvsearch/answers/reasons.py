"""What is said of each recommended hit: the reasons for its score, and what is known of it."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from qkvsearch.collaborative.history import History
from qkvsearch.retrieval import Part, Ranking
from qkvsearch.stored import StoredModels
from qkvsearch.workspace import Tables


def with_reasons(
    ranking: Ranking,
    history: History,
    tables: Tables,
    shared_with: Sequence[Container[int]] = (),
) -> Ranking:
    """Each hit with `because`: all of the history and what it adds to the score, and without an
    id what damping, diversity and a constant add.

    shared_with: where hits are users, the row numbers of each one's items, so that each item of the
    history says whether it is `shared`.
    """
    ids, titles = tables.names(history.positions)
    known = dict(zip(ids, zip(titles, history.positions.tolist(), strict=True), strict=True))

    def reason(part: Part, theirs: Container[int] | None) -> dict[str, Any]:
        title, position = known.get(part.query, (part.head, -1))
        found = {"id": part.query, "title": title, "contribution": part.value}
        return found if theirs is None else {**found, "shared": position in theirs}

    others: Sequence[Container[int] | None] = shared_with or [None] * len(ranking)
    reasons = [
        [reason(part, theirs) for part in ranking.explain(i)] for i, theirs in enumerate(others)
    ]
    return ranking.annotated(because=reasons)


def with_facts(ranking: Ranking, history: History, models: StoredModels) -> Ranking:
    """Each hit with `cold` where nobody interacted with it before the build, and with the rating
    that the user would give, where the history has ratings to go by.
    """
    is_known = models.item_counts[ranking.positions] > 0
    ranking = ranking.annotated(cold=[None if known else True for known in is_known])
    rated = np.isfinite(history.ratings)
    if models.ratings is None or not rated.any():
        return ranking
    bias, embedding = models.ratings.fold_in(history.positions[rated], history.ratings[rated])
    predicted = models.ratings.predict(embedding, bias, ranking.positions)
    return ranking.annotated(predicted_rating=predicted.tolist())
