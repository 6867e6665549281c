"""How good recommendations are, by interactions that the models have not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import fmean

import numpy as np
from scipy.sparse import csr_matrix

from qkvsearch.data.interactions import Interactions
from qkvsearch.embeddings.feedback import confidences, rating_scale
from qkvsearch.embeddings.implicit import ImplicitALS
from qkvsearch.errors import DataError
from qkvsearch.evaluation.metrics import coverage, ndcg, recall, reciprocal_rank
from qkvsearch.evaluation.ratings import evaluate_ratings
from qkvsearch.evaluation.report import Evaluation, Metrics, Progress
from qkvsearch.evaluation.splits import Split, split
from qkvsearch.retrieval import top_k

# Rows of users to their scores of all items (n, n_items); −∞ is never recommended.
Scorer = Callable[[np.ndarray], np.ndarray]

# Users are ranked for in blocks of so many scores, 64 MB.
SCORES_AT_ONCE = 1 << 24


def evaluate_recommend(
    log: Interactions,
    protocol: str = "random",
    *,
    k: int = 10,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """nDCG, recall, MRR and coverage at k of what `recommend` answers when it has learnt from a
    part of the log only, beside the most popular items; RMSE and MAE where there are ratings.

    Each user is ranked the whole catalogue but for their own history, never a sample of it, which
    can reverse the order of methods (Krichene and Rendle 2020, "On sampled metrics for item
    recommendation"). Relevant are the items held out, where there are ratings only those rated in
    the upper half of the scale; averages are over the users who have one. Raises `QkvError` for a
    protocol that the log cannot follow, or a log too small to judge by.

    >>> users, items = np.divmod(np.arange(12 * 8), 8)
    >>> pairs = (users + items) % 2 == 0  # everyone likes what is as even as they are
    >>> log = Interactions.from_columns(users[pairs], items[pairs])
    >>> evaluate_recommend(log, "strong", k=1).metrics["recall@1"]
    1.0
    """
    report = progress or (lambda stage, done, total: None)
    parts = split(log, protocol, random_state)
    relevant = _relevant(parts.test, _rating_scale(log))
    if not relevant:
        raise DataError("nothing to judge by: no rating held out is in the upper half of the scale")
    tastes = _tastes(parts, random_state, report)
    metrics = _ranking_figures(tastes, parts, relevant, k, report)
    baselines = {"popularity": _ranking_figures(_popularity(parts), parts, relevant, k, report)}
    rated = parts.rated()
    if len(rated.train) and len(rated.test):
        errors, baselines["biases"] = evaluate_ratings(rated, random_state, report)
        metrics |= errors
    facts = {
        "k": k,
        "random_state": random_state,
        "users": len(relevant),
        "items": len(log.item_ids),
        "train": len(parts.train),
        "test": len(parts.test),
        "users_without_history": parts.newcomers,
    }
    return Evaluation(protocol, metrics, baselines, facts)


def _relevant(test: Interactions, scale: tuple[float, float] | None) -> dict[int, dict[int, int]]:
    """Users to the held-out items that count as a hit, each of grade 1."""
    counts = np.ones(len(test), dtype=bool)
    # One rating for everything cannot tell likes from dislikes.
    if test.ratings is not None and scale is not None and scale[0] < scale[1]:
        counts = ~(test.ratings <= sum(scale) / 2)  # what was met and not rated counts
    relevant: dict[int, dict[int, int]] = {}
    for user, item in zip(test.users[counts].tolist(), test.items[counts].tolist(), strict=True):
        relevant.setdefault(user, {})[item] = 1
    return relevant


def _rating_scale(log: Interactions) -> tuple[float, float] | None:
    return None if log.ratings is None else rating_scale(log.ratings)


def _liked(log: Interactions, scale: tuple[float, float] | None) -> csr_matrix:
    """Users × items by confidence, as a build makes it."""
    return log.matrix(confidences(log.ratings, len(log), scale))


def _tastes(parts: Split, random_state: int, report: Progress) -> Scorer:
    """Scores by the exact solve on a user's history, which is how `recommend` answers."""
    scale = _rating_scale(parts.train)
    model = ImplicitALS(
        random_state=random_state, callback=lambda i, n: report("learning tastes", i, n)
    ).fit(_liked(parts.train, scale))
    histories = _liked(parts.history, scale)

    def scores(users: np.ndarray) -> np.ndarray:
        embeddings = model.fold_in(histories[users])
        scores = embeddings @ model.item_embeddings_.T
        scores[~embeddings.any(axis=1)] = -np.inf  # who likes nothing is recommended nothing
        return scores

    return scores


def _popularity(parts: Split) -> Scorer:
    """The same for everyone: how many like an item, as the sum of their confidences."""
    liked = _liked(parts.train, _rating_scale(parts.train))
    counts = np.asarray(liked.sum(axis=0)).ravel()
    return lambda users: np.tile(counts, (len(users), 1))


def _ranking_figures(
    scorer: Scorer,
    parts: Split,
    relevant: dict[int, dict[int, int]],
    k: int,
    report: Progress,
) -> Metrics:
    rankings = []
    for ranked in _rankings(scorer, parts.history, np.array([*relevant]), k):
        rankings.append(ranked)
        report("ranking", len(rankings), len(relevant))
    pairs = list(zip(rankings, relevant.values(), strict=True))
    return {
        f"ndcg@{k}": fmean(ndcg(ranked, grades, k) for ranked, grades in pairs),
        f"recall@{k}": fmean(recall(ranked, grades, k) for ranked, grades in pairs),
        f"mrr@{k}": fmean(reciprocal_rank(ranked, grades, k) for ranked, grades in pairs),
        f"coverage@{k}": coverage(rankings, len(parts.train.item_ids)),
    }


def _rankings(
    scorer: Scorer, history: Interactions, users: np.ndarray, k: int
) -> Iterator[list[int]]:
    """Each user's k best items without their history; ties go to the smaller row number."""
    met = history.matrix()
    block = max(1, SCORES_AT_ONCE // len(history.item_ids))
    for start in range(0, len(users), block):
        some = users[start : start + block]
        scores = scorer(some)
        scores[met[some].nonzero()] = -np.inf
        for row in scores:
            yield top_k(row, k, row > -np.inf).tolist()
