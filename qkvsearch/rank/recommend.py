"""Answer a `RecommendQuestion`, for one user or for all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from qkvsearch._utils.query_lock import query_lock
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.rank.candidates import (
    candidates,
    groups_of,
    listed_positions,
    positions_of,
    with_where_note,
)
from qkvsearch.rank.diversity import diverse, pool_size
from qkvsearch.rank.history_reasons import HistoryReasons, with_reasons
from qkvsearch.rank.hit_facts import with_facts, with_strength
from qkvsearch.rank.listing import own_columns, with_fields
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.questions import RecommendQuestion
from qkvsearch.rank.ranking import Ranking, rank
from qkvsearch.rank.recommender import POPULAR, read_history
from qkvsearch.scores.approximate import Filter

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
    history, history_notes, is_nobody = read_history(build.histories, question)
    excluded, excluded_notes = positions_of(catalog, question.exclude)
    seen: Iterable[int] = () if question.seen else history.positions
    listed, listed_notes = listed_positions(catalog, question.only)
    mask = candidates(catalog, build.n_items, question.where, [*seen, *excluded], listed)
    groups = groups_of(catalog, question.distinct)

    # Diverse hits are chosen from more than are asked for.
    n_pool = pool_size(question.n_ranked, question.diversity)
    head = build.recommender.head(
        history,
        POPULAR if is_nobody else question.model,
        question.damping,
        Filter(mask, n_pool, groups),
        question.heads,
    )
    pool = rank(
        head,
        catalog.names,
        k=n_pool,
        temperature=question.temperature,
        mask=mask,
        groups=groups,
    )
    pool = with_where_note(pool, question.where, mask)
    ranking = diverse(pool, models, question.diversity, question.n_ranked).page(question.offset)

    ranking = with_fields(ranking, catalog, columns)
    ranking = replace(ranking, reasoning=HistoryReasons(history, catalog), source=build)
    if is_nobody:
        ranking = ranking.annotated(weak=[True] * len(ranking))
    if question.explain and is_nobody:
        ranking = ranking.annotated(because=[[] for _ in ranking])
    elif question.explain:
        ranking = with_reasons(ranking, history, catalog, question.because)
    ranking = with_strength(ranking, history, models)
    ranking = with_facts(ranking, history, models)
    return ranking.noted([*listed_notes, *history_notes, *excluded_notes])


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
    )
    done = batch.collect(progress) if path is None else batch.write(path, format, progress)
    return replace(done, notes=[*listed_notes, *done.notes])
