"""Diversity: hits that are unlike one another, by maximal marginal relevance (MMR)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from qkvsearch.errors import QkvError
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.rank.ranking import Ranking
from qkvsearch.scores.fusion import plus
from qkvsearch.text.labelled import unit_rows

DIVERSITY = "diversity"
# Diverse hits are chosen from the best 200, the same for every k up to that, and similarity is
# weighed by how far apart the scores of the best 100 are.
POOL, REACH = 200, 100
# The limit of diverse hits: each choice compares all of them.
MAX_DIVERSE = 1000

# Row in a pool to its similarities (n,) with all of the pool, from −1 to 1.
Similarity = Callable[[int], np.ndarray]


def pool_size(k: int, diversity: float) -> int:
    """Return how many hits to rank to choose k diverse ones. Raises `QkvError` for too many."""
    if not diversity:
        return k
    if k > MAX_DIVERSE:
        raise QkvError(f"`diversity` is for the best {MAX_DIVERSE:,} hits, not for {k:,}")
    return max(POOL, k) if k > 0 else k


def diverse(ranking: Ranking, models: StoredModels, diversity: float, k: int) -> Ranking:
    """Return the ranking's k hits that are relevant and differ in embeddings and texts."""
    if not diversity:
        return ranking
    texts = models.dense_keys(models.main_head).vectors[ranking.positions].astype(np.float64)
    if models.implicit is None:  # no item has an embedding
        embeddings = np.zeros((len(texts), 1))
    else:
        embeddings = models.implicit.item_embeddings[ranking.positions].astype(np.float64)
    return diversified(ranking, item_similarity(embeddings, texts), diversity, k)


def diversified(ranking: Ranking, similarity: Similarity, diversity: float, k: int) -> Ranking:
    """Return the k hits that are relevant and differ, by maximal marginal relevance.

    Choose one after another the hit that is best by (1 − X) · score − X · r · its similarity to the
    most similar one chosen before. X is the diversity (Carbonell and Goldstein 1998, "The use of
    MMR", section 2), and r the range of the scores of the best 100, so that relevance and
    similarity both count from 0 to 1. The result is the hit's score; the difference to the score
    before is its component "diversity". The first hit stays the first, and weights stay those of
    the scores before.

    Neither r nor the ranking, the best 200, depends on k up to 200: the first 5 of 50 are those
    that k = 5 gives.
    """
    if not ranking or ranking.head is None:
        return ranking
    relevance = np.array([hit.score for hit in ranking])
    penalty = diversity * float(np.ptp(relevance[:REACH]))
    chosen, values = _one_by_one((1 - diversity) * relevance, similarity, penalty, k)
    positions = ranking.positions[chosen]
    added = np.zeros(len(ranking.head.scores))
    added[positions] = values - relevance[chosen]
    head = plus(ranking.head, DIVERSITY, added)
    by_head = head.by_names(positions)
    scores = head.scores[positions].tolist()
    hits = []
    for index, row in enumerate(chosen):
        changed = {"rank": index + 1, "score": scores[index], "heads": by_head[index]}
        hits.append(ranking[row]._replace(**changed))
    return replace(ranking, hits=hits, positions=positions, head=head)


def _one_by_one(
    relevance: np.ndarray, similarity: Similarity, penalty: float, k: int
) -> tuple[list[int], np.ndarray]:
    """Return rows of the pool in the order in which they are chosen, and their values."""
    nearest = np.zeros(len(relevance))  # being the opposite is no merit
    left = np.ones(len(relevance), dtype=bool)
    chosen: list[int] = []
    values: list[float] = []
    for _ in range(min(k, len(relevance))):
        worth = relevance - penalty * nearest
        best = int(np.argmax(np.where(left, worth, -np.inf)))  # of equals the more relevant
        chosen.append(best)
        values.append(float(worth[best]))
        left[best] = False
        # To the most similar of those that are chosen.
        nearest = np.maximum(nearest, similarity(best))
    return chosen, np.array(values)


def item_similarity(embeddings: np.ndarray, texts: np.ndarray) -> Similarity:
    """Return the cosines between items of a pool: of their embeddings (n, d), or of their text
    vectors (n, t) where one of the two has no embedding.
    """
    embeddings, texts = unit_rows(embeddings), unit_rows(texts)
    is_embedded = np.asarray(embeddings.any(axis=1))

    def similarity(row: int) -> np.ndarray:
        return np.where(
            is_embedded & is_embedded[row], embeddings @ embeddings[row], texts @ texts[row]
        )

    return similarity
