"""Metrics of rankings and of predicted ratings, each with its formula, and their intervals.

A ranking is a sequence of distinct ids, best first. `grades` are the relevance of ids: from 1 on an
id is relevant, and an id without a grade is not. The metrics agree with trec_eval's. They raise
`DataError` for a ranking that has an id twice, for grades that are no finite numbers, and unless k
is a whole number, at least 1.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from qkvsearch._utils.threads import one_blas_thread
from qkvsearch._utils.validation import check_whole, displayed, random_generator, require
from qkvsearch.errors import DataError
from qkvsearch.imports import leaving_no_trace

with leaving_no_trace("sklearn.preprocessing"):
    from sklearn.preprocessing import normalize

# Confidence intervals by the bootstrap over users.
N_RESAMPLES = 1000
CONFIDENCE = 0.95
# The quantile of the normal distribution that belongs to it.
Z = 1.96
# Draws in memory at a time: 4 million, 32 MB.
MAX_DRAWS = 1 << 22
Ranked = Sequence[Any]
Grades = Mapping[Any, int]


def ndcg(ranked: Ranked, grades: Grades, k: int = 10) -> float:
    """Normalized discounted cumulative gain: the grades found, the earlier the better.

    DCG@k = Σᵣ grade(r) / log₂(r + 1) over ranks r = 1 … k, divided by that of the best possible
    ranking. Gains are linear, as in Järvelin and Kekäläinen 2002 ("Cumulated gain-based evaluation
    of IR techniques") and trec_eval, not 2^grade − 1. 0 where nothing is relevant.

    >>> round(ndcg(["b", "a"], {"a": 2, "b": 1}), 4)
    0.8597
    """
    _check(grades)
    found = _dcg([_gain(grades.get(item, 0)) for item in _first(ranked, k)])
    ideal = sorted((_gain(grade) for grade in grades.values()), reverse=True)
    best = _dcg(ideal[:k])
    return found / best if best else 0.0


def reciprocal_rank(ranked: Ranked, grades: Grades, k: int = 10) -> float:
    """1 / the rank of the first relevant item, 0 where the first k have none; its mean is MRR@k.

    Voorhees 1999, "The TREC-8 question answering track report".

    >>> reciprocal_rank(["x", "a"], {"a": 1})
    0.5
    """
    _check(grades)
    ranks = (rank for rank, item in enumerate(_first(ranked, k), 1) if grades.get(item, 0) >= 1)
    return 1 / next(ranks, math.inf)


def recall(ranked: Ranked, grades: Grades, k: int = 10) -> float:
    """|relevant among the first k| / |relevant|, 0 where nothing is relevant.

    The divisor is never k: who likes 100 items cannot reach 1 at k = 10.

    >>> recall(["x", "a"], {"a": 1, "b": 1})
    0.5
    """
    relevant = _relevant(grades)
    found = relevant.intersection(_first(ranked, k))
    return len(found) / len(relevant) if relevant else 0.0


def precision(ranked: Ranked, grades: Grades, k: int = 10) -> float:
    """|relevant among the first k| / k.

    The divisor is always k: a ranking of fewer, or someone who likes fewer, cannot reach 1.

    >>> precision(["x", "a"], {"a": 1, "b": 1}, k=4)
    0.25
    """
    return len(_relevant(grades).intersection(_first(ranked, k))) / k


def hit(ranked: Ranked, grades: Grades, k: int = 10) -> float:
    """1 where any of the first k is relevant, otherwise 0; its mean is the hit rate.

    >>> hit(["x", "a"], {"a": 1}), hit(["x", "a"], {"a": 1}, k=1)
    (1.0, 0.0)
    """
    _check(grades)
    return float(any(grades.get(item, 0) >= 1 for item in _first(ranked, k)))


def average_precision(ranked: Ranked, grades: Grades, k: int = 10) -> float:
    """Σ over the ranks r ≤ k of relevant items of precision@r, / |relevant|; its mean is MAP@k.

    Buckley and Voorhees 2000, "Evaluating evaluation measure stability". The divisor is never k,
    as in trec_eval (`map_cut`); 0 where nothing is relevant.

    >>> round(average_precision(["a", "x", "b"], {"a": 1, "b": 1, "c": 1, "d": 1}), 4)
    0.4167
    """
    relevant = _relevant(grades)
    ranks = (rank for rank, item in enumerate(_first(ranked, k), 1) if item in relevant)
    precisions = sum(number / rank for number, rank in enumerate(ranks, 1))
    return precisions / len(relevant) if relevant else 0.0


def coverage(rankings: Iterable[Ranked], n_items: int) -> float:
    """|items recommended to anyone| / |items in the catalog|.

    Ge, Delgado-Battenfeld and Jannach 2010, "Beyond accuracy", section 2.

    >>> coverage([["a", "b"], ["b"]], n_items=4)
    0.5
    """
    return len({item for ranked in rankings for item in ranked}) / n_items if n_items else 0.0


def novelty(ranked: Ranked, shares: Mapping[Any, float] | Sequence[float], k: int = 10) -> float:
    """Mean over the first k of −log₂ p(i), with p(i) the share of users who know item i: how many
    bits of surprise a hit carries. 0 for an empty ranking.

    Zhou et al. 2010, "Solving the apparent diversity-accuracy dilemma of recommender systems".

    >>> novelty(["a", "b"], {"a": 0.5, "b": 0.125})
    2.0
    """
    known_by = [shares[item] for item in _first(ranked, k)]
    if not all(0 < share <= 1 for share in known_by):
        raise DataError(f"a share is above 0 and at most 1, not {min(known_by)}")
    return fmean(-math.log2(share) for share in known_by) if known_by else 0.0


def diversity(rankings: Sequence[Sequence[int]], vectors: csr_matrix, k: int = 10) -> np.ndarray:
    """Of each ranking, 1 − the mean cosine of the pairs among its first k; 0 where there is no
    pair: (n_rankings,).

    Smyth and McClave 2001, "Similarity vs. diversity". Rankings of rows of `vectors` (n_items, d).
    A row of zeros is like no other.

    >>> diversity([[0, 1, 2]], csr_matrix([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0]])).round(3)
    array([0.598])
    """
    lists = [np.asarray(ranked[:k], dtype=np.int64) for ranked in rankings]
    lengths = np.array([len(ranked) for ranked in lists], dtype=np.int64)
    unit = normalize(vectors.astype(np.float64))
    own = np.asarray(unit.power(2).sum(axis=1)).ravel()
    # The square of a sum of unit vectors is the sum of the cosines of all pairs, both ways.
    cosines = [np.square(unit[each].sum(axis=0)).sum() - own[each].sum() for each in lists]
    n_pairs = lengths * (lengths - 1)
    return np.where(n_pairs > 0, 1 - np.array(cosines) / np.maximum(n_pairs, 1), 0)


def _first(ranked: Ranked, k: int) -> Sequence[Any]:
    """Return the first k ids of a ranking. Raises `DataError` if one of them is there twice."""
    check_whole("k", k)
    is_list = hasattr(ranked, "__getitem__") and not isinstance(ranked, str | bytes | Mapping)
    require(is_list and getattr(ranked, "ndim", 1) == 1, "ranked", ranked, "a list of ids")
    first = list(ranked[:k])
    twice = [item for item, count in Counter(first).items() if count > 1]
    if twice:
        raise DataError(f"a ranking has each id once, and this one has {displayed(twice[0])} twice")
    return first


def _check(grades: Grades) -> None:
    """Raise `DataError` unless these are finite numbers by id."""
    require(isinstance(grades, Mapping), "grades", grades, "a mapping from ids to grades")
    for item, grade in grades.items():
        try:
            is_grade = math.isfinite(grade)
        except (TypeError, OverflowError):
            is_grade = False
        if not is_grade:
            raise DataError(
                f"`grades`: a grade is a finite number, and that of {displayed(item)} is "
                f"{displayed(grade)}"
            )


def _relevant(grades: Grades) -> set[Any]:
    _check(grades)
    return {item for item, grade in grades.items() if grade >= 1}


def _gain(grade: int) -> int:
    """Grades below 0, which TREC gives to spam, gain nothing and cost nothing."""
    return max(grade, 0)


def _dcg(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


# --- confidence intervals ---


def resampled_means(
    sums: np.ndarray,
    counts: np.ndarray | None = None,
    *,
    n_resamples: int = N_RESAMPLES,
    random_state: Any = 0,
) -> np.ndarray:
    """Compute the means of m metrics over resampled users, (n_resamples, m).

    sums: (n_users, m), each user's contribution to each metric. counts: (n_users,), how many values
    it adds up, 1 by default. One resample draws n_users users with replacement, and its means are
    Σ sums / Σ counts over them. All metrics use the same draws, so that differences between columns
    are paired. The result depends on `random_state` alone, not on the number of threads.

    Efron 1979, "Bootstrap methods: another look at the jackknife".

    >>> resampled_means(np.array([[0.0], [1.0]]), n_resamples=4, random_state=1).ravel().tolist()
    [0.5, 1.0, 0.0, 1.0]
    """
    rng = random_generator(random_state)
    check_whole("n_resamples", n_resamples)
    n = len(sums)
    if not n:
        raise DataError("there is nobody to draw: `sums` has no rows")
    counts = np.ones(n) if counts is None else np.asarray(counts)
    if counts.shape != (n,):
        raise DataError(f"`counts` has one number for each of {n:,} users, not {counts.shape}")
    table = np.column_stack([sums, counts]).astype(np.float64)
    batch_size = max(1, MAX_DRAWS // n)
    totals = np.empty((n_resamples, table.shape[1]))
    # One BLAS thread, so that the order of a sum does not depend on the number of threads.
    with one_blas_thread():
        for start in range(0, n_resamples, batch_size):
            size = min(batch_size, n_resamples - start)
            drawn = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
            times = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
            totals[start : start + size] = times.astype(np.float64) @ table
    return totals[:, :-1] / totals[:, -1:]


def interval(samples: np.ndarray) -> tuple[float, float]:
    """Return the percentile interval: the 2.5th and the 97.5th percentile of `samples`.

    Efron and Tibshirani 1993, "An introduction to the bootstrap", section 13.3.

    >>> low, high = interval(np.arange(1001))
    >>> round(low), round(high)
    (25, 975)
    """
    if not np.size(samples):
        raise DataError("there are no `samples` to take an interval of")
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(samples, [tail, 1 - tail])
    return float(low), float(high)


def wilson(n_hits: int, n: int) -> tuple[float, float]:
    """Return the 95% interval of a share, n_hits of n. Wilson 1927, "Probable inference".

    >>> [round(end, 3) for end in wilson(8, 10)]
    [0.49, 0.943]
    """
    share = n_hits / n
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    # Rounding errors would leave a share of 0 or 1 outside its interval.
    return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))
