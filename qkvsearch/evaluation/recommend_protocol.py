"""How good recommendations are, by interactions that the models have not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from qkvsearch._utils.progress import Progress, silent
from qkvsearch.collaborative.confidences import scale_of
from qkvsearch.collaborative.estimators import BiasedMF
from qkvsearch.data.interactions import Interactions
from qkvsearch.data.ratings import ends_of
from qkvsearch.evaluation import metrics
from qkvsearch.evaluation.bootstrap import N_RESAMPLES, interval, resampled_means
from qkvsearch.evaluation.held_out import HeldOutUsers
from qkvsearch.evaluation.results import OURS, Difference, Evaluation, Metrics, best_of
from qkvsearch.evaluation.splits import Split, split
from qkvsearch.evaluation.systems import (
    BASELINES,
    NEXT_ITEM,
    NextItems,
    Preferences,
    System,
)

# So many users are judged unless more are asked for: half of an interval is then at most 0.022,
# for figures from 0 to 1.
N_USERS = 2000

# Of a ranking and the grades of the relevant, at k.
RELEVANCE: dict[str, Callable[..., float]] = {
    "ndcg": metrics.ndcg,
    "recall": metrics.recall,
    "precision": metrics.precision,
    "hit_rate": metrics.hit,
    "mrr": metrics.reciprocal_rank,
    "map": metrics.average_precision,
}

# A bias is a mean over its ratings and as many zeros: 25 for an item, 10 for a user.
ITEM_DAMPING = 25.0
USER_DAMPING = 10.0
PAIRS_AT_ONCE = 1 << 17

# Of each user (n,) by name, and what is no mean over users.
Figures = dict[str, np.ndarray]


def evaluate_recommend(
    log: Interactions,
    protocol: str = "random",
    *,
    k: int = 10,
    users: int = N_USERS,
    settings: Mapping[str, Any] | None = None,
    keys: np.ndarray | None = None,
    next_item: bool = False,
    random_state: int = 0,
    estimator: Callable[..., Any] | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Figures at k of what `recommend` answers when it has learned from a part of the log only,
    beside the most popular items, item-kNN and EASE^R; RMSE and MAE where there are ratings.

    users: of more users with something held out so many are drawn, and rankings judged by these
    alone, while all are learned from; 0 for all. settings: parameters of `ImplicitALS` other than
    its own. keys: text vectors (n_items, t), by which items that the train part does not know find
    their place. next_item: also train and judge `NextItem`, beside the baselines, under
    leave-last-out or time (minutes; PyTorch). estimator: what learns in the place of `ImplicitALS`.

    Each user is ranked the whole catalog but for their own history, never a sample of it, which
    can reverse the order of methods (Krichene and Rendle 2020). Relevant are the items held out,
    where there are ratings only those rated in the upper half of the scale; averages are over the
    users who have one. Intervals are percentiles of 1,000 resamples of the users; differences are
    between the same users. Raises `QkvError` for a protocol that the log or `next_item` cannot
    follow, a log too small to judge by, and where PyTorch is missing.

    >>> users, items = np.divmod(np.arange(12 * 8), 8)
    >>> pairs = (users + items) % 2 == 0  # everyone likes what is as even as they are
    >>> log = Interactions.from_columns(users[pairs], items[pairs])
    >>> evaluate_recommend(log, "strong", k=1).metrics["recall@1"]
    1.0
    """
    progress = progress or silent
    if next_item:
        NextItems.check(log, protocol)
    progress("splitting the log", 0, 1)
    parts = split(log, protocol, random_state)
    held_out = HeldOutUsers.of(parts, scale_of(log), users or None, random_state)
    progress("splitting the log", 1, 1)
    ours = Preferences(
        keys,
        partial(progress, "placing items by their text"),
        estimator,
        **dict(settings or {}),
        random_state=random_state,
        callback=partial(progress, "learning preferences"),
    )
    systems: dict[str, System] = {OURS: ours}
    for name, baseline in BASELINES.items():
        systems[name] = baseline(callback=partial(progress, f"learning {name}"))
    judged = {name: (system, held_out) for name, system in systems.items()}
    if next_item:
        callback = partial(progress, "learning what comes next")
        upcoming = NextItems(random_state=random_state, callback=callback)
        judged[NEXT_ITEM] = (upcoming, held_out.in_order(parts))
    found = _Comparison(random_state)
    _add_rankings(found, judged, k, progress)
    _add_ratings(found, parts, random_state, progress)
    left_out = {name: system.left_out_ for name, system in systems.items() if system.left_out_}
    facts = {"k": k, "random_state": random_state, **_counts(held_out, parts), "left_out": left_out}
    ours_found = found.metrics.pop(OURS)
    notes = _notes(held_out, parts, left_out)
    return Evaluation(
        protocol, ours_found, found.metrics, facts, found.intervals, found.differences, notes
    )


def _counts(held_out: HeldOutUsers, parts: Split) -> dict[str, int]:
    """How much the figures rest on."""
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
    """What the figures are without."""
    found = []
    if parts.newcomers:
        found.append(f"Left out: {parts.newcomers:,} users without a history to go by.")
    if len(held_out.users) < held_out.n_eligible:
        found.append(
            f"A sample: rankings are judged by {len(held_out.users):,} of "
            f"{held_out.n_eligible:,} users, drawn at random (`users`); the intervals are as wide "
            "as so many users make them."
        )
    return found + [f"Left out of {name}: {what}." for name, what in left_out.items()]


def _add_rankings(
    found: _Comparison,
    judged: Mapping[str, tuple[System, HeldOutUsers]],
    k: int,
    progress: Progress,
) -> None:
    """Figures of the rankings of each system by its held-out users."""
    figures: dict[str, Figures] = {}
    overall: dict[str, Metrics] = {}
    for name, (system, held_out) in judged.items():
        figures[name], overall[name] = _judge(system, held_out, k, name, progress)
    progress("drawing intervals", 0, 1)
    found.add(figures, counts=None, by=lambda means: means)
    progress("drawing intervals", 1, 1)
    for name, of_all in overall.items():
        found.metrics[name] |= of_all


def _judge(
    system: System, held_out: HeldOutUsers, k: int, name: str, progress: Progress
) -> tuple[Figures, Metrics]:
    """Each user's figures, and the one that only all rankings together have."""
    n = len(held_out.users)
    system.fit(held_out.train)
    rankings = held_out.rankings(system, k, lambda done: progress(f"ranking by {name}", done, n))
    progress(f"judging {name}", 0, 1)
    pairs = list(zip(rankings, held_out.relevant, strict=True))
    figures = {
        f"{figure}@{k}": np.array([function(*pair, k) for pair in pairs])
        for figure, function in RELEVANCE.items()
    }
    n_items = held_out.train.shape[1]
    counts = np.bincount(held_out.train.indices, minlength=n_items)
    n_users = np.count_nonzero(held_out.train.getnnz(axis=1))
    # A cold item counts as one that one user knows: else it would be infinitely novel.
    shares = (np.maximum(counts, 1) / n_users).tolist()
    # Two items are as alike as their audiences, the users who know them.
    audiences = held_out.train.T.tocsr()
    audiences.data = np.ones_like(audiences.data)
    figures[f"novelty@{k}"] = np.array([metrics.novelty(ranked, shares, k) for ranked in rankings])
    figures[f"diversity@{k}"] = metrics.diversity(rankings, audiences, k)
    progress(f"judging {name}", 1, 1)
    return figures, {f"coverage@{k}": metrics.coverage(rankings, n_items)}


def _add_ratings(found: _Comparison, parts: Split, random_state: int, progress: Progress) -> None:
    """RMSE and MAE beside biases alone, where there are ratings on both sides."""
    rated = parts.rated()
    if not len(rated.train) or not len(rated.test):
        return
    errors = rating_errors(rated, random_state, progress)
    users, rows = np.unique(rated.test.users, return_inverse=True)
    counts = np.bincount(rows).astype(float)

    def sums(power: int) -> dict[str, np.ndarray]:
        return {
            system: np.bincount(rows, np.abs(of_pairs) ** power, len(users))
            for system, of_pairs in errors.items()
        }

    told = partial(progress, "drawing intervals of ratings")
    told(0, 2)
    found.add({s: {"rmse": column} for s, column in sums(2).items()}, counts, by=np.sqrt)
    told(1, 2)
    found.add({s: {"mae": column} for s, column in sums(1).items()}, counts, by=lambda mean: mean)
    told(2, 2)


class _Comparison:
    """Figures of all systems, resampled together so that their differences are paired."""

    def __init__(self, random_state: int) -> None:
        self.random_state = random_state
        self.metrics: dict[str, Metrics] = {}
        self.intervals: dict[str, tuple[float, float]] = {}
        self.differences: dict[str, Difference] = {}

    def add(
        self,
        figures: Mapping[str, Figures],
        counts: np.ndarray | None,
        by: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        """figures: by system and name, each user's part of a mean (n,), `counts` (n,) of each, 1 by
        default; the figure is that mean, turned `by` a function.
        """
        columns = [(system, name) for system, of_users in figures.items() for name in of_users]
        sums = np.column_stack([figures[system][name] for system, name in columns])
        total = len(sums) if counts is None else counts.sum()
        values = dict(zip(columns, by(sums.sum(axis=0) / total).tolist(), strict=True))
        drawn = by(resampled_means(sums, counts, random_state=self.random_state))
        samples = dict(zip(columns, drawn.T, strict=True))
        for (system, name), value in values.items():
            self.metrics.setdefault(system, {})[name] = value
        for name in figures[OURS]:
            self.intervals[name] = interval(samples[OURS, name])
            others = {s: value for (s, figure), value in values.items() if figure == name}
            others.pop(OURS)
            rival = best_of(name, others)
            low, high = interval(samples[OURS, name] - samples[rival, name])
            difference = values[OURS, name] - values[rival, name]
            self.differences[name] = Difference(rival, difference, low, high)


def rating_errors(parts: Split, random_state: int, progress: Progress) -> dict[str, np.ndarray]:
    """r̂ − r of every rating held out (n,), by `BiasedMF` (ours) and by biases alone.

    Users whom training has not seen are placed by the exact solve on their history.
    """
    assert parts.test.ratings is not None
    model = BiasedMF(
        random_state=random_state, callback=lambda i, n: progress("learning ratings", i, n)
    ).fit(parts.train)
    predicted = {OURS: _model_ratings(model, parts), "biases": _bias_ratings(parts)}
    return {system: ratings - parts.test.ratings for system, ratings in predicted.items()}


def _model_ratings(model: BiasedMF, parts: Split) -> np.ndarray:
    biases, embeddings = model.user_biases_, model.user_embeddings_
    if parts.history is not parts.train:
        biases, embeddings = _placed(model, parts.history)
    users, items = parts.test.users, parts.test.items
    blocks = [
        model.factors_.predict(embeddings[users[span]], biases[users[span]], items[span])
        for span in _spans(len(users))
    ]
    return np.concatenate(blocks)


def _placed(model: BiasedMF, history: Interactions) -> tuple[np.ndarray, np.ndarray]:
    """Biases (n_users,) and embeddings (n_users, d) of those who have a history."""
    assert history.ratings is not None
    biases = np.zeros_like(model.user_biases_)
    embeddings = np.zeros_like(model.user_embeddings_)
    users = np.unique(history.users)
    starts, ends = (np.searchsorted(history.users, users, side) for side in ("left", "right"))
    for user, start, end in zip(users, starts, ends, strict=True):
        biases[user], embeddings[user] = model.factors_.fold_in(
            history.items[start:end], history.ratings[start:end]
        )
    return biases, embeddings


def _spans(n_pairs: int) -> list[slice]:
    return [slice(start, start + PAIRS_AT_ONCE) for start in range(0, n_pairs, PAIRS_AT_ONCE)]


def _bias_ratings(parts: Split) -> np.ndarray:
    """μ + bᵢ + bᵤ within the scale, with bᵢ = Σ (r − μ) / (25 + nᵢ) and
    bᵤ = Σ (r − μ − bᵢ) / (10 + nᵤ).

    Koren 2010, "Factor in the neighbors", section 2.1.
    """
    train, history, test = parts.train, parts.history, parts.test
    assert train.ratings is not None
    assert history.ratings is not None
    mean = train.ratings.mean(dtype=float)
    of_items = _damped_means(train.items, train.ratings - mean, len(train.item_ids), ITEM_DAMPING)
    rest = history.ratings - mean - of_items[history.items]
    of_users = _damped_means(history.users, rest, len(history.user_ids), USER_DAMPING)
    predicted = mean + of_items[test.items] + of_users[test.users]
    return np.clip(predicted, *(train.scale or ends_of(train.ratings)))


def _damped_means(rows: np.ndarray, values: np.ndarray, n_rows: int, damping: float) -> np.ndarray:
    """Means (n_rows,) of the values in each row, the closer to 0 the fewer there are."""
    sums = np.bincount(rows, weights=values, minlength=n_rows)
    return sums / (np.bincount(rows, minlength=n_rows) + damping)
