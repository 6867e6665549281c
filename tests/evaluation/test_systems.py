"""Baselines against their definitions, written out with dense matrices."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from qkvsearch.evaluation import systems
from qkvsearch.evaluation.systems import BASELINES, EASE, ItemKNN, Popularity

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
    monkeypatch.setattr(systems, "MAX_BLOCK", 7 * scattered.shape[1])
    assert np.allclose(baseline().fit(scattered).scores(scattered), whole, atol=1e-6)


def test_a_block_has_as_many_rows_as_fit_and_at_least_one(monkeypatch):
    assert systems.spans(10) == [slice(0, 10)]
    monkeypatch.setattr(systems, "MAX_BLOCK", 49)
    assert systems.spans(10) == [slice(0, 4), slice(4, 8), slice(8, 10)]
    monkeypatch.setattr(systems, "MAX_BLOCK", 2)
    assert systems.spans(3) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert systems.spans(0) == []


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


def test_equally_near_neighbours_all_count_while_there_is_room(monkeypatch):
    """Ten items that the same two users met are all as near to one another."""
    alike = csr_matrix(np.repeat([[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]], 2, axis=0), dtype=np.float32)
    whole = ItemKNN(n_neighbors=3).fit(alike)
    assert whole.similarities_.nnz == 10 * 9
    assert whole.left_out_ == ""
    monkeypatch.setattr(systems, "MAX_NEIGHBORS", 5 * alike.shape[1])
    some = ItemKNN(n_neighbors=3).fit(alike)
    of_first, of_last = (some.similarities_[:, item].nonzero()[0].tolist() for item in (0, 9))
    assert (of_first, of_last) == ([1, 2, 3, 4, 5], [0, 1, 2, 3, 4])
    assert some.left_out_ == "40 neighbours as near as others that are kept"
    monkeypatch.setattr(systems, "MAX_NEIGHBORS", 0)
    assert ItemKNN(n_neighbors=3).fit(alike).similarities_.nnz == 10 * 3


def test_nearer_neighbours_stay_before_equal_ones(monkeypatch):
    monkeypatch.setattr(systems, "MAX_NEIGHBORS", 0)
    rows = [[1, 1, 1, 1, 1], [1, 0, 0, 0, 1]]
    found = ItemKNN(n_neighbors=2).fit(csr_matrix(rows, dtype=np.float32))
    assert found.similarities_[:, 0].nonzero()[0].tolist() == [1, 4]


def test_ease_of_many_items_is_of_those_that_most_users_met(scattered, monkeypatch):
    met = scattered.getnnz(axis=0)
    popular = np.sort(np.argsort(-met, kind="stable")[:12])
    alone = EASE(reg=400 * scattered.data.mean() / scattered[:, popular].data.mean())
    expected = alone.fit(scattered[:, popular]).scores(scattered[:, popular])
    assert alone.left_out_ == ""
    monkeypatch.setattr(systems, "MAX_EASE_ITEMS", 12)
    some = EASE().fit(scattered)
    assert some.left_out_.startswith("17 of 29 items, all but the 12 that most users met")
    scores = some.scores(scattered)
    likes_some = np.asarray(scattered[:, popular].sum(axis=1)).ravel() > 0
    np.testing.assert_allclose(scores[likes_some][:, popular], expected[likes_some], atol=1e-6)
    others = np.setdiff1d(np.arange(30), popular)
    assert not scores[likes_some][:, others].any()


def test_items_that_nobody_met_do_not_count_for_ease(scattered, monkeypatch):
    monkeypatch.setattr(systems, "MAX_EASE_ITEMS", 29)  # of 30 columns
    fitted = EASE().fit(scattered)
    assert fitted.left_out_ == ""
    scores = fitted.scores(scattered)
    assert (scores[scattered.getnnz(axis=1) > 0, 5] == 0).all()
