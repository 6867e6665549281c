"""What a person asks of a ranking beyond relevance, as parts of the score: damping, diversity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from qkvsearch.collaborative.factors import unit_rows
from qkvsearch.retrieval import Head, Ranking
from qkvsearch.retrieval.heads import Part
from qkvsearch.stored import StoredModels

POPULARITY, DIVERSITY = "popularity", "diversity"
# Diverse hits are chosen from so many of the best, the same for every k up to that, and similarity
# is weighed by how far the scores of the first so many reach.
POOL, REACH = 200, 100

# Row in a pool to its similarities (n,) with all of the pool, from −1 to 1.
Similarity = Callable[[int], np.ndarray]


def log_popularity(counts: np.ndarray) -> np.ndarray:
    """ln(1 + how many met it), in standard deviations from the mean item, (n_items,).

    >>> log_popularity(np.array([0, 0, 8, 8])).tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """
    logs = np.log1p(np.asarray(counts, dtype=np.float64))
    return np.asarray((logs - logs.mean()) / (logs.std() or 1.0))


def damped(head: Head, popularity: np.ndarray, damping: float) -> Head:
    """Less for what everyone met: score − damping · σ · popularity, σ the scores' standard
    deviation over all items. The damping is a part of the score, "popularity".
    """
    spread = float(head.scores.std(dtype=np.float64))
    return _plus(head, POPULARITY, -damping * spread * popularity)


def pool_size(k: int, diversity: float) -> int:
    """How many of the best are needed to choose k diverse ones."""
    return max(POOL, k) if diversity and k > 0 else k


def diversified(ranking: Ranking, similarity: Similarity, diversity: float, k: int) -> Ranking:
    """The k of a ranking that are relevant and unlike one another, by maximal marginal relevance.

    One after another, what is best by (1 − X) · score − X · r · its similarity to the most similar
    one chosen before, X the diversity (Carbonell and Goldstein 1998, "The use of MMR", section 2)
    and r how far the scores of the best 100 reach, so that relevance and similarity both count from
    0 to 1. That is the hit's score; by how much it differs from the one before is a part of it,
    "diversity". The first hit stays the first, and weights stay those of the scores before.

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
    head = _plus(ranking.head, DIVERSITY, added)
    hits = [
        replace(
            ranking[i], rank=rank, score=float(head.scores[position]), heads=head.by_name(position)
        )
        for rank, (i, position) in enumerate(zip(chosen, positions, strict=True), start=1)
    ]
    return replace(ranking, hits=hits, positions=positions, head=head)


def _one_by_one(
    relevance: np.ndarray, similarity: Similarity, penalty: float, k: int
) -> tuple[list[int], np.ndarray]:
    """Rows of the pool (best first) in the order in which they are chosen, and their values."""
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
        nearest = np.maximum(nearest, similarity(best))
    return chosen, np.array(values)


def _plus(head: Head, name: str, values: np.ndarray) -> Head:
    """A head with `values` (n_items,) added to its scores, as a part with neither query nor key."""
    extra = Head(
        name,
        np.asarray(values, dtype=np.float32),
        lambda position: [Part(name, None, None, float(values[position]))],
    )
    return Head(
        name=f"{head.name}+{name}",
        scores=np.asarray(head.scores + values, dtype=np.float32),
        parts=lambda position: [*head.parts(position), *extra.parts(position)],
        answers=head.answers,
        addends=[*(head.addends or [head]), extra],
    )


@dataclass(frozen=True)
class ItemSimilarity:
    """Cosines between items of a pool: of their embeddings, or of their text vectors where one of
    the two has no embedding.
    """

    directions: np.ndarray
    texts: np.ndarray

    @classmethod
    def of(
        cls, models: StoredModels, embeddings: np.ndarray, positions: np.ndarray
    ) -> ItemSimilarity:
        """The items at `positions` (n,)."""
        keys = models.dense_keys(models.main_head).vectors
        vectors, texts = (np.asarray(each[positions], np.float64) for each in (embeddings, keys))
        return cls(unit_rows(vectors), unit_rows(texts))

    def __call__(self, row: int) -> np.ndarray:
        """With all of the pool, (n,)."""
        known = np.asarray(self.directions.any(axis=1))
        by_text = self.texts @ self.texts[row]
        return np.where(known & known[row], self.directions @ self.directions[row], by_text)
