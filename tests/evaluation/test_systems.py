"""Baselines against their definitions, written out with dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from qkvsearch.evaluation import systems
from qkvsearch.evaluation.systems import BASELINES, EASE, ItemKNN, Popularity, TooLargeError

every = pytest.mark.parametrize("baseline", BASELINES.values(), ids=BASELINES)


@every
def test_the_pattern_of_a_checkerboard_is_found(checkerboard, baseline):
    scores = baseline().fit(checkerboard).scores(checkerboard)
    assert scores.shape == checkerboard.shape
    for user, own in enumerate(scores):
        fellows = own[user % 2 :: 2]
        if baseline is not Popularity:
            assert fellows.min() > own[1 - user % 2 :: 2].max(), user


@every
def test_blocks_of_items_change_nothing(scattered, baseline, monkeypatch):
    whole = baseline().fit(scattered).scores(scattered)
    monkeypatch.setattr(systems, "PRODUCTS_AT_ONCE", 7 * scattered.shape[1])
    assert np.allclose(baseline().fit(scattered).scores(scattered), whole, atol=1e-6)


def test_a_block_has_as_many_rows_as_fit_and_at_least_one(monkeypatch):
    assert systems.spans(10) == [slice(0, 10)]
    monkeypatch.setattr(systems, "PRODUCTS_AT_ONCE", 49)
    assert systems.spans(10) == [slice(0, 4), slice(4, 8), slice(8, 10)]
    monkeypatch.setattr(systems, "PRODUCTS_AT_ONCE", 2)
    assert systems.spans(3) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert systems.spans(0) == []


@every
def test_one_and_two_threads_give_the_same_bits(scattered, baseline):
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(baseline().fit(scattered).scores(scattered))
    assert np.array_equal(*found)


@every
def test_the_matrix_stays_as_it_was(scattered, baseline):
    before = scattered.copy()
    baseline().fit(scattered).scores(scattered)
    assert (before != scattered).nnz == 0


def test_popularity_is_the_sum_of_confidences(scattered):
    scores = Popularity().fit(scattered).scores(scattered[:2])
    assert np.allclose(scores, scattered.toarray().sum(axis=0)[None])


def test_item_knn_by_definition(scattered):
    X = scattered.toarray().astype(float)
    norms = np.linalg.norm(X, axis=0)
    similar = X.T @ X / (np.outer(norms, norms) + 20 * scattered.data.mean())
    np.fill_diagonal(similar, 0)
    for candidate in similar:  # keeps its five nearest
        candidate[np.argsort(-candidate)[5:]] = 0
    expected = X @ similar.T
    expected[X.sum(axis=1) == 0] = -np.inf
    assert np.allclose(ItemKNN(n_neighbors=5).fit(scattered).scores(scattered), expected, atol=1e-5)


def test_ease_is_the_best_linear_map_with_a_zero_diagonal(scattered):
    X = scattered.toarray().astype(float)
    reg = 400 * scattered.data.mean()
    inverse = np.linalg.inv(X.T @ X + reg * np.eye(X.shape[1]))
    B = -inverse / np.diag(inverse)
    np.fill_diagonal(B, 0)
    expected = X @ B
    expected[X.sum(axis=1) == 0] = -np.inf
    assert np.allclose(EASE().fit(scattered).scores(scattered), expected, atol=1e-5)
    # Where it is the minimum, no step of one weight helps.
    gradient = X.T @ (X @ B - X) + reg * B
    np.fill_diagonal(gradient, 0)
    assert np.abs(gradient).max() < 1e-8


def test_who_likes_nothing_is_recommended_nothing(scattered):
    nobody = csr_matrix((1, scattered.shape[1]), dtype=np.float32)
    for baseline in (ItemKNN, EASE):
        assert (baseline().fit(scattered).scores(nobody) == -np.inf).all()


def test_ease_refuses_what_would_not_fit(scattered, monkeypatch):
    monkeypatch.setattr(systems, "MOST_ITEMS_OF_EASE", 28)
    with pytest.raises(TooLargeError, match=r"29 items have interactions.*28 at most"):
        EASE().fit(scattered)


def test_items_that_nobody_met_do_not_count_for_ease(scattered, monkeypatch):
    monkeypatch.setattr(systems, "MOST_ITEMS_OF_EASE", 29)  # of 30 columns
    scores = EASE().fit(scattered).scores(scattered)
    assert (scores[scattered.getnnz(axis=1) > 0, 5] == 0).all()
