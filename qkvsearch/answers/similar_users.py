"""Users of the most similar preferences: the embeddings of all, and their cosines."""

from __future__ import annotations

from typing import Any

import numpy as np

from qkvsearch.answers.candidates import ranked
from qkvsearch.answers.reasons import with_reasons
from qkvsearch.answers.recommend import Recommender
from qkvsearch.collaborative.factors import unit_rows
from qkvsearch.data.ids import Id
from qkvsearch.labelled import LabelledVectors
from qkvsearch.progress import Progress
from qkvsearch.retrieval import DenseKeys, Ranking


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
    history = recommender.histories.of(user)
    vectors = recommender.factors.history_vectors(history.positions, history.confidences)
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
        ids, _ = recommender.tables.names(history.positions)
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
