"""Intervals by resampling: what they cover, that they pair, and that nothing changes them."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from qkvsearch.evaluation import metrics
from qkvsearch.evaluation.metrics import interval, resampled_means


def test_the_spread_is_the_standard_error():
    values = np.random.default_rng(0).normal(3, 2, (400, 1))
    means = resampled_means(values, n_resamples=4000)
    assert means.mean() == pytest.approx(values.mean(), abs=0.01)
    assert means.std() == pytest.approx(values.std() / 20, rel=0.05)
    low, high = interval(means)
    assert (high - low) / 2 == pytest.approx(1.96 * values.std() / 20, rel=0.06)


def test_columns_are_of_the_same_users():
    first = np.random.default_rng(0).normal(size=(50, 1))
    means = resampled_means(np.hstack([first, first + 1]))
    assert np.ptp(means[:, 1] - means[:, 0]) == pytest.approx(0, abs=1e-12)


def test_counts_weigh_users_by_how_much_there_is_of_them():
    sums, counts = np.array([[10.0], [0.0]]), np.array([10.0, 1.0])
    means = resampled_means(sums, counts, n_resamples=500)
    assert set(np.round(means.ravel(), 6)) == {0.0, round(10 / 11, 6), 1.0}


def test_the_same_bits_whatever_the_threads_and_the_blocks(monkeypatch):
    values = np.random.default_rng(0).random((300, 7))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(resampled_means(values))
    assert np.array_equal(*found)
    monkeypatch.setattr(metrics, "MAX_DRAWS", 1 << 14)
    assert np.allclose(resampled_means(values), found[0], atol=1e-15)


def test_one_user_has_no_spread():
    assert interval(resampled_means(np.array([[0.25]]))) == (0.25, 0.25)
