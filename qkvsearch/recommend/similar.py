"""What is like an item, by its users and its texts; and who is like a user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from qkvsearch._utils.progress import Progress
from qkvsearch.data.ids import Id
from qkvsearch.errors import listed_names
from qkvsearch.index.interaction_log import BLOCK, Histories
from qkvsearch.index.learned_models import PreferencesComponent, directions
from qkvsearch.recommend.recommend import HistoryReasons, Recommender, with_reasons
from qkvsearch.retrieval import Components, DenseKeys, Ranking, Reason, Scores, fuse_known
from qkvsearch.retrieval.keys import product_parts
from qkvsearch.retrieval.reasons import are_constant, constant, few, is_word, short, terms
from qkvsearch.retrieval.remote_keys import EVERY, Allowed, Unscored, scored
from qkvsearch.retrieval.score_components import PartsOf, Source
from qkvsearch.search.candidates import ranked
from qkvsearch.search.text_search import TextSearch
from qkvsearch.text.analysis import fold
from qkvsearch.text.labelled import LabelledVectors

# By eye, on neighbours of well-known films: no judged set of neighbours was at hand.
# The head goes by what people like besides. Where a smaller share of them like both, that is it.
LEAST_SHARED = 0.25
WEIGHTS = {"collaborative": 0.6, "semantic": 0.4}
# Of the words that two texts have, so many are named.
NAMED = 4
# The texts of so many items are explained word by word. Of more items each is one part.
MAX_BY_WORD = 5


@dataclass(frozen=True)
class Neighbours:
    """The keys of items as a query: by each head, the mean of them at length 1.

    positions: the row numbers of the items, each once.
    """

    texts: TextSearch
    positions: Sequence[int]

    def fused(self, allowed: Allowed = EVERY) -> Scores | None:
        """Scores of the items, None where nothing is known of those of the query."""
        for found in scored(self._heads(), allowed):
            named = {name: head and self._named(head) for name, head in found.items()}
            fused = fuse_known(named, WEIGHTS)
            if fused is None or fused.has_best(allowed.k, allowed.mask):
                break
        return fused

    def _heads(self) -> dict[str, Scores | Unscored | None]:
        """The heads, with parts whose query is (which of the items, word of it or its title)."""
        found: dict[str, Scores | Unscored | None] = {"semantic": self._by_text()}
        if self.texts.models.implicit is not None:
            directions = self._directions(self.positions)
            mean = directions.vectors / len(self.positions)
            if mean.any():  # cold items have none
                keys = self.texts.models.load(PreferencesComponent()).unit_rows
                query = LabelledVectors(list(enumerate(directions.labels)), mean)
                of_one = lambda position: self._directions([position])  # noqa: E731
                found["collaborative"] = keys.head("collaborative", query, of_one)
        return found

    def _by_text(self) -> Scores | Unscored | None:
        """By the stored keys alone: the encoder is asked for words only where someone asks why."""
        head = self.texts.models.main_head
        keys = self.texts.models.dense_keys(head)
        mean = keys.vectors[list(self.positions)].mean(axis=0, keepdims=True)
        if not mean.any():
            return None

        @cache
        def components_of() -> PartsOf:
            if len(self.positions) <= MAX_BY_WORD:
                return product_parts("semantic", self._words(), partial(self.texts.pieces, head))
            of_items = keys.vectors[list(self.positions)] / len(self.positions)
            _, titles = self.texts.catalog.names(self.positions)
            query = LabelledVectors(list(enumerate(titles)), of_items)
            of_one = lambda other: LabelledVectors([None], keys.vectors[[other]])  # noqa: E731
            return product_parts("semantic", query, of_one)

        whole = keys.head("semantic", LabelledVectors([None], mean))
        return whole and replace(whole, parts=lambda other: components_of()(other))

    def _words(self) -> LabelledVectors:
        """The words of all the items, labelled (which of the items, word)."""
        head = self.texts.models.main_head
        found = [self.texts.pieces(head, position) for position in self.positions]
        labels = [(i, label) for i, one in enumerate(found) for label in one.labels]
        return LabelledVectors(labels, np.concatenate([one.vectors for one in found]) / len(found))

    def _directions(self, positions: Sequence[int]) -> LabelledVectors:
        """Items' embeddings at length 1, labelled with their titles."""
        _, titles = self.texts.catalog.names(positions)
        vectors = self.texts.models.load(PreferencesComponent()).unit_rows.vectors[list(positions)]
        return LabelledVectors(titles, np.asarray(vectors))

    def _named(self, head: Scores) -> Scores:
        """With the word or the title alone as the query of a part; of several items its id too."""
        ids, _ = self.texts.catalog.names(self.positions)
        items = ids if len(ids) > 1 else [None]

        def named(source: Source) -> Source:
            i, label = source.query
            return Source(source.head, label, items[i])

        return replace(head, parts=lambda position: head.parts(position).renamed(named))


# What a line of reasons adds, and its text, which is made where it is shown.
Line = tuple[float, Callable[[], str]]


class NeighbourReasons:
    """A `Reasoning` by the people who like both items, and by the words that both texts have."""

    def __init__(self, texts: TextSearch, histories: Histories, positions: Sequence[int]) -> None:
        ids, titles = texts.catalog.names(positions)
        items = ids if len(ids) > 1 else [None]
        self.items = dict(zip(items, zip(positions, titles, strict=True), strict=True))
        self.liking = cache(histories.liking)

    def __call__(self, position: int, parts: Components) -> list[Reason]:
        wholes: list[int] = []  # the sources that are whole items
        words: dict[Any, list[int]] = {}  # and, by item, those that are its words
        for row, (source, key, is_constant) in enumerate(
            zip(parts.sources, parts.first_keys, are_constant(parts), strict=True)
        ):
            if is_constant:
                continue
            if key is None or source.head == "collaborative":
                wholes.append(row)
            else:
                words.setdefault(source.item, []).append(row)
        lines = [
            line for item in words for line in _by_words(self.items[item][1], parts, words[item])
        ]

        def text(i: int) -> str:
            if i >= len(wholes):
                return lines[i - len(wholes)][1]()
            return self._of_item(parts.sources[wholes[i]], position)

        values = [*parts.sums[wholes].tolist(), *(value for value, _ in lines)]
        return [*few(values, text), *constant(parts)]

    def _of_item(self, source: Source, position: int) -> str:
        own, title = self.items[source.item]
        if source.head == "collaborative":
            return self._people(own, title, position)
        return f"similar meaning to {short(title)}"

    def _people(self, own: int, title: str, position: int) -> str:
        theirs = self.liking(own)
        both = len(theirs & self.liking(position))
        if both < LEAST_SHARED * len(theirs):
            return (
                f"people: those who like {short(title)} and this like much the same ({both:,} both)"
            )
        return f"people: {both:,} of the {len(theirs):,} who like {short(title)} also like this"


def _by_words(title: str, parts: Components, rows: Sequence[int]) -> list[Line]:
    """What the words add that both texts have, in whatever form, and what all others do. rows: the
    sources that are the words of one text.
    """
    keys, values = parts.table(rows)
    columns_with: dict[str, list[int]] = {}
    for column, key in enumerate(keys):
        for term in terms(key):
            columns_with.setdefault(term, []).append(column)
    sums: dict[str, float] = {}
    for row, of_word in zip(rows, values, strict=True):
        query = parts.sources[row].query
        columns = {column for term in terms(query) for column in columns_with.get(term, ())}
        if columns and is_word(query):
            word = fold(query)
            sums[word] = sums.get(word, 0.0) + float(of_word[list(columns)].sum())
    largest = sorted(sums, key=lambda word: -abs(sums[word]))
    named = listed_names(largest, NAMED)
    same, total = sum(sums.values()), float(values.sum())
    found: list[Line] = [
        (total - same, lambda: f"other words, by meaning, and those of {short(title)}")
    ]
    if sums:
        found.append((same, lambda: f"same words as {short(title)}: {named}"))
    return found


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
        ids, _ = recommender.catalog.names(liked.positions)
        head = DenseKeys(embeddings).head("taste", LabelledVectors(ids, vectors / length))
    ranking = ranked(head, names, k, temperature, others)
    theirs = [set(users.at(int(row)).positions.tolist()) for row in ranking.positions]
    shared = [sum(item in of_one for item in history.positions.tolist()) for of_one in theirs]
    ranking = ranking.annotated(shared=shared)
    known = dict(zip(ranking.positions.tolist(), theirs, strict=True))
    reasoning = HistoryReasons(history, recommender.catalog, known)
    ranking = replace(ranking, reasoning=reasoning)
    if not explain:
        return ranking
    return with_reasons(ranking, history, recommender.catalog, shared_with=theirs)


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
