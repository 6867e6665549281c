"""What the metrics refuse: a number above 1 that nobody would notice, or a bare error."""

import numpy as np
import pytest

from qkvsearch.errors import DataError
from qkvsearch.evaluation import metrics

RANKINGS = [
    metrics.ndcg,
    metrics.reciprocal_rank,
    metrics.recall,
    metrics.precision,
    metrics.hit,
    metrics.average_precision,
]


@pytest.mark.parametrize("metric", RANKINGS)
def test_an_id_twice_and_a_wrong_k_are_refused(metric):
    for ranked, k in ((["a", "a"], 10), (["a"], 0), (["a"], 2.5), ("a", 10)):
        with pytest.raises(DataError):
            metric(ranked, {"a": 1}, k)
    assert metric(["a", "b", "b"], {"a": 1}, 1) == 1.0
    assert metric(np.array([3, 4]), {3: 1}, 1) == 1.0


def test_resampling_says_what_is_missing():
    for sums, settings in (
        (np.zeros((0, 1)), {}),
        (np.zeros((3, 1)), {"counts": np.ones(2)}),
        (np.zeros((3, 1)), {"n_resamples": 0}),
        (np.zeros((3, 1)), {"random_state": -1}),
    ):
        with pytest.raises(DataError):
            metrics.resampled_means(sums, **settings)
    with pytest.raises(DataError):
        metrics.interval([])
    with pytest.raises(DataError):
        metrics.novelty(["a"], {"a": 0.0})


@pytest.mark.parametrize("metric", RANKINGS)
def test_a_grade_is_a_finite_number(metric):
    for grade in (float("nan"), float("inf"), -float("inf"), "2", None, [1], 10**400):
        with pytest.raises(DataError, match="grade"):
            metric(["a"], {"b": 1, "a": grade})
    for grades in (None, 5, ["a"], "a"):
        with pytest.raises(DataError, match="grades"):
            metric(["a"], grades)
    assert 0 < metric(["a"], {"a": np.float32(2)}, k=1) <= 1


@pytest.mark.parametrize("metric", RANKINGS)
def test_a_ranking_is_a_list(metric):
    for ranked in (None, 5, {"a": 1}, b"a", np.ones((2, 2)), object()):
        with pytest.raises(DataError, match="ranked"):
            metric(ranked, {"a": 1})
