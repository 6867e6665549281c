"""All users at once: their histories and embeddings block by block, and similar users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch.answers.candidates import ranked
from qkvsearch.answers.reasons import with_reasons
from qkvsearch.answers.recommend import Recommender
from qkvsearch.collaborative.history import History
from qkvsearch.data.ids import Id, Ids
from qkvsearch.labelled import LabelledVectors, unit_rows
from qkvsearch.progress import Progress
from qkvsearch.retrieval import DenseKeys, Ranking

# Histories and embeddings are held of at most 2,048 users at a time, but for the embeddings of
# `similar_users`, and at most 200,000 rows of a table of what to recommend to them.
BLOCK, ROWS = 2048, 200_000


@dataclass(frozen=True)
class AllUsers:
    """The users of a build in its order, then those recorded since."""

    recommender: Recommender

    @property
    def ids(self) -> Ids:
        return self.recommender.histories.ids

    def __len__(self) -> int:
        return len(self.ids)

    def history(self, row: int, recent: int | None = None) -> History:
        """The history of the user in this row."""
        return self.recommender.histories.at(row, recent)

    def embeddings(self, histories: Sequence[History]) -> np.ndarray:
        """Of users with these histories, (n, d), float64, solved as exactly as a single one's."""
        from scipy.sparse import csr_matrix

        indptr = np.concatenate([[0], np.cumsum([len(history) for history in histories])])
        matrix = csr_matrix(
            (
                np.concatenate([history.confidences for history in histories]),
                np.concatenate([history.positions for history in histories]),
                indptr,
            ),
            shape=(len(histories), self.recommender.models.n_items),
        )
        return self.recommender.factors.fold_in_many(matrix)

    def blocks(self, k: int = 1) -> list[tuple[int, int]]:
        """First and last row + 1 of each, where k rows of a table are made for every user."""
        size = min(BLOCK, max(1, ROWS // max(k, 1)))
        return [(start, min(start + size, len(self))) for start in range(0, len(self), size)]


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
    users, length = AllUsers(recommender), float(np.linalg.norm(vectors.sum(axis=0)))
    embeddings = _unit_embeddings(users, progress)
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
    theirs = [set(users.history(int(row)).positions.tolist()) for row in ranking.positions]
    shared = [sum(item in of_one for item in history.positions.tolist()) for of_one in theirs]
    ranking = ranking.annotated(shared=shared)
    return with_reasons(ranking, history, recommender.tables, theirs) if explain else ranking


def _unit_embeddings(users: AllUsers, progress: Progress | None) -> np.ndarray:
    """Embeddings at length 1 (n_users, d), float32; zeros for who likes nothing."""
    found: list[np.ndarray] = []
    for start, stop in users.blocks():
        histories = [users.history(row) for row in range(start, stop)]
        found.append(unit_rows(users.embeddings(histories)).astype(np.float32))
        if progress is not None:
            progress("comparing users", stop, len(users))
    return np.concatenate(found)
