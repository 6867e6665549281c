"""What is like an item, by its users and its texts; and who is like a user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from qkvsearch.answers.arguments import ranked
from qkvsearch.answers.recommend import Recommender, with_reasons
from qkvsearch.answers.search import TextSearch
from qkvsearch.data.ids import Id
from qkvsearch.labelled import LabelledVectors, unit_rows
from qkvsearch.progress import Progress
from qkvsearch.retrieval import DenseKeys, Head, Part, Ranking, fuse_known
from qkvsearch.stored import PreferencesPart

# By eye, on neighbours of well-known films: no judged set of neighbours was at hand.
WEIGHTS = {"collaborative": 0.6, "semantic": 0.4}


@dataclass(frozen=True)
class Neighbours:
    """An item's key as a query."""

    texts: TextSearch

    def fused(self, position: int) -> Head | None:
        """Scores of all items for the one in this row, None where nothing is known of it."""
        models = self.texts.models
        scored = {"semantic": self._by_text(position)}
        if models.implicit is not None:
            direction = self.direction(position)
            if direction.vectors.any():  # a cold item has none
                keys = models.load(PreferencesPart()).unit_rows
                scored["collaborative"] = keys.head("collaborative", direction, self.direction)
        return fuse_known(scored, WEIGHTS)

    def _by_text(self, position: int) -> Head | None:
        """By the stored keys alone: the encoder is asked for words only where someone asks why."""
        head = self.texts.models.main_head
        keys = self.texts.models.dense_keys(head)
        key = keys.vectors[[position]]
        if not key.any():
            return None
        pieces = cache(partial(self.texts.pieces, head))

        def parts(other: int) -> Sequence[Part]:
            products = DenseKeys(keys.vectors[[other]])
            found = products.head("semantic", pieces(position), lambda _: pieces(other))
            return found.parts(0) if found else []

        whole = keys.head("semantic", LabelledVectors([None], key))
        return whole and replace(whole, parts=parts)

    def direction(self, position: int) -> LabelledVectors:
        """An item's embedding at length 1, labelled with its title."""
        _, titles = self.texts.tables.names([position])
        vectors = self.texts.models.load(PreferencesPart()).unit_rows.vectors[[position]]
        return LabelledVectors(titles, np.asarray(vectors))


def similar_users(
    recommender: Recommender,
    user: Any,
    k: int,
    temperature: float | None,
    explain: bool,
    progress: Progress | None,
) -> Ranking:
    """Users by the cosine of their embeddings with that of `user`, all solved now.

    `shared`: how many items both interacted with. With `explain`, `because`: what each item of the
    user's own history adds to the cosine, Σⱼ cⱼ (A⁻¹yⱼ · v) / (|u||v|), and whether the other
    interacted with it too.
    """
    recommender.models.require_interactions("compare users by")
    history = recommender.histories.of(user)
    liked = history.liked
    vectors = recommender.factors.history_vectors(liked.positions, liked.confidences)
    users, length = recommender.histories, float(np.linalg.norm(vectors.sum(axis=0)))
    embeddings = _unit_embeddings(recommender, progress)
    others = np.asarray(embeddings.any(axis=1))
    if user in users.ids:
        others[users.ids.positions([user])] = False

    def names(positions: np.ndarray) -> tuple[list[Id], list[str]]:
        ids = [users.ids[int(position)] for position in positions]
        return ids, [str(id_) for id_ in ids]

    head = None
    if length:
        ids, _ = recommender.tables.names(liked.positions)
        head = DenseKeys(embeddings).head("taste", LabelledVectors(ids, vectors / length))
    ranking = ranked(head, names, k, temperature, others)
    theirs = [set(users.at(int(row)).positions.tolist()) for row in ranking.positions]
    shared = [sum(item in of_one for item in history.positions.tolist()) for of_one in theirs]
    ranking = ranking.annotated(shared=shared)
    return with_reasons(ranking, history, recommender.tables, theirs) if explain else ranking


def _unit_embeddings(recommender: Recommender, progress: Progress | None) -> np.ndarray:
    """Embeddings at length 1 (n_users, d), float32; zeros for who likes nothing."""
    users, found = recommender.histories, []
    for start, stop in users.blocks():
        histories = [users.at(row) for row in range(start, stop)]
        found.append(unit_rows(recommender.embeddings(histories)).astype(np.float32))
        if progress is not None:
            progress("comparing users", stop, len(users))
    return np.concatenate(found)
