"""A history to scores of all items, by the preferences or by what comes next, and the reasons."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.query_lock import pause
from qkvsearch.collaborative.factors import ImplicitFactors
from qkvsearch.collaborative.strength import best_unseen
from qkvsearch.collaborative.user_history import History
from qkvsearch.data.columns.facts import LIST_SEPARATOR
from qkvsearch.data.ids import id_text
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.index import StoredModels
from qkvsearch.index.interaction_log import Histories
from qkvsearch.index.learned_models import NextItemComponent, RatingsComponent
from qkvsearch.retrieval import (
    Components,
    DenseKeys,
    Ranking,
    Reason,
    ScoreComponent,
    Scores,
)
from qkvsearch.retrieval.fusion import plus
from qkvsearch.retrieval.reasons import KINDS, KindsOfItems, group
from qkvsearch.retrieval.remote_keys import EVERY, Allowed, scored
from qkvsearch.retrieval.score_components import OTHERS, Source
from qkvsearch.search.candidates import positions_of
from qkvsearch.search.options import NEXT_ITEM, PREFERENCES
from qkvsearch.storage import StoredCatalog, Workspace
from qkvsearch.text.labelled import LabelledVectors

if TYPE_CHECKING:
    from qkvsearch.collaborative.sequences.network import NextItemModel

HEAD = "collaborative"
# Parts of a score that are of no item.
POPULARITY, CONSTANT = "popularity", "constant"
# A text of more characters says what an item is about, not of which kind it is.
LONGEST_KIND = 40
# What scores where there are no preferences, and what is said of it.
TEXT = "text"
BY_TEXT = (
    "By text alone: these items read like those of the history. Nobody's interactions were learned "
    "from yet; build with `interactions` to learn what goes together."
)


@dataclass(frozen=True)
class GivenHistory:
    """Whom a question is about: a known user, what is liked or rated in it alone, or all of these;
    and what of it is left out, as if it had never happened.
    """

    user: Any
    likes: Sequence[Any]
    ratings: Mapping[Any, float]
    without: Sequence[Any]

    def read(
        self, workspace: Workspace, histories: Histories, recent: int | None
    ) -> tuple[History, list[str]]:
        """The history, and notes on names that can be read in two ways, and on what is left out and
        was never in it. Raises `QkvError`.
        """
        from qkvsearch.recommend.recording import Recording

        catalog = histories.catalog
        rated, told = Recording(workspace, histories).as_if_recorded(self.ratings)
        liked, notes = positions_of(catalog, self.likes)
        self._check_once(liked, [one.position for one in rated], catalog)
        left_out, more = positions_of(catalog, self.without)
        history = histories.of(self.user, liked, rated=rated)
        unmet = catalog.names([row for row in left_out if row not in history.positions])
        if named := ", ".join(f"{title} ({id_})" for id_, title in zip(*unmet, strict=True)):
            more.append(f"`without`: not in this history, so nothing changes: {named}.")
        history = history.without(left_out)
        history = history if recent is None else history.recent(recent)
        return history, [*told, *notes, *more]

    def _check_once(
        self, liked: Sequence[int], rated: Sequence[int], catalog: StoredCatalog
    ) -> None:
        """Raise `QkvError` for an item that is both liked, which counts in full, and rated."""
        if both := sorted({*liked} & {*rated}):
            (id_, *_), _ = catalog.names(both)
            raise QkvError(f"{id_text(id_)!r} is among `likes` and `ratings`: leave it out of one")


@dataclass(frozen=True)
class Recommender:
    """What turns a history into a head: by preferences, or by text where none were learned."""

    models: StoredModels
    catalog: StoredCatalog

    @property
    def factors(self) -> ImplicitFactors:
        """Item embeddings, and the solve that turns a history into a user's. Raises
        `WorkspaceError` where no preferences were learned.
        """
        self.models.require_interactions("learn preferences from")
        assert self.models.implicit is not None
        return self.models.implicit

    @property
    def next_item(self) -> NextItemModel:
        """Raises `WorkspaceError` where the build has no model of what comes next."""
        found = self.models.find(NextItemComponent())
        if found is None:
            raise WorkspaceError(
                "no model of what comes next is here (`model` next-item): build with `next_item`"
            )
        return found

    @cached_property
    def histories(self) -> Histories:
        return Histories(self.models, self.catalog)

    def embeddings(self, histories: Sequence[History]) -> np.ndarray:
        """Of users with these histories, (n, d), float64, solved as exactly as a single one's."""
        from scipy.sparse import csr_matrix

        indptr = np.concatenate([[0], np.cumsum([len(history) for history in histories])])
        confidences = np.concatenate([history.confidences for history in histories])
        positions = np.concatenate([history.positions for history in histories])
        shape = (len(histories), self.models.n_items)
        return self.factors.fold_in_many(csr_matrix((confidences, positions, indptr), shape))

    def head(
        self,
        history: History,
        model: str = PREFERENCES,
        damping: float = 0.0,
        allowed: Allowed = EVERY,
    ) -> Scores | None:
        """Scores of the items, damped; None where the model knows nothing of the history."""
        if model == NEXT_ITEM:
            head = self._by_sequence(history)
        elif self.models.implicit is None:
            head = self._by_text(history, allowed)
        else:
            head = self._by_embedding(history)
        if head is None or not damping:
            return head
        self.models.require_interactions("tell what is popular")
        return damped(head, log_popularity(self.models.item_counts), damping)

    def _by_embedding(self, history: History) -> Scores | None:
        """By an exact solve on the history, as sums over it."""
        embedding = self.embedding(history)
        if not embedding.vectors.any():  # nothing liked, or cold items alone
            return None
        return DenseKeys(self.factors.item_embeddings).head(HEAD, embedding)

    def embedding(self, history: History) -> LabelledVectors:
        """The user's, as the sum of what each item that they like adds to it."""
        liked = history.liked
        ids, _ = self.catalog.names(liked.positions)
        vectors = self.factors.history_vectors(liked.positions, liked.confidences)
        return LabelledVectors(ids, vectors)

    def _by_text(self, history: History, allowed: Allowed) -> Scores | None:
        """By the mean similarity of texts to those of the history, weighed by confidence."""
        main = self.models.main_head
        mean = self.mean_text(history, main)
        if not mean.vectors.any():
            return None
        head = next(scored({TEXT: self.models.dense_keys(main).head(TEXT, mean)}, allowed))[TEXT]
        return head and replace(head, notes=[BY_TEXT])

    def mean_text(self, history: History, head: str) -> LabelledVectors:
        """The mean of the items' keys by a dense head, weighed by confidence."""
        keys = self.models.dense_keys(head)
        shares = history.confidences / max(float(history.confidences.sum()), 1e-9)
        ids, _ = self.catalog.names(history.positions)
        return LabelledVectors(ids, keys.vectors[history.positions] * shares[:, None])

    def _by_sequence(self, history: History) -> Scores | None:
        """By the last state of a history that attends to itself, oldest first. The parts of a score
        are what each item adds at held attention weights, norms and gates, and a constant.
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
        return Scores(NEXT_ITEM, scores, parts, answers=model.known)


def in_order(history: History) -> np.ndarray:
    """The items that count for anything, oldest first; of the same time in the catalog's order."""
    liked = history.liked
    return np.asarray(liked.positions[np.argsort(liked.times, kind="stable")])


def log_popularity(counts: np.ndarray) -> np.ndarray:
    """ln(1 + how many users interacted with it), in standard deviations from the mean item,
    (n_items,).

    >>> log_popularity(np.array([0, 0, 8, 8])).tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """
    logs = np.log1p(np.asarray(counts, dtype=np.float64))
    return np.asarray((logs - logs.mean()) / (logs.std() or 1.0))


def damped(head: Scores, popularity: np.ndarray, damping: float) -> Scores:
    """Less for popular items: score − damping · σ · popularity, σ the scores' standard deviation
    over all items. The damping is a part of the score, "popularity".
    """
    return plus(head, POPULARITY, -damping * head.moments()[1] * head.taken(popularity))


def with_reasons(
    ranking: Ranking,
    history: History,
    catalog: StoredCatalog,
    because: int | None = None,
    shared_with: Sequence[Container[int]] = (),
) -> Ranking:
    """Each hit with `because`: what the history adds to the score, and without an id what damping,
    diversity and a constant add.

    because: how many items of the history are listed, those that add most; the others are one more
    entry. By default all that count for anything. shared_with: where hits are users, the row
    numbers of each one's items, so that each item of the history says whether it is `shared`.
    """
    ids, titles = catalog.names(history.positions)
    known = dict(zip(ids, zip(titles, history.positions.tolist(), strict=True), strict=True))

    def reason(part: ScoreComponent, theirs: Container[int] | None) -> dict[str, Any]:
        title, position = known.get(part.query, (part.head, -1))
        found = {"id": part.query, "title": title, "contribution": part.value}
        return found if theirs is None else {**found, "shared": position in theirs}

    def reasons(index: int, theirs: Container[int] | None) -> list[dict[str, Any]]:
        pause()
        parts = ranking.parts(index)
        if because is None:
            return [reason(part, theirs) for part in parts.ordered()]
        is_item = np.array([source.query is not None for source in parts.sources], dtype=bool)
        largest, n_others, value = parts.only(is_item).largest(because)
        listed = sorted([*largest, *parts.only(~is_item)], key=lambda part: -abs(part.value))
        found = [reason(part, theirs) for part in listed]
        others = {"id": None, "title": OTHERS, "contribution": value, "items": n_others}
        return [*found, others] if n_others else found

    theirs: Sequence[Container[int] | None] = shared_with or [None] * len(ranking)
    return ranking.annotated(because=[reasons(i, of_one) for i, of_one in enumerate(theirs)])


class HistoryReasons:
    """A `Reasoning` by the items of a history: what they have in common with one another and, if
    possible, with the item that is recommended, as far as the catalog knows. shared_with: as in
    `with_reasons`, by the row number of the hit.
    """

    def __init__(
        self,
        history: History,
        catalog: StoredCatalog,
        shared_with: Mapping[int, Container[int]] | None = None,
    ) -> None:
        self.catalog, self.positions = catalog, history.positions
        self.shared_with = shared_with

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        """The place of each item in the history, by id."""
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
        if self.shared_with is None:
            (own,) = item_kinds(self.catalog, [position])
            return [*self._kinds.reasons(values, which, own), *whole]
        theirs = self.shared_with[position]
        is_shared = np.array([row in theirs for row in self.positions.tolist()], dtype=bool)
        groups = {
            "that both know": which & is_shared,
            "that the other does not know": which & ~is_shared,
        }
        titles = self._kinds.titles
        found = [group(what, titles, values, some) for what, some in groups.items() if some.any()]
        return [*found, *whole]


def item_kinds(catalog: StoredCatalog, positions: Sequence[int] | np.ndarray) -> list[list[str]]:
    """Of each item the entries of its lists, and its short texts but id and title: its genres, its
    channel.
    """
    columns = [
        column
        for column in catalog.catalog_columns
        if column.type in ("list", "text") and column.stored not in ("id", "title")
    ]
    rows = catalog.cells(positions, [column.stored for column in columns])
    found = []
    for row in rows:
        kinds = []
        for column, cell in zip(columns, row, strict=True):
            separate = column.type == "list"
            texts = [] if cell is None else str(cell).split(LIST_SEPARATOR) if separate else [cell]
            kinds += [text for text in map(str, texts) if 0 < len(text) <= LONGEST_KIND]
        found.append(list(dict.fromkeys(kinds)))
    return found


def with_strength(ranking: Ranking, history: History, models: StoredModels) -> Ranking:
    """Where preferences rank by a history that rests on too little: `weak` hits, and a note that
    says in numbers how little. What `where`, damping and diversity do makes none of them weak.
    """
    head, strength = ranking.head, models.strength
    plain = None if head is None else (head.addends or [head])[0]
    if not ranking or strength is None or plain is None or plain.name != HEAD:
        return ranking
    why = strength.why_weak(history, best_unseen(plain.scores, history))
    return ranking.annotated(weak=[True] * len(ranking)).noted([why]) if why else ranking


def with_facts(ranking: Ranking, history: History, models: StoredModels) -> Ranking:
    """Each hit with `cold` where nobody interacted with it before the build, and with the rating
    that the user would give, where the history has ratings to go by.
    """
    if models.implicit is None:
        return ranking
    is_known = models.item_counts[ranking.positions] > 0
    ranking = ranking.annotated(cold=[None if known else True for known in is_known])
    rated = np.isfinite(history.ratings)
    model = models.find(RatingsComponent())
    if model is None or not rated.any():
        return ranking
    bias, embedding = model.fold_in(history.positions[rated], history.ratings[rated])
    predicted = model.predict(embedding, bias, ranking.positions)
    return ranking.annotated(predicted_rating=predicted.tolist())
