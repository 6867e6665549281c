"""Why there are no recommendations, and no similar items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qkvsearch.errors import listed_names
from qkvsearch.models.user_history import History
from qkvsearch.rank.questions import NEXT_ITEM, RecommendQuestion
from qkvsearch.scores.fusion import Scores
from qkvsearch.store import StoredCatalog

# How many items a sentence names.
MAX_NAMED = 3


def none_recommended(
    catalog: StoredCatalog,
    question: RecommendQuestion,
    history: History,
    head: Scores | None,
    has_log: bool,
) -> str:
    """Return a note on why there are no recommendations.

    head: the scores by the history, None where nothing could be scored. has_log: whether the build
    learned from interactions.
    """
    if head is not None:
        known = " that the next-item model knows" if question.model == NEXT_ITEM else ""
        return f"No recommendations: no other item is left{known}."
    if not len(history):
        without = " without the items of `without`" if question.without else ""
        return f"No recommendations: the history is empty{without}."
    liked = history.liked
    if not len(liked):
        return (
            "No recommendations: this user likes nothing yet. All that they have is disliked or "
            "given back."
        )
    items = named_items(catalog, liked.positions)
    if question.model == NEXT_ITEM:
        return f"No recommendations: the next-item model does not know {items}."
    if not has_log:
        return f"No recommendations: the encoder knows no word of {items}."
    return (
        f"No recommendations: what others like does not tell what goes with {items}. "
        "`similar` compares texts."
    )


def no_neighbours(catalog: StoredCatalog, positions: Sequence[int], head: Scores | None) -> str:
    """Return a note on why there are no similar items.

    positions: the rows of the items asked about. head: the scores by them, None where nothing could
    be scored.
    """
    if head is not None:
        return "No neighbours: no other item is left."
    items = named_items(catalog, positions)
    return f"No neighbours: neither users nor texts say anything about {items}."


def named_items(catalog: StoredCatalog, positions: Sequence[int] | np.ndarray) -> str:
    """Return the titles and ids of items, the first ones of many."""
    ids, titles = catalog.names(positions)
    names = [f"{title} ({id_})" for id_, title in zip(ids, titles, strict=True)]
    return listed_names(names, MAX_NAMED)
