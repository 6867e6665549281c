"""All users at once: their histories and embeddings block by block, and who has whose taste."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from qkvsearch.answers.recommend import Recommender
from qkvsearch.data.ids import Id, Ids, id_text
from qkvsearch.embeddings.history import History, Meeting
from qkvsearch.embeddings.labelled import LabelledVectors
from qkvsearch.errors import QkvError
from qkvsearch.progress import Progress
from qkvsearch.retrieval import DenseKeys, Ranking, rank

# Histories and embeddings of so many users are held at once, but for the embeddings of `similar`.
BLOCK = 2048


@dataclass(frozen=True)
class Everyone:
    """The users of a build in its order, then those recorded since."""

    people: Recommender

    @cached_property
    def _built(self) -> Ids:
        return self.people.tables.ids("users")

    @cached_property
    def _recorded(self) -> dict[str, list[Meeting]]:
        return self.people.tables.recorded_by_user()

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

    def block(
        self, start: int, stop: int, recent: int | None = None
    ) -> tuple[list[History], np.ndarray]:
        """Histories of the users in these rows, and their embeddings (stop − start, d), float64,
        solved as exactly as a single one's.
        """
        from scipy.sparse import csr_matrix

        histories = [self.history(row, recent) for row in range(start, stop)]
        indptr = np.concatenate([[0], np.cumsum([len(history) for history in histories])])
        matrix = csr_matrix(
            (
                np.concatenate([history.confidences for history in histories]),
                np.concatenate([history.positions for history in histories]),
                indptr,
            ),
            shape=(len(histories), self.people.models.n_items),
        )
        return histories, self.people.factors.fold_in_many(matrix)

    def blocks(self) -> list[tuple[int, int]]:
        """First and last row + 1 of each."""
        return [(start, min(start + BLOCK, len(self))) for start in range(0, len(self), BLOCK)]


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
    everyone, length = Everyone(people), float(np.linalg.norm(vectors.sum(axis=0)))
    directions = _directions(everyone, progress)
    others = np.asarray(directions.any(axis=1))
    others[everyone.ids.positions([id_text(user)], "user")] = False

    def names(positions: np.ndarray) -> tuple[list[Id], list[str]]:
        ids = [everyone.ids[int(position)] for position in positions]
        return ids, [str(id_) for id_ in ids]

    ids, titles = people.tables.names(history.positions)
    head = None
    if length:
        head = DenseKeys(directions).head("taste", LabelledVectors(ids, vectors / length))
    ranking = rank(head, names, k=k, temperature=temperature, mask=others)
    met = [set(everyone.history(int(row)).positions.tolist()) for row in ranking.positions]
    shared = [sum(item in theirs for item in history.positions.tolist()) for theirs in met]
    ranking = ranking.annotated(shared=shared)
    if not explain:
        return ranking
    of = {
        id_: (title, int(p)) for id_, title, p in zip(ids, titles, history.positions, strict=True)
    }
    return ranking.annotated(
        because=[
            [
                {
                    "id": part.query,
                    "title": of[part.query][0],
                    "contribution": part.value,
                    "shared": of[part.query][1] in theirs,
                }
                for part in ranking.explain(i)
            ]
            for i, theirs in enumerate(met)
        ]
    )


def _directions(everyone: Everyone, progress: Progress | None) -> np.ndarray:
    """Embeddings at length 1 (n_users, d), float32; zeros for who likes nothing."""
    found: list[np.ndarray] = []
    for start, stop in everyone.blocks():
        embeddings = everyone.block(start, stop)[1]
        lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
        found.append((embeddings / np.where(lengths > 0, lengths, 1)).astype(np.float32))
        if progress is not None:
            progress("comparing users", stop, len(everyone))
    return np.concatenate(found)


def positions_of(ids: Ids, wanted: Sequence[Any], what: str) -> np.ndarray:
    """Row numbers of those that are among `ids`; the others are passed over. Raises `QkvError`
    where that is all of them.
    """
    known = [id_ for id_ in wanted if id_ in ids]
    if not known:
        example = f", such as {id_text(wanted[0])!r}" if wanted else ""
        raise QkvError(f"{what}: none of its {len(wanted):,} ids{example} is in the catalogue")
    return ids.positions(known)
