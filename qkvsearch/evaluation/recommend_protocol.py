"""Evaluate recommendations on interactions that the models have not seen: held out of the log by a
protocol, or the owner's own test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch._utils.validation import random_seed
from qkvsearch.errors import QkvError, quantity
from qkvsearch.evaluation import metrics
from qkvsearch.evaluation.held_out import HeldOutUsers
from qkvsearch.evaluation.metrics import N_RESAMPLES, interval, resampled_means
from qkvsearch.evaluation.recommend_groups import RecommendGroups
from qkvsearch.evaluation.results import OURS, Difference, Evaluation, Metrics, best_of
from qkvsearch.evaluation.splits import Split, split
from qkvsearch.evaluation.systems import (
    BASELINES,
    NEXT_ITEM,
    Fused,
    HeadAlone,
    NextItems,
    Stored,
    System,
)
from qkvsearch.heads.component import TUNED
from qkvsearch.models.confidences import scale_of
from qkvsearch.models.estimators import BiasedMF
from qkvsearch.models.recommend_heads import HEADS
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.ratings import ends_of

if TYPE_CHECKING:
    from qkvsearch.evaluation.others import Others
    from qkvsearch.heads.stored_models import StoredModels
    from qkvsearch.models.preferences import Preferences
    from qkvsearch.models.user_vectors import RatingFactors
    from qkvsearch.tables.dataset import File, Source

# The protocol by the owner's own test, and the one by default.
TEST, DEFAULT_PROTOCOL = "test", "random"
# The baseline of predicted ratings.
BIASES = "biases"
# The default number of users: half of a confidence interval is then at most 0.022, for metrics from
# 0 to 1.
N_USERS = 2000

# Functions of a ranking, the grades of the relevant items, and k.
RELEVANCE: dict[str, Callable[..., float]] = {
    "ndcg": metrics.ndcg,
    "recall": metrics.recall,
    "precision": metrics.precision,
    "hit_rate": metrics.hit,
    "mrr": metrics.reciprocal_rank,
    "map": metrics.average_precision,
}

# The number of zeros that the mean of an item's or a user's ratings includes.
ITEM_DAMPING = 25.0
USER_DAMPING = 10.0
MAX_PAIRS = 1 << 17

# Name of a metric to its value for each user, (n,).
Figures = dict[str, np.ndarray]


def evaluate_build(
    models: StoredModels,
    protocol: str,
    *,
    k: int,
    users: int | None,
    random_state: int,
    next_item: bool,
    test: Source | None,
    others: Others,
    progress: Progress | None,
) -> Evaluation:
    """Evaluate the recommendations of a build, as `Engine.evaluate_recommend` describes. Raises
    `QkvError`.
    """
    if test is None:
        if others:
            raise QkvError(
                "`recommendations` are judged by interactions that nobody learned from: give your "
                "own as `test`; what a `protocol` holds out, others may have seen"
            )
        return _evaluate_by_protocol(models, protocol, k, users, random_state, next_item, progress)
    if protocol != DEFAULT_PROTOCOL:
        raise QkvError(
            f"`protocol` {protocol} holds out a part of the log, and `test` is held out already: "
            "leave one of them out"
        )
    if next_item:
        raise QkvError("`next_item` learns anew, and with `test` the build is judged as it is")
    from qkvsearch.evaluation.given_split import split_by_test
    from qkvsearch.evaluation.others import named_files
    from qkvsearch.heads.stored_ratings import RatingsComponent

    named = named_files(others, taken=(OURS, *HEADS, *BASELINES, BIASES))
    parts, notes = split_by_test(models, test)
    assert models.preferences is not None  # learned from the log
    evaluation = evaluate_test(
        parts,
        models.preferences,
        models.find(RatingsComponent()),
        named,
        k=k,
        users=users or 0,
        random_state=random_state,
        progress=progress,
    )
    return replace(evaluation, notes=[*notes, *evaluation.notes])


def _evaluate_by_protocol(
    models: StoredModels,
    protocol: str,
    k: int,
    users: int | None,
    random_state: int,
    next_item: bool,
    progress: Progress | None,
) -> Evaluation:
    """Evaluate what is learned from a part of the build's log, with the settings of `tune`."""
    tuned = models.snapshot.facts.get(TUNED) or {}
    evaluation = evaluate_recommend(
        models.log("judge by"),
        protocol,
        k=k,
        users=N_USERS if users is None else users,
        settings=tuned.get("settings"),
        keys=np.asarray(models.dense_keys(models.main_head).vectors),
        random_state=random_state,
        next_item=next_item,
        progress=progress,
    )
    if not tuned:
        return evaluation
    note = (
        f"With the settings that tune found with `protocol` {tuned['protocol']}; with another "
        "protocol or seed they may have been chosen by interactions that are held out here."
    )
    return replace(evaluation, notes=[note, *evaluation.notes])


def evaluate_recommend(
    log: Interactions,
    protocol: str = "random",
    *,
    k: int = 10,
    users: int = N_USERS,
    settings: Mapping[str, Any] | None = None,
    keys: np.ndarray | None = None,
    next_item: bool = False,
    random_state: Any = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate rankings at k, learned from a part of the log, against the most popular items,
    item-kNN and EASE^R; with ratings also RMSE and MAE. Each head is evaluated alone as well.

    users: rankings are evaluated for at most this many users, drawn at random; 0 for all. Models
    always learn from all users. settings: parameters of `ImplicitALS`, instead of its defaults.
    keys: text vectors (n_items, t), which place items without training interactions. next_item:
    also train and evaluate `NextItem`, under leave-last-out or time (minutes; PyTorch).

    The whole catalog without the user's history is ranked, never a sample of it, which can reverse
    the order of methods (Krichene and Rendle 2020). Held-out items are relevant, with ratings only
    those rated in the upper half of the scale; averages are over the users who have any. Intervals
    are percentiles of 1,000 resamples of the users; differences are between the same users. Raises
    `QkvError` for a protocol that the log or `next_item` does not allow, for a log that is too
    small, and if PyTorch is missing.

    >>> users, items = np.divmod(np.arange(12 * 8), 8)
    >>> pairs = (users + items) % 2 == 0  # even users like even items
    >>> log = Interactions.from_columns(users[pairs], items[pairs])
    >>> evaluate_recommend(log, "strong", k=1).metrics["recall@1"]
    1.0
    """
    progress = progress or silent
    if next_item:
        NextItems.check(log, protocol)
    seed = random_seed(random_state)
    progress("splitting the log", 0, 1)
    parts = split(log, protocol, seed)
    held_out = HeldOutUsers.of(parts, scale_of(log), users or None, seed)
    progress("splitting the log", 1, 1)
    ours = Fused(
        keys,
        partial(progress, "placing items by their text"),
        **dict(settings or {}),
        random_state=seed,
        callback=partial(progress, "learning preferences"),
    )
    systems: dict[str, System] = {OURS: ours}
    for name in HEADS:
        systems[name] = HeadAlone(ours, name)
    systems |= _baselines(progress)
    evaluated = {name: (system, held_out) for name, system in systems.items()}
    if next_item:
        callback = partial(progress, "learning what comes next")
        sequence_model = NextItems(random_state=seed, callback=callback)
        evaluated[NEXT_ITEM] = (sequence_model, held_out.in_order(parts))
    comparison = _Comparison(seed)
    groups = RecommendGroups(held_out, k, seed)
    _add_rankings(comparison, groups, evaluated, {}, progress)
    _add_ratings(comparison, parts, partial(rating_errors, parts.rated(), seed), progress)
    return _evaluation(protocol, parts, held_out, comparison, groups, systems)


def evaluate_test(
    parts: Split,
    preferences: Preferences,
    rating_factors: RatingFactors | None,
    others: Mapping[str, File],
    *,
    k: int = 10,
    users: int = 0,
    random_state: Any = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate what a build stores by the owner's own test, with nothing learned anew but the
    baselines, which learn from the log of the build.

    parts: the log of the build and the test, as `split_by_test` returns them. preferences,
    rating_factors: what the build stores. others: somebody else's recommendations, which are judged
    beside ours, by their names. The other parameters and what is judged are as in
    `evaluate_recommend`.
    """
    from qkvsearch.evaluation.others import read_rankings

    progress = progress or silent
    seed = random_seed(random_state)
    held_out = HeldOutUsers.of(
        parts, scale_of(parts.train) or scale_of(parts.test), users or None, seed
    )
    user_ids, item_ids = parts.train.user_ids, parts.train.item_ids
    read = {
        name: read_rankings(name, source, held_out, user_ids, item_ids, k)
        for name, source in others.items()
    }
    ours = Stored(preferences)
    systems: dict[str, System] = {OURS: ours}
    for name in preferences.heads:
        systems[name] = HeadAlone(ours, name)
    systems |= _baselines(progress)
    comparison = _Comparison(seed)
    groups = RecommendGroups(held_out, k, seed)
    evaluated = {name: (system, held_out) for name, system in systems.items()}
    rankings = {name: theirs.rankings for name, theirs in read.items()}
    _add_rankings(comparison, groups, evaluated, rankings, progress)
    if rating_factors is not None:
        errors = partial(stored_rating_errors, parts.rated(), rating_factors)
        _add_ratings(comparison, parts, errors, progress)
    evaluation = _evaluation(TEST, parts, held_out, comparison, groups, systems)
    notes = [note for theirs in read.values() for note in theirs.notes]
    return replace(evaluation, notes=[*evaluation.notes, *notes])


def _baselines(progress: Progress) -> dict[str, System]:
    """Return the simpler methods, which are still to learn."""
    return {
        name: baseline(callback=partial(progress, f"learning {name}"))
        for name, baseline in BASELINES.items()
    }


def _evaluation(
    protocol: str,
    parts: Split,
    held_out: HeldOutUsers,
    comparison: _Comparison,
    groups: RecommendGroups,
    systems: Mapping[str, System],
) -> Evaluation:
    """Return the figures of all systems that were compared, with what was left out."""
    left_out = {name: system.left_out_ for name, system in systems.items() if system.left_out_}
    facts = {
        "k": groups.k,
        "random_state": comparison.random_state,
        **_counts(held_out, parts),
        "left_out": left_out,
    }
    metrics_of_all = comparison.metrics
    baselines = {
        name: metrics_of_system
        for name, metrics_of_system in metrics_of_all.items()
        if name not in (OURS, *HEADS)
    }
    return Evaluation(
        protocol,
        metrics=metrics_of_all[OURS],
        baselines=baselines,
        facts=facts,
        intervals=comparison.intervals,
        differences=comparison.differences,
        notes=_notes(held_out, parts, left_out),
        heads={name: metrics_of_all[name] for name in HEADS if name in metrics_of_all},
        by_history=groups.by_history(),
        by_popularity=groups.by_popularity(),
    )


def _counts(held_out: HeldOutUsers, parts: Split) -> dict[str, int]:
    """Return the numbers of users, items and interactions behind the metrics."""
    return {
        "resamples": N_RESAMPLES,
        "users": len(held_out.users),
        "eligible_users": held_out.n_eligible,
        "items": held_out.train.shape[1],
        "train": len(parts.train),
        "test": len(parts.test),
        "users_without_history": parts.newcomers,
    }


def _notes(held_out: HeldOutUsers, parts: Split, left_out: Mapping[str, str]) -> list[str]:
    """Return sentences about what was left out."""
    notes = []
    if parts.newcomers:
        notes.append(f"Left out: {quantity(parts.newcomers, 'user')} without a history to go by.")
    if len(held_out.users) < held_out.n_eligible:
        notes.append(
            f"A sample: rankings are judged by {len(held_out.users):,} of "
            f"{held_out.n_eligible:,} users, drawn at random (`users`); the intervals "
            "account for the size of the sample."
        )
    return notes + [f"Left out of {name}: {what}." for name, what in left_out.items()]


def _add_rankings(
    comparison: _Comparison,
    groups: RecommendGroups,
    systems: Mapping[str, tuple[System, HeldOutUsers]],
    others: Mapping[str, list[list[int]]],
    progress: Progress,
) -> None:
    """Add the metrics of each system's rankings for its held-out users, and its rankings to the
    groups of users and items. others: rankings that need no system, for the users of ours.
    """
    k = groups.k
    figures: dict[str, Figures] = {}
    overall: dict[str, Metrics] = {}

    def judge(name: str, rankings: list[list[int]], held_out: HeldOutUsers) -> None:
        progress(f"judging {name}", 0, 1)
        figures[name], overall[name] = _evaluate_rankings(rankings, held_out, k)
        groups.add(name, _of_catalog(rankings), figures[name][f"ndcg@{k}"])
        progress(f"judging {name}", 1, 1)

    for name, (system, held_out) in systems.items():
        judge(name, _rankings(system, held_out, k, name, progress), held_out)
    for name, rankings in others.items():
        judge(name, rankings, systems[OURS][1])
    progress("drawing intervals", 0, 1)
    comparison.add(figures, counts=None, transform=lambda means: means)
    progress("drawing intervals", 1, 1)
    for name, metrics_of_all in overall.items():
        comparison.metrics[name] |= metrics_of_all


def _rankings(
    system: System, held_out: HeldOutUsers, k: int, name: str, progress: Progress
) -> list[list[int]]:
    """Let a system learn, and return its ranking for each user."""
    n = len(held_out.users)
    system.fit(held_out.train)
    return held_out.rankings(system, k, lambda done: progress(f"ranking by {name}", done, n))


def _evaluate_rankings(
    rankings: list[list[int]], held_out: HeldOutUsers, k: int
) -> tuple[Figures, Metrics]:
    """Return the metrics of each user, and coverage, which is of all rankings together.

    Items with negative numbers are not in the catalog: they are misses, and neither novel nor
    diverse.
    """
    pairs = list(zip(rankings, held_out.relevant, strict=True))
    figures = {
        f"{figure}@{k}": np.array([function(*pair, k) for pair in pairs])
        for figure, function in RELEVANCE.items()
    }
    n_items = held_out.train.shape[1]
    counts = np.bincount(held_out.train.indices, minlength=n_items)
    n_users = np.count_nonzero(held_out.train.getnnz(axis=1))
    # A cold item counts as known by one user; otherwise it would be infinitely novel.
    shares = (np.maximum(counts, 1) / n_users).tolist()
    known = _of_catalog(rankings)
    # The similarity of two items is that of their audiences.
    audiences = held_out.train.T.tocsr()
    audiences.data = np.ones_like(audiences.data)
    figures[f"novelty@{k}"] = np.array([metrics.novelty(ranked, shares, k) for ranked in known])
    figures[f"diversity@{k}"] = metrics.diversity(known, audiences, k)
    return figures, {f"coverage@{k}": metrics.coverage(known, n_items)}


def _of_catalog(rankings: list[list[int]]) -> list[list[int]]:
    """Return rankings without what is not in the catalog."""
    return [[item for item in ranked if item >= 0] for ranked in rankings]


def _add_ratings(
    comparison: _Comparison,
    parts: Split,
    errors_by: Callable[[Progress], dict[str, np.ndarray]],
    progress: Progress,
) -> None:
    """Add RMSE and MAE, with biases alone as baseline, if both parts have ratings. errors_by:
    returns r̂ − r of each rating of the test by system.
    """
    rated = parts.rated()
    if not len(rated.train) or not len(rated.test):
        return
    errors = errors_by(progress)
    users, rows = np.unique(rated.test.users, return_inverse=True)
    counts = np.bincount(rows).astype(float)

    def sums(power: int) -> dict[str, np.ndarray]:
        return {
            system: np.bincount(rows, np.abs(pair_errors) ** power, len(users))
            for system, pair_errors in errors.items()
        }

    report = partial(progress, "drawing intervals of ratings")
    report(0, 2)
    squares = {system: {"rmse": column} for system, column in sums(2).items()}
    comparison.add(squares, counts, transform=np.sqrt)
    report(1, 2)
    sizes = {system: {"mae": column} for system, column in sums(1).items()}
    comparison.add(sizes, counts, transform=lambda means: means)
    report(2, 2)


class _Comparison:
    """Metrics of all systems, resampled together so that their differences are paired."""

    def __init__(self, random_state: int) -> None:
        self.random_state = random_state
        self.metrics: dict[str, Metrics] = {}
        self.intervals: dict[str, tuple[float, float]] = {}
        self.differences: dict[str, Difference] = {}

    def add(
        self,
        figures: Mapping[str, Figures],
        counts: np.ndarray | None,
        transform: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        """Add metrics with their intervals and differences.

        figures: by system and name, each user's sum of values (n,); counts (n,): of how many
        values, 1 by default. A metric is the transformed mean of these values.
        """
        columns = [(system, name) for system, named in figures.items() for name in named]
        sums = np.column_stack([figures[system][name] for system, name in columns])
        total = len(sums) if counts is None else counts.sum()
        values = dict(zip(columns, transform(sums.sum(axis=0) / total).tolist(), strict=True))
        resampled = transform(resampled_means(sums, counts, random_state=self.random_state))
        samples = dict(zip(columns, resampled.T, strict=True))
        for (system, name), value in values.items():
            self.metrics.setdefault(system, {})[name] = value
        for name in figures[OURS]:
            self.intervals[name] = interval(samples[OURS, name])
            baselines = {
                system: figures_of_system[name]
                for system, figures_of_system in self.metrics.items()
                if (system, name) in values and system not in (OURS, *HEADS)
            }
            baseline = best_of(name, baselines)
            low, high = interval(samples[OURS, name] - samples[baseline, name])
            difference = values[OURS, name] - values[baseline, name]
            self.differences[name] = Difference(baseline, difference, low, high)


def rating_errors(parts: Split, random_state: int, progress: Progress) -> dict[str, np.ndarray]:
    """Return r̂ − r of each held-out rating, (n,), for `BiasedMF` (ours) and for biases alone.

    Users who are not in the training part are solved for exactly from their history.
    """
    assert parts.test.ratings is not None
    callback = partial(progress, "learning ratings")
    model = BiasedMF(random_state=random_state, callback=callback).fit(parts.train)
    predicted = {OURS: _model_ratings(model, parts), BIASES: _bias_ratings(parts)}
    return {system: ratings - parts.test.ratings for system, ratings in predicted.items()}


def stored_rating_errors(
    parts: Split, factors: RatingFactors, progress: Progress
) -> dict[str, np.ndarray]:
    """Return r̂ − r of each held-out rating, (n,), for a stored model and for biases alone."""
    assert parts.test.ratings is not None
    is_judged = np.isin(parts.history.users, parts.test.users)
    users = _solved_users(factors, parts.history.take(is_judged))
    predicted = {OURS: _predicted(factors, *users, parts.test), BIASES: _bias_ratings(parts)}
    return {system: ratings - parts.test.ratings for system, ratings in predicted.items()}


def _model_ratings(model: BiasedMF, parts: Split) -> np.ndarray:
    biases, embeddings = model.user_biases_, model.user_embeddings_
    if parts.history is not parts.train:
        biases, embeddings = _solved_users(model.factors_, parts.history)
    return _predicted(model.factors_, biases, embeddings, parts.test)


def _predicted(
    factors: RatingFactors, biases: np.ndarray, embeddings: np.ndarray, test: Interactions
) -> np.ndarray:
    """Return the ratings of the pairs of a test, (n,). biases, embeddings: of all users."""
    users, items = test.users, test.items
    blocks = [
        factors.predict(embeddings[users[span]], biases[users[span]], items[span])
        for span in _spans(len(users))
    ]
    return np.concatenate(blocks)


def _solved_users(factors: RatingFactors, history: Interactions) -> tuple[np.ndarray, np.ndarray]:
    """Solve for the biases (n_users,) and embeddings (n_users, d) of users with a history; zeros
    for the others.
    """
    assert history.ratings is not None
    n_users = len(history.user_ids)
    biases = np.zeros(n_users)
    embeddings = np.zeros((n_users, factors.item_embeddings.shape[1]))
    users = np.unique(history.users)
    starts = np.searchsorted(history.users, users, "left")
    ends = np.searchsorted(history.users, users, "right")
    for user, start, end in zip(users, starts, ends, strict=True):
        biases[user], embeddings[user] = factors.fold_in(
            history.items[start:end], history.ratings[start:end]
        )
    return biases, embeddings


def _spans(n_pairs: int) -> list[slice]:
    return [slice(start, start + MAX_PAIRS) for start in range(0, n_pairs, MAX_PAIRS)]


def _bias_ratings(parts: Split) -> np.ndarray:
    """Predict μ + bᵢ + bᵤ within the scale, with bᵢ = Σ (r − μ) / (25 + nᵢ) and
    bᵤ = Σ (r − μ − bᵢ) / (10 + nᵤ).

    Koren 2010, "Factor in the neighbors", section 2.1.
    """
    train, history, test = parts.train, parts.history, parts.test
    assert train.ratings is not None
    assert history.ratings is not None
    mean = train.ratings.mean(dtype=float)
    item_biases = _damped_means(
        train.items, train.ratings - mean, len(train.item_ids), ITEM_DAMPING
    )
    rest = history.ratings - mean - item_biases[history.items]
    user_biases = _damped_means(history.users, rest, len(history.user_ids), USER_DAMPING)
    predicted = mean + item_biases[test.items] + user_biases[test.users]
    return np.clip(predicted, *(train.scale or ends_of(train.ratings)))


def _damped_means(rows: np.ndarray, values: np.ndarray, n_rows: int, damping: float) -> np.ndarray:
    """Return the mean of the values in each row, (n_rows,), shrunk to 0 where there are few."""
    sums = np.bincount(rows, weights=values, minlength=n_rows)
    return sums / (np.bincount(rows, minlength=n_rows) + damping)
