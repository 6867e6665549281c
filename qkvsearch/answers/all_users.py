"""All users at once: their histories and embeddings block by block, and who has whose taste."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from qkvsearch.answers.recommend import Recommender
from qkvsearch.collaborative.factors import unit_rows
from qkvsearch.collaborative.history import History, Interaction
from qkvsearch.data.ids import Id, Ids
from qkvsearch.labelled import LabelledVectors
from qkvsearch.progress import Progress
from qkvsearch.retrieval import DenseKeys, Ranking, rank

# Histories and embeddings of so many users are held at once, but for the embeddings of `similar`,
# and so many rows of a table of what to recommend to them.
BLOCK, ROWS = 2048, 200_000


@dataclass(frozen=True)
class AllUsers:
    """The users of a build in its order, then those recorded since."""

    people: Recommender

    @cached_property
    def _built(self) -> Ids:
        return self.people.tables.ids("users")

    @cached_property
    def _recorded(self) -> dict[str, list[Interaction]]:
        return self.people.tables.records.by_user()

    @cached_property
    def ids(self) -> Ids:
        """Numbers where all of them are whole numbers, else text."""
        newcomers = [user for user in self._recorded if user not in self._built]
        return Ids([*self._built.texts, *newcomers]) if newcomers else self._built

    def __len__(self) -> int:
        return len(self.ids)

    def history(self, row: int, recent: int | None = None) -> History:
        """Everything that the user in this row met."""
        built = row if row < len(self._built) else None
        history = self.people.met(built, self._recorded.get(self.ids.texts[row], []))
        return history if recent is None else history.recent(recent)

    def embeddings(self, histories: Sequence[History]) -> np.ndarray:
        """Of people with these histories, (n, d), float64, solved as exactly as a single one's."""
        from scipy.sparse import csr_matrix

        indptr = np.concatenate([[0], np.cumsum([len(history) for history in histories])])
        matrix = csr_matrix(
            (
                np.concatenate([history.confidences for history in histories]),
                np.concatenate([history.positions for history in histories]),
                indptr,
            ),
            shape=(len(histories), self.people.models.n_items),
        )
        return self.people.factors.fold_in_many(matrix)

    def blocks(self, k: int = 1) -> list[tuple[int, int]]:
        """First and last row + 1 of each, where k rows of a table are made for every user."""
        size = min(BLOCK, max(1, ROWS // max(k, 1)))
        return [(start, min(start + size, len(self))) for start in range(0, len(self), size)]


def similar_users(
    people: Recommender,
    user: Any,
    k: int,
    temperature: float | None,
    explain: bool,
    progress: Progress | None,
) -> Ranking:
    """Users by the cosine of their embeddings with that of `user`, all solved now.

    `shared`: how many items both met. With `explain`, `because`: what each item of the user's own
    history adds to the cosine, Σⱼ cⱼ (A⁻¹yⱼ · v) / (|u||v|), and whether the other met it too.
    """
    history = people.history(user)
    vectors = people.factors.history_vectors(history.positions, history.confidences)
    everyone, length = AllUsers(people), float(np.linalg.norm(vectors.sum(axis=0)))
    tastes = _tastes(everyone, progress)
    others = np.asarray(tastes.any(axis=1))
    if user in everyone.ids:
        others[everyone.ids.positions([user])] = False

    def names(positions: np.ndarray) -> tuple[list[Id], list[str]]:
        ids = [everyone.ids[int(position)] for position in positions]
        return ids, [str(id_) for id_ in ids]

    head = None
    if length:
        ids, _ = people.tables.names(history.positions)
        head = DenseKeys(tastes).head("taste", LabelledVectors(ids, vectors / length))
    ranking = rank(head, names, k=k, temperature=temperature, mask=others)
    met = [set(everyone.history(int(row)).positions.tolist()) for row in ranking.positions]
    shared = [sum(item in theirs for item in history.positions.tolist()) for theirs in met]
    ranking = ranking.annotated(shared=shared)
    return people.with_reasons(ranking, history, met) if explain else ranking


def _tastes(everyone: AllUsers, progress: Progress | None) -> np.ndarray:
    """Embeddings at length 1 (n_users, d), float32; zeros for who likes nothing."""
    found: list[np.ndarray] = []
    for start, stop in everyone.blocks():
        histories = [everyone.history(row) for row in range(start, stop)]
        found.append(unit_rows(everyone.embeddings(histories)).astype(np.float32))
        if progress is not None:
            progress("comparing users", stop, len(everyone))
    return np.concatenate(found)
