"""Score all items for a history, by preferences or the next-item model, and give the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.query_lock import pause
from qkvsearch._utils.validation import check_id
from qkvsearch.errors import NotBuiltError, QkvError, suggest
from qkvsearch.heads.dense_keys import DenseKeys
from qkvsearch.heads.learned_models import NextItemComponent, RatingsComponent
from qkvsearch.heads.stored_log import Histories
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.models.preferences import COLLABORATIVE, HEADS, NEIGHBOURS
from qkvsearch.models.strength import best_unseen
from qkvsearch.models.user_history import History
from qkvsearch.models.user_vectors import ImplicitFactors
from qkvsearch.rank.candidates import positions_of
from qkvsearch.rank.given_values import GivenValues
from qkvsearch.rank.options import NEXT_ITEM, PREFERENCES
from qkvsearch.rank.ranking import Ranking
from qkvsearch.rank.reasons import BECAUSE, KINDS, TOGETHER_WITH, KindsOfItems, Reason
from qkvsearch.rank.text_search import POPULAR, popularity
from qkvsearch.scores.approximate import ALL_ITEMS, Filter, score_candidates
from qkvsearch.scores.components import OTHERS, Components, ScoreComponent, Source
from qkvsearch.scores.fusion import Scores, plus, weighted_sum
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.column_types import type_named
from qkvsearch.tables.ids import id_text
from qkvsearch.text.labelled import LabelledVectors

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from qkvsearch.models.next_item_model import NextItemModel
    from qkvsearch.models.preferences import Preferences

# The notes for an unknown user.
MOST_POPULAR = "these are the most popular items."
NO_INTERACTIONS = "and no interactions at all: record some, or build with `interactions`."
# Components of a score that belong to no item.
POPULARITY, CONSTANT = "popularity", "constant"
# A longer text describes an item; it is not the name of a kind.
MAX_KIND_LENGTH = 40
# The head that scores where there are no preferences, and its note.
TEXT = "text"
BY_TEXT = (
    "By text alone: these items read like those of the history. Nobody's interactions were learned "
    "from yet; build with `interactions` to learn what goes together."
)


def read_history(
    histories: Histories,
    user: Any,
    likes: Sequence[Any],
    ratings: Mapping[Any, float],
    without: Sequence[Any],
    recent: int | None,
    strict_user: bool,
) -> tuple[History, list[str], bool]:
    """Return the history that a question is about: that of a user, items liked or rated in the
    question alone, or both, without the items in `without`. Also return notes on an unknown user,
    on ambiguous names and on items of `without` that are not in it; and whether the question names
    an unknown user and nothing else. Raises `QkvError`; with `strict_user` for an unknown user too.
    """
    catalog = histories.catalog
    rated, rating_notes = GivenValues(histories).as_if_recorded(ratings)
    liked, like_notes = positions_of(catalog, likes)
    if both := sorted({*liked} & {interaction.position for interaction in rated}):
        (id_, *_), _ = catalog.names(both)
        raise QkvError(f"{id_text(id_)!r} is among `likes` and `ratings`: leave it out of one")
    excluded, without_notes = positions_of(catalog, without)
    notes = [] if user is None or strict_user else unknown(histories, user)
    is_nobody = bool(notes) and not (liked or rated)
    if is_nobody:
        is_empty = histories.models.implicit is None and not histories.records.count()
        instead = NO_INTERACTIONS if is_empty else MOST_POPULAR
        history, notes = histories.models.history(None), [f"{notes[0]}: {instead}"]
    else:
        history = histories.of(None if notes else user, liked, rated=rated)
        notes = [f"{note}: only what the question names counts." for note in notes]
    unmet = catalog.names([row for row in excluded if row not in history.positions])
    if named := ", ".join(f"{title} ({id_})" for id_, title in zip(*unmet, strict=True)):
        without_notes.append(f"`without`: not in this history, so nothing changes: {named}.")
    history = history.without(excluded)
    history = history if recent is None else history.recent(recent)
    return history, [*notes, *rating_notes, *like_notes, *without_notes], is_nobody


@dataclass(frozen=True)
class Recommender:
    """Scores of all items for a history, by preferences or, where none were learned, by texts."""

    models: StoredModels
    catalog: StoredCatalog

    @property
    def factors(self) -> ImplicitFactors:
        """The item embeddings, and the solve for a user's embedding. Raises `NotBuiltError` where
        no preferences were learned.
        """
        return self.preferences.factors

    @property
    def next_item(self) -> NextItemModel:
        """The next-item model. Raises `NotBuiltError` where the build has none."""
        model = self.models.find(NextItemComponent())
        if model is None:
            raise NotBuiltError(
                "this workspace has no next-item model (`model` next-item): build with `next_item`"
            )
        return model

    @cached_property
    def histories(self) -> Histories:
        return Histories(self.models, self.catalog)

    @property
    def preferences(self) -> Preferences:
        """The heads of a recommendation. Raises `NotBuiltError` where none were learned."""
        self.models.require_interactions("learn preferences from")
        assert self.models.preferences is not None
        return self.models.preferences

    def embeddings(self, histories: Sequence[History]) -> np.ndarray:
        """Solve for the embeddings of users with these histories, float64 (n, d)."""
        return self.factors.fold_in_many(self.matrix(histories))

    def matrix(self, histories: Sequence[History]) -> csr_matrix:
        """Return the confidences of histories, (n, n_items)."""
        from scipy.sparse import csr_matrix

        indptr = np.concatenate([[0], np.cumsum([len(history) for history in histories])])
        confidences = np.concatenate([history.confidences for history in histories])
        positions = np.concatenate([history.positions for history in histories])
        shape = (len(histories), self.models.n_items)
        return csr_matrix((confidences, positions, indptr), shape)

    def head(
        self,
        history: History,
        model: str = PREFERENCES,
        damping: float = 0.0,
        allowed: Filter = ALL_ITEMS,
        names: Sequence[str] | None = None,
    ) -> Scores | None:
        """Return damped scores of all items; None where the model has no item of the history.
        names: of the heads of preferences, by default all.
        """
        factors = None if names is None else self.multipliers(names, model)
        if model == POPULAR:
            head = self._by_popularity()
        elif model == NEXT_ITEM:
            head = self._by_sequence(history)
        elif self.models.implicit is None:
            head = self._by_text(history, allowed)
        else:
            head = self._by_preferences(history, factors or self.preferences.multipliers())
        if head is None or not damping:
            return head
        self.models.require_interactions("tell what is popular")
        return damped(head, log_popularity(self.models.item_counts), damping)

    def _by_popularity(self) -> Scores | None:
        """Score by the number of users of an item: in the log, or without one in the records."""
        has_log = self.models.implicit is not None
        counts = self.models.item_counts if has_log else self.histories.user_counts
        return replace(popularity(counts), covered=counts > 0) if counts.any() else None

    def multipliers(self, names: Sequence[str], model: str) -> dict[str, float]:
        """Return what the scores of these heads are multiplied by. Raises `QkvError`."""
        if model == NEXT_ITEM or self.models.implicit is None:
            raise QkvError("`heads` are of preferences, which do not score here: leave it out")
        factors = self.preferences.multipliers()
        for name in names or [""]:
            if name not in factors:
                hint = f"{suggest(name, [*factors])} (there are {' and '.join(factors)})"
                raise QkvError(f"`heads`: no {name!r}{hint}")
        return {name: factors[name] if len({*names}) > 1 else 1.0 for name in names}

    def _by_preferences(self, history: History, factors: Mapping[str, float]) -> Scores | None:
        """Score by the sum of the heads, each multiplied by its factor."""
        heads = {COLLABORATIVE: self._by_embedding, NEIGHBOURS: self._by_neighbours}
        scored = {name: heads[name](history) for name, factor in factors.items() if factor}
        known = {name: head for name, head in scored.items() if head is not None}
        if not known:
            return None
        return weighted_sum(list(known.values()), [factors[name] for name in known])

    def _by_neighbours(self, history: History) -> Scores | None:
        """Score by how much each item of the history speaks for an item: removing it from the
        history changes the score by exactly that.
        """
        liked = history.liked
        ids, _ = self.catalog.names(liked.positions)
        return neighbour_scores(self.preferences, liked.positions, liked.confidences, ids)

    def _by_embedding(self, history: History) -> Scores | None:
        """Score by the embedding that an exact solve on the history gives."""
        embedding = self.embedding(history)
        if not embedding.vectors.any():  # nothing liked, or cold items alone
            return None
        return DenseKeys(self.factors.item_embeddings).head(COLLABORATIVE, embedding)

    def embedding(self, history: History) -> LabelledVectors:
        """Return the user's embedding, as the sum of a vector for each item that they like."""
        liked = history.liked
        ids, _ = self.catalog.names(liked.positions)
        vectors = self.factors.history_vectors(liked.positions, liked.confidences)
        return LabelledVectors(ids, vectors)

    def _by_text(self, history: History, allowed: Filter) -> Scores | None:
        """Score by the mean similarity to the texts of the history, weighted by confidence."""
        main = self.models.main_head
        mean = self.mean_text(history, main)
        if not mean.vectors.any():
            return None
        head = score_candidates(self.models.dense_keys(main).head(TEXT, mean), allowed)
        return head and replace(head, notes=[BY_TEXT])

    def mean_text(self, history: History, head: str) -> LabelledVectors:
        """Return the mean of the items' keys in a dense head, weighted by confidence."""
        keys = self.models.dense_keys(head)
        shares = history.confidences / max(float(history.confidences.sum()), 1e-9)
        ids, _ = self.catalog.names(history.positions)
        return LabelledVectors(ids, keys.vectors[history.positions] * shares[:, None])

    def _by_sequence(self, history: History) -> Scores | None:
        """Score by the last state of a history that attends to itself, oldest first. A score's
        components are what each item adds with attention weights, norms and gates fixed, and a
        constant.
        """
        model, rows = self.next_item, in_order(history)
        if not model.known[rows].any():
            return None
        ids, _ = self.catalog.names(rows)

        sources = [*(Source(NEXT_ITEM, id_) for id_ in ids), Source(CONSTANT, None)]

        @cache
        def shares() -> np.ndarray:
            return model.history_vectors(rows)

        def parts(position: int) -> Components:
            return Components.pairs(
                sources, [None], shares() @ model.items.weight[position][:, None]
            )

        scores = model.items.weight @ model.fold_in(rows)
        return Scores(NEXT_ITEM, scores, parts, covered=model.known)


def neighbour_scores(
    preferences: Preferences, rows: np.ndarray, confidences: np.ndarray, labels: Sequence[Any]
) -> Scores | None:
    """Score by how much the items in these rows speak for an item; None where they speak for none.
    confidences, labels: one for each of them.
    """
    neighbours = preferences.neighbours
    # Of cold items, and of none.
    if neighbours is None or (neighbours.starts[rows] == neighbours.starts[rows + 1]).all():
        return None
    sources = [Source(NEIGHBOURS, label) for label in labels]

    def parts(position: int) -> Components:
        addends = neighbours.addends(rows, position, confidences)
        return Components.pairs(sources, [None], addends[:, None])

    return Scores(NEIGHBOURS, neighbours.scores(rows, confidences), parts)


def unknown(histories: Histories, user: Any) -> list[str]:
    """Return the beginning of a note that a user is unknown; nothing about a known one."""
    is_known = histories.knows(check_id("user", user))
    return [] if is_known else [f"No user {id_text(user)!r} here"]


def in_order(history: History) -> np.ndarray:
    """Return the liked items, oldest first; those of the same time in the catalog's order."""
    liked = history.liked
    return np.asarray(liked.positions[np.argsort(liked.times, kind="stable")])


def log_popularity(counts: np.ndarray) -> np.ndarray:
    """Return ln(1 + number of users) of each item, standardized over all items, (n_items,).

    >>> log_popularity(np.array([0, 0, 8, 8])).tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """
    logs = np.log1p(np.asarray(counts, dtype=np.float64))
    return np.asarray((logs - logs.mean()) / (logs.std() or 1.0))


def damped(head: Scores, popularity: np.ndarray, damping: float) -> Scores:
    """Return score − damping · σ · popularity, where σ is the standard deviation of the scores over
    all items. The subtracted term is the score's component "popularity".
    """
    return plus(head, POPULARITY, -damping * head.moments[1] * popularity)


def holds_by_removal(history: History, parts: Components) -> bool:
    """Return whether the score without an item of the history is lower by what the item adds. It is
    by neighbours alone; with other parts a removal also changes what the other items add.
    """
    return not history.is_recent and {source.head for source in parts.sources} == {NEIGHBOURS}


def with_reasons(
    ranking: Ranking,
    history: History,
    catalog: StoredCatalog,
    because: int | None = None,
) -> Ranking:
    """Return the ranking with `because` in each hit: what each item of the history adds to the
    score, and whether it is lower by that without the item (`by_removal`); and, without an id, what
    damping, diversity and a constant add.

    because: how many items of the history are listed, those that add most, with the others as one
    entry; all for None.
    """
    ids, titles = catalog.names(history.positions)
    title_of = dict(zip(ids, titles, strict=True))

    def reasons(index: int) -> list[dict[str, Any]]:
        pause()
        all_parts = ranking.parts(index)
        parts, by_removal = all_parts.by_query(), holds_by_removal(history, all_parts)

        def reason(part: ScoreComponent) -> dict[str, Any]:
            title = title_of.get(part.query, part.head)
            entry = {"id": part.query, "title": title, "contribution": part.value}
            return entry | ({} if part.query is None else {"by_removal": by_removal})

        if because is None:
            return [reason(part) for part in parts.ordered()]
        is_item = np.array([source.query is not None for source in parts.sources], dtype=bool)
        largest, n_others, value = parts.only(is_item).largest(because)
        listed = sorted([*largest, *parts.only(~is_item)], key=lambda part: -abs(part.value))
        entries = [reason(part) for part in listed]
        others = {"id": None, "title": OTHERS, "contribution": value, "items": n_others}
        return [*entries, others] if n_others else entries

    return ranking.annotated(because=[*map(reasons, range(len(ranking)))])


class HistoryReasons:
    """A `Reasoning` by groups of the history's items that share a kind, such as a genre, if
    possible with the recommended item too.
    """

    def __init__(self, history: History, catalog: StoredCatalog) -> None:
        self.history, self.catalog, self.positions = history, catalog, history.positions

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        """The index of each item in the history, by id."""
        ids, _ = self.catalog.names(self.positions)
        return {id_: number for number, id_ in enumerate(ids)}

    @cached_property
    def _kinds(self) -> KindsOfItems:
        _, titles = self.catalog.names(self.positions)
        return KindsOfItems(titles, item_kinds(self.catalog, self.positions))

    def __call__(self, position: int, parts: Components) -> list[Reason]:
        numbers = [self._numbers.get(source.query, -1) for source in parts.sources]
        number_of = np.array(numbers, dtype=np.int64)
        is_item = number_of >= 0
        values = np.bincount(number_of[is_item], parts.sums[is_item], len(self.positions))
        which = np.zeros(len(self.positions), dtype=bool)
        which[number_of[is_item]] = True
        whole = [
            Reason(KINDS[parts.sources[row].head], float(parts.sums[row]))
            for row in np.flatnonzero(~is_item).tolist()
        ]
        (kinds,) = item_kinds(self.catalog, [position])
        link = BECAUSE if holds_by_removal(self.history, parts) else TOGETHER_WITH
        return [*self._kinds.reasons(values, which, kinds, link), *whole]


def item_kinds(catalog: StoredCatalog, positions: Sequence[int] | np.ndarray) -> list[list[str]]:
    """Return the kinds of each item: entries of its lists and its short texts, except id and title,
    such as its genres and its channel.
    """
    columns = [
        column
        for column in catalog.catalog_columns
        if type_named(column.type).is_text and column.stored not in ("id", "title")
    ]
    rows = catalog.cells(positions, [column.stored for column in columns])
    kinds_of_items = []
    for row in rows:
        kinds = []
        for column, cell in zip(columns, row, strict=True):
            if cell is None:
                continue
            entries = type_named(column.type).entries(cell)
            kinds += [entry for entry in entries if 0 < len(entry) <= MAX_KIND_LENGTH]
        kinds_of_items.append(list(dict.fromkeys(kinds)))
    return kinds_of_items


def with_strength(ranking: Ranking, history: History, models: StoredModels) -> Ranking:
    """Mark the hits as `weak`, and note the reason in numbers, where preferences rank by too short
    a history. `where`, damping and diversity never make a hit weak.
    """
    head, strength = ranking.head, models.strength
    plain = [] if head is None else [each for each in head.addends or [head] if each.name in HEADS]
    if not ranking or strength is None or not plain:
        return ranking
    scores = np.sum([each.scores for each in plain], axis=0)
    why = strength.why_weak(history, best_unseen(scores, history))
    return ranking.annotated(weak=[True] * len(ranking)).noted([why]) if why else ranking


def with_facts(ranking: Ranking, history: History, models: StoredModels) -> Ranking:
    """Mark the hits that nobody interacted with before the build as `cold`, and predict ratings
    where the history has any.
    """
    if models.implicit is None:
        return ranking
    is_cold = models.item_counts[ranking.positions] == 0
    if is_cold.any():
        ranking = ranking.annotated(cold=[True if cold else None for cold in is_cold])
    rated = np.isfinite(history.ratings)
    model = models.find(RatingsComponent())
    if model is None or not rated.any():
        return ranking
    bias, embedding = model.fold_in(history.positions[rated], history.ratings[rated])
    predicted = model.predict(embedding, bias, ranking.positions)
    return ranking.annotated(predicted_rating=predicted.tolist())
