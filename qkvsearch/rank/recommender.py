"""Score all items for a history: by preferences, by what comes next, by texts or by popularity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.validation import check_id
from qkvsearch.errors import NotBuiltError, QkvError, suggest
from qkvsearch.heads.histories import Histories
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.heads.stored_next_item import NextItemComponent
from qkvsearch.models.recommend_head import HistoryScores
from qkvsearch.models.user_history import History
from qkvsearch.models.user_vectors import ImplicitFactors
from qkvsearch.rank.candidates import positions_of
from qkvsearch.rank.damping import damped, log_popularity
from qkvsearch.rank.given_values import GivenValues
from qkvsearch.rank.owner_rules import NO_RULES, QueryRules
from qkvsearch.rank.questions import NEXT_ITEM, PREFERENCES, RecommendQuestion
from qkvsearch.rank.text_search import POPULAR, popularity
from qkvsearch.scores.approximate import ALL_ITEMS, Filter, fuse_candidates
from qkvsearch.scores.components import Components, PartSource
from qkvsearch.scores.fusion import Scores, weighted_sum
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.ids import id_text
from qkvsearch.text.labelled import LabelledVectors

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from qkvsearch.models.next_item_model import NextItemModel
    from qkvsearch.models.preferences import Preferences

# The notes for an unknown user.
MOST_POPULAR = "these are the most popular items."
NO_INTERACTIONS = "and no interactions at all: record some, or build with `interactions`."
# The component of a next-item score that belongs to no item.
CONSTANT = "constant"
# The head that scores where there are no preferences, and its note.
TEXT = "text"
BY_TEXT = (
    "By text alone: these items read like those of the history. Nobody's interactions were learned "
    "from yet; build with `interactions` to learn what goes together."
)


def read_history(
    histories: Histories, question: RecommendQuestion
) -> tuple[History, list[str], bool]:
    """Return the history that a question is about: that of a user, items liked or rated in the
    question alone, or both, without the items in `without`, and before `recent` weighs it. Also
    return notes on an unknown user, on ambiguous names and on items of `without` that are not in
    it; and whether the question names an unknown user and nothing else. Raises `QkvError`; with
    `strict_user` for an unknown user too.
    """
    catalog, user = histories.catalog, question.user
    rated, rating_notes = GivenValues(histories).as_if_recorded(question.ratings or {})
    liked, like_notes = positions_of(catalog, question.likes)
    if both := sorted({*liked} & {interaction.position for interaction in rated}):
        (id_, *_), _ = catalog.names(both)
        raise QkvError(f"{id_text(id_)!r} is among `likes` and `ratings`: leave it out of one")
    excluded, without_notes = positions_of(catalog, question.without)
    is_checked = user is not None and not question.strict_user
    notes = unknown(histories, user) if is_checked else []
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
    return history, [*notes, *rating_notes, *like_notes, *without_notes], is_nobody


@dataclass(frozen=True)
class Recommender:
    """The models of a build that score all items for a history. `head` chooses among them."""

    models: StoredModels
    catalog: StoredCatalog
    histories: Histories

    # --- what was learned ---

    @property
    def preferences(self) -> Preferences:
        """The heads of a recommendation. Raises `NotBuiltError` where none were learned."""
        self.models.require_interactions("learn preferences from")
        assert self.models.preferences is not None
        return self.models.preferences

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

    # --- scores ---

    def head(
        self,
        history: History,
        model: str = PREFERENCES,
        damping: float = 0.0,
        allowed: Filter = ALL_ITEMS,
        names: Sequence[str] | None = None,
        rules: QueryRules = NO_RULES,
    ) -> Scores | None:
        """Return damped and boosted scores of all items; None where the model has no item of the
        history.

        model: "preferences", "next-item" or "popular". Without interactions to learn preferences
        from, texts score instead. names: of the heads of preferences, by default all. rules: the
        owner's, whose boosts are in standard deviations of the scores before damping. Raises
        `QkvError` for names where no preferences score.
        """
        multipliers = None if names is None else self.multipliers(names, model)
        if damping:
            self.models.require_interactions("tell what is popular")
        if model == POPULAR:
            scores = self._by_popularity()
        elif model == NEXT_ITEM:
            scores = self._by_sequence(history)
        elif self.models.implicit is None:
            return self._by_text(history, allowed, rules)
        else:
            scores = self._by_preferences(history, multipliers or self.preferences.multipliers())
        if scores is None:
            return None
        _, deviation = scores.moments
        if damping:
            scores = damped(scores, log_popularity(self.models.item_counts), damping)
        return rules.boosted(scores, deviation)

    def multipliers(self, names: Sequence[str], model: str) -> dict[str, float]:
        """Return what the scores of these heads are multiplied by: 1 for a head alone, and the
        factors of the build for several. Raises `QkvError` for a name that is not a head, for no
        name, and where preferences do not score.
        """
        if model == NEXT_ITEM or self.models.implicit is None:
            raise QkvError("`heads` are of preferences, which do not score here: leave it out")
        factors = self.preferences.multipliers()
        for name in names or [""]:
            if name not in factors:
                hint = f"{suggest(name, [*factors])} (there are {' and '.join(factors)})"
                raise QkvError(f"`heads`: no {name!r}{hint}")
        if len({*names}) == 1:
            return {names[0]: 1.0}
        return {name: factors[name] for name in names}

    def _by_preferences(self, history: History, multipliers: Mapping[str, float]) -> Scores | None:
        """Score by the sum of the heads, each multiplied by its number."""
        liked = history.liked
        ids, _ = self.catalog.names(liked.positions)
        heads, factors = [], []
        for name, factor in multipliers.items():
            if not factor:
                continue
            scored = self.preferences.heads[name].score_history(liked.positions, liked.confidences)
            if scored is not None:
                heads.append(history_head(name, scored, ids))
                factors.append(factor)
        return weighted_sum(heads, factors) if heads else None

    def _by_sequence(self, history: History) -> Scores | None:
        """Score by the last state of a history that attends to itself, oldest first. A score's
        components are what each item adds with attention weights, norms and gates fixed, and a
        constant.
        """
        model, rows = self.next_item, in_order(history)
        if not model.known[rows].any():
            return None
        ids, _ = self.catalog.names(rows)
        sources = [PartSource(NEXT_ITEM, id_) for id_ in ids]
        sources.append(PartSource(CONSTANT, None))

        @cache  # computed for the first hit that is explained
        def vectors() -> np.ndarray:
            return model.history_vectors(rows)

        def parts(position: int) -> Components:
            added = vectors() @ model.items.weight[position][:, None]
            return Components.pairs(sources, [None], added)

        scores = model.items.weight @ model.fold_in(rows)
        return Scores(NEXT_ITEM, scores, parts, covered=model.known)

    def _by_text(self, history: History, allowed: Filter, rules: QueryRules) -> Scores | None:
        """Score by the mean similarity to the texts of the history, weighted by confidence, with
        the owner's boosts.
        """
        main = self.models.main_head
        mean = self.mean_text(history, main)
        if not mean.vectors.any():
            return None
        query = self.models.dense_keys(main).head(TEXT, mean)
        if query is None:
            return None

        def boosted(scores: Mapping[str, Scores]) -> Scores:
            return rules.boosted(scores[TEXT], scores[TEXT].moments[1])

        # Boosted while candidates are chosen: every hit has to be one.
        _, scores = fuse_candidates({TEXT: query}, boosted, allowed)
        return replace(scores, notes=[BY_TEXT])

    def _by_popularity(self) -> Scores | None:
        """Score by the number of users of an item: in the log, or without one in the records."""
        has_log = self.models.implicit is not None
        counts = self.models.item_counts if has_log else self.histories.user_counts
        if not counts.any():
            return None
        return replace(popularity(counts), covered=counts > 0)

    # --- histories as vectors ---

    def embedding(self, history: History) -> LabelledVectors:
        """Return the user's embedding, as the sum of a vector for each item that they like."""
        liked = history.liked
        ids, _ = self.catalog.names(liked.positions)
        vectors = self.factors.history_vectors(liked.positions, liked.confidences)
        return LabelledVectors(ids, vectors)

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

    def mean_text(self, history: History, head: str) -> LabelledVectors:
        """Return the mean of the items' keys in a dense head, weighted by confidence."""
        keys = self.models.dense_keys(head)
        shares = history.confidences / max(float(history.confidences.sum()), 1e-9)
        ids, _ = self.catalog.names(history.positions)
        return LabelledVectors(ids, keys.vectors[history.positions] * shares[:, None])


def history_head(name: str, scored: HistoryScores, labels: Sequence[Any]) -> Scores:
    """Return a history's scores with their parts. labels: one for each item of the history."""
    sources = [PartSource(name, label) for label in labels]

    def parts(position: int) -> Components:
        return Components.pairs(sources, [None], scored.addends(position)[:, None])

    return Scores(name, scored.scores, parts)


def unknown(histories: Histories, user: Any) -> list[str]:
    """Return the beginning of a note that a user is unknown; nothing about a known one."""
    is_known = histories.knows(check_id("user", user))
    return [] if is_known else [f"No user {id_text(user)!r} here"]


def in_order(history: History) -> np.ndarray:
    """Return the liked items, oldest first; those of the same time in the catalog's order."""
    liked = history.liked
    return np.asarray(liked.positions[np.argsort(liked.times, kind="stable")])
