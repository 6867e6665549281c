"""Answer a `RecommendQuestion`, for one user or for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.query_lock import query_lock
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.attention.masks import exclusion_mask
from qkvsearch.models.user_history import History
from qkvsearch.rank.candidates import (
    candidates,
    groups_of,
    listed_positions,
    positions_of,
    with_where_note,
)
from qkvsearch.rank.diversity import diverse, pool_size
from qkvsearch.rank.history_reasons import (
    HistoryReasons,
    Speaker,
    what_people_did,
    with_reasons,
)
from qkvsearch.rank.hit_facts import with_facts, with_strength
from qkvsearch.rank.listing import own_columns, with_fields
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.none_ranked import none_recommended
from qkvsearch.rank.owner_rules import NO_RULES, QueryRules
from qkvsearch.rank.questions import PREFERENCES, SMALLEST, RecommendQuestion
from qkvsearch.rank.ranking import Ranking, rank
from qkvsearch.rank.recommender import POPULAR, read_history
from qkvsearch.rank.removed_items import Losses, preference_losses, tried_losses
from qkvsearch.rank.smallest import N_RIVALS, SmallestSets
from qkvsearch.scores.approximate import Filter
from qkvsearch.scores.fusion import Scores
from qkvsearch.scores.topk import best_of_groups

if TYPE_CHECKING:
    from qkvsearch._utils.callbacks import Progress
    from qkvsearch.rank.batch import AllRecommendations


@query_lock()
@one_blas_thread()
def recommend(build: LoadedBuild, question: RecommendQuestion) -> Ranking:
    """Rank the items of a build for a user or for what somebody likes, as `Engine.recommend`
    describes. Raises `QkvError`.
    """
    catalog, models = build.catalog, build.models
    columns = own_columns(catalog, question.fields)
    whole_history, history_notes, is_nobody = read_history(build.histories, question)
    history = weighed(whole_history, question)
    excluded, excluded_notes = positions_of(catalog, question.exclude)
    seen: Iterable[int] = () if question.seen else history.positions
    listed, listed_notes = listed_positions(catalog, question.only)
    mask = candidates(catalog, build.n_items, question.where, [*seen, *excluded], listed)
    groups = groups_of(catalog, question.distinct)

    asked = _Asked(build, question, whole_history, mask, groups, is_nobody)
    ranking = asked.ranking().page(question.offset)

    ranking = with_fields(ranking, catalog, columns)
    speaker = _speaker(build, history)
    ranking = replace(
        ranking,
        reasoning=HistoryReasons(speaker, catalog),
        smallest_of=asked.smallest,
        source=build,
    )
    if is_nobody:
        ranking = ranking.annotated(weak=[True] * len(ranking))
    if question.explain and is_nobody:
        ranking = ranking.annotated(because=[[] for _ in ranking])
    elif question.explain:
        ranking = with_reasons(ranking, speaker, catalog, question.because)
    if question.explain == SMALLEST:
        ranking = ranking.with_smallest()
    ranking = with_strength(ranking, history, models)
    ranking = with_facts(ranking, history, models)
    notes = [*asked.rules.notes, *listed_notes, *history_notes, *excluded_notes]
    if not ranking.n_candidates and not asked.says_why_none:
        has_log = models.implicit is not None
        why = none_recommended(catalog, question, history, asked.whole_head, has_log)
        notes.insert(0, why)
    return ranking.noted(notes)


def boosts_of(build: LoadedBuild, question: RecommendQuestion) -> QueryRules:
    """Return the owner's boosts, if the question wants them."""
    rules = build.rules if question.rules else None
    return NO_RULES if rules is None else rules.of_any_question


def _speaker(build: LoadedBuild, history: History) -> Speaker:
    """Return what is said of the items of a history as reasons."""
    models = build.models
    return Speaker(
        history=history,
        did=what_people_did(build.snapshot.facts),
        item_counts=None if models.implicit is None else models.item_counts,
    )


def weighed(history: History, question: RecommendQuestion) -> History:
    """Return a history with the weights that `recent` gives it, if the question has that."""
    return history if question.recent is None else history.recent(question.recent)


@dataclass(frozen=True)
class _Asked:
    """What a question asks of a history, which can be asked again without some of its items."""

    build: LoadedBuild
    question: RecommendQuestion
    # Before `recent` weighs it.
    history: History
    # The candidates, bool (n_items,), and their groups, if any.
    mask: np.ndarray
    groups: np.ndarray | None
    # Whether the question names an unknown user and nothing else.
    is_nobody: bool

    def ranking(self, without: Sequence[int] = ()) -> Ranking:
        """Return the hits up to the last that is asked for, without the items in these rows: they
        are not in the history, and no candidates either.
        """
        question, build = self.question, self.build
        mask = self.mask
        if len(without):
            mask = mask & exclusion_mask(len(mask), without)
        pool = rank(
            self.head(without, mask) if len(without) else self.whole_head,
            build.catalog.names,
            k=self.n_pool,
            temperature=question.temperature,
            mask=mask,
            groups=self.groups,
        )
        pool = with_where_note(pool, question.where, mask)
        return diverse(pool, build.models, question.diversity, question.n_ranked)

    @property
    def n_pool(self) -> int:
        """How many items to rank: diverse hits are chosen from more than are asked for."""
        return pool_size(self.question.n_ranked, self.question.diversity)

    @cached_property
    def whole_head(self) -> Scores | None:
        """The scores of all items, by the whole history."""
        return self.head((), self.mask)

    @property
    def says_why_none(self) -> bool:
        """Whether another note says why there are no recommendations: the one on the condition, or
        that on an unknown user where there are no interactions at all.
        """
        has_where_note = self.question.where is not None and not self.mask.any()
        return has_where_note or (self.is_nobody and self.whole_head is None)

    def head(self, without: Sequence[int], mask: np.ndarray) -> Scores | None:
        """Return the scores of all items, without the items in these rows in the history.

        mask: the candidates.
        """
        question = self.question
        return self.build.recommender.head(
            weighed(self.history.without(without), question),
            POPULAR if self.is_nobody else question.model,
            question.damping,
            Filter(mask, self.n_pool, self.groups),
            question.heads,
            self.rules,
        )

    @cached_property
    def rules(self) -> QueryRules:
        """The owner's rules: the boosts alone, since pins are of queries."""
        return boosts_of(self.build, self.question)

    def smallest(self, hit: int) -> dict[str, list[Any]]:
        """Return the fewest items of the history without which the item in this row would not be
        among the hits asked for: their ids, as `items`; none where no set is found.
        """
        if self.is_nobody:  # there is no history
            return {"items": []}
        ids, _ = self.build.catalog.names(self._smallest_sets.of(hit))
        return {"items": list(ids)}

    @cached_property
    def _smallest_sets(self) -> SmallestSets:
        head = self.whole_head
        scores = np.zeros(len(self.mask)) if head is None else head.scores
        allowed = self.mask if head is None else head.allowed(self.mask)
        k = self.question.n_ranked
        return SmallestSets(
            positions=weighed(self.history, self.question).liked.positions,
            first=lambda without: self.ranking(without).positions[:k],
            losses=self._losses,
            rivals=best_of_groups(scores, max(N_RIVALS, 3 * k), allowed, self.groups),
            scores=scores,
            k=k,
        )

    def _losses(self, items: np.ndarray) -> list[Losses]:
        """Return what the scores of these items lose without items of the history."""
        build, question = self.build, self.question
        liked = weighed(self.history, question).liked
        if question.model == PREFERENCES and build.models.implicit is not None:
            preferences = build.recommender.preferences
            multipliers = preferences.multipliers()
            if question.heads is not None:
                multipliers = build.recommender.multipliers(question.heads, question.model)
            return preference_losses(preferences, multipliers, liked, items)

        def scores_without(row: int) -> np.ndarray | None:
            head = self.head([row], self.mask)
            return None if head is None else head.scores

        assert self.whole_head is not None
        return [tried_losses(scores_without, self.whole_head.scores, liked, items)]


def recommend_all(
    build: LoadedBuild,
    question: RecommendQuestion,
    path: Path | None = None,
    format: str | None = None,
    raw: bool = False,
    progress: Progress | None = None,
) -> AllRecommendations:
    """Recommend to all users, as `Engine.recommend_all` describes. Raises `QkvError`."""
    from qkvsearch.rank.batch import BatchRecommendations

    columns = own_columns(build.catalog, question.fields)
    listed, listed_notes = listed_positions(build.catalog, question.only)
    rules = boosts_of(build, question)
    batch = BatchRecommendations(
        build.recommender,
        k=min(question.k, build.n_items),
        mask=candidates(build.catalog, build.n_items, question.where, only=listed),
        seen=question.seen,
        recent=question.recent,
        damping=question.damping,
        model=question.model,
        columns=columns,
        raw=raw,
        heads=question.heads,
        boosts=rules.boost_values,
    )
    done = batch.collect(progress) if path is None else batch.write(path, format, progress)
    return replace(done, notes=[*rules.notes, *listed_notes, *done.notes])
