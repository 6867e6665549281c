"""What is like an item, by its users and its texts; and who is like a user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from qkvsearch.answers.arguments import ranked
from qkvsearch.answers.histories import BLOCK, Histories
from qkvsearch.answers.recommend import HistoryReasons, Recommender, with_reasons
from qkvsearch.answers.search import TextSearch
from qkvsearch.data.ids import Id
from qkvsearch.labelled import LabelledVectors
from qkvsearch.progress import Progress
from qkvsearch.retrieval import DenseKeys, Head, Part, Ranking, Reason, fuse_known
from qkvsearch.retrieval.elsewhere import EVERY, Allowed, Unscored, scored
from qkvsearch.retrieval.reasons import (
    constant,
    few,
    is_word,
    short,
    terms,
    total,
    without_constant,
)
from qkvsearch.stored.preferences import PreferencesPart, directions
from qkvsearch.texts.analysis import fold

# By eye, on neighbours of well-known films: no judged set of neighbours was at hand.
# The head goes by what people like besides. Where a smaller share of them like both, that is it.
LEAST_SHARED = 0.25
WEIGHTS = {"collaborative": 0.6, "semantic": 0.4}
# Of the words that two texts have, so many are named.
NAMED = 4


@dataclass(frozen=True)
class Neighbours:
    """The keys of items as a query: by each head, the mean of them at length 1.

    positions: the row numbers of the items, each once.
    """

    texts: TextSearch
    positions: Sequence[int]

    def fused(self, allowed: Allowed = EVERY) -> Head | None:
        """Scores of the items, None where nothing is known of those of the query."""
        for found in scored(self._heads(), allowed):
            named = {name: head and self._named(head) for name, head in found.items()}
            fused = fuse_known(named, WEIGHTS)
            if fused is None or fused.has_best(allowed.k, allowed.mask):
                break
        return fused

    def _heads(self) -> dict[str, Head | Unscored | None]:
        """The heads, with parts whose query is (which of the items, word of it or its title)."""
        found: dict[str, Head | Unscored | None] = {"semantic": self._by_text()}
        if self.texts.models.implicit is not None:
            directions = self._directions(self.positions)
            mean = directions.vectors / len(self.positions)
            if mean.any():  # cold items have none
                keys = self.texts.models.load(PreferencesPart()).unit_rows
                query = LabelledVectors(list(enumerate(directions.labels)), mean)
                of_one = lambda position: self._directions([position])  # noqa: E731
                found["collaborative"] = keys.head("collaborative", query, of_one)
        return found

    def _by_text(self) -> Head | Unscored | None:
        """By the stored keys alone: the encoder is asked for words only where someone asks why."""
        head = self.texts.models.main_head
        keys = self.texts.models.dense_keys(head)
        mean = keys.vectors[list(self.positions)].mean(axis=0, keepdims=True)
        if not mean.any():
            return None
        pieces = cache(partial(self.texts.pieces, head))

        @cache
        def query() -> LabelledVectors:
            found = [pieces(position) for position in self.positions]
            labels = [(i, label) for i, one in enumerate(found) for label in one.labels]
            vectors = np.concatenate([one.vectors for one in found]) / len(found)
            return LabelledVectors(labels, vectors)

        def parts(other: int) -> Sequence[Part]:
            products = DenseKeys(keys.vectors[[other]])
            found = products.head("semantic", query(), lambda _: pieces(other))
            return found.parts(0) if found else []

        whole = keys.head("semantic", LabelledVectors([None], mean))
        return whole and replace(whole, parts=parts)

    def _directions(self, positions: Sequence[int]) -> LabelledVectors:
        """Items' embeddings at length 1, labelled with their titles."""
        _, titles = self.texts.tables.names(positions)
        vectors = self.texts.models.load(PreferencesPart()).unit_rows.vectors[list(positions)]
        return LabelledVectors(titles, np.asarray(vectors))

    def _named(self, head: Head) -> Head:
        """With the word or the title alone as the query of a part; of several items its id too."""
        ids, _ = self.texts.tables.names(self.positions)
        items = ids if len(ids) > 1 else [None]

        def parts(position: int) -> list[Part]:
            return [
                part._replace(query=part.query[1], item=items[part.query[0]])
                for part in head.parts(position)
            ]

        return replace(head, parts=parts)


class NeighbourReasons:
    """A `Reasoning` by the people who like both items, and by the words that both texts have."""

    def __init__(self, texts: TextSearch, histories: Histories, positions: Sequence[int]) -> None:
        ids, titles = texts.tables.names(positions)
        items = ids if len(ids) > 1 else [None]
        self.items = dict(zip(items, zip(positions, titles, strict=True), strict=True))
        self.liking = cache(histories.liking)

    def __call__(self, position: int, parts: Sequence[Part]) -> list[Reason]:
        found = []
        of_heads = without_constant(parts)
        for item, (own, title) in self.items.items():
            people = [one for one in of_heads if (one.head, one.item) == ("collaborative", item)]
            words = [one for one in of_heads if (one.head, one.item) == ("semantic", item)]
            found += [Reason(self._people(own, title, position), total(people))] * bool(people)
            found += _by_words(short(title), words)
        return [*few(found), *constant(parts)]

    def _people(self, own: int, title: str, position: int) -> str:
        theirs = self.liking(own)
        both = len(theirs & self.liking(position))
        if both < LEAST_SHARED * len(theirs):
            return (
                f"people: those who like {short(title)} and this like much the same ({both:,} both)"
            )
        return f"people: {both:,} of the {len(theirs):,} who like {short(title)} also like this"


def _by_words(title: str, parts: Sequence[Part]) -> list[Reason]:
    """What the words add that both texts have, in whatever form, and what all others do."""
    same = [part for part in parts if is_word(part.query) and terms(part.query) & terms(part.key)]
    sums: dict[str, float] = {}
    for part in same:
        word = fold(part.query)
        sums[word] = sums.get(word, 0.0) + part.value
    largest = sorted(sums, key=lambda word: -abs(sums[word]))
    named = ", ".join(largest[:NAMED]) + ("" if len(largest) <= NAMED else ", …")
    found = [Reason(f"same words as {title}: {named}", total(same))] * bool(same)
    rest = total(parts) - total(same)
    return [*found, Reason(f"other words, by meaning, and those of {title}", rest)] if parts else []


def similar_users(
    recommender: Recommender,
    user: Any,
    k: int,
    temperature: float | None,
    explain: bool,
    progress: Progress | None,
) -> Ranking:
    """Users by the cosine of their embeddings with that of `user`, by what is known of them now.

    `shared`: how many items both interacted with. With `explain`, `because`: what each item of the
    user's own history adds to the cosine, Σⱼ cⱼ (A⁻¹yⱼ · v) / (|u||v|), and whether the other
    interacted with it too.
    """
    recommender.models.require_interactions("compare users by")
    history = recommender.histories.of(user)
    liked = history.liked
    vectors = recommender.factors.history_vectors(liked.positions, liked.confidences)
    users, length = recommender.histories, float(np.linalg.norm(vectors.sum(axis=0)))
    embeddings = _user_directions(recommender, progress)
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
    known = dict(zip(ranking.positions.tolist(), theirs, strict=True))
    reasoning = HistoryReasons(history, recommender.tables, known)
    ranking = replace(ranking, reasoning=reasoning)
    return with_reasons(ranking, history, recommender.tables, theirs) if explain else ranking


def _user_directions(recommender: Recommender, progress: Progress | None) -> np.ndarray:
    """Embeddings at length 1 (n_users, d), float32; zeros for who likes nothing. Those of whom
    anything was recorded since the build are solved now.
    """
    users, built = recommender.histories, recommender.models.user_directions(progress)
    changed = users.recorded_rows
    if not len(changed):
        return built
    found = np.zeros((len(users), built.shape[1]), np.float32)
    found[: len(built)] = built
    for start in range(0, len(changed), BLOCK):
        rows = changed[start : start + BLOCK]
        found[rows] = directions(recommender.embeddings([users.at(row) for row in rows.tolist()]))
        if progress is not None:
            progress("comparing users", start + len(rows), len(changed))
    return found
