"""`ItemNeighbours` against plain NumPy."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse import random as random_matrix

from qkvsearch.errors import DataError
from qkvsearch.models import item_neighbours
from qkvsearch.models.estimators import ItemNeighbours
from qkvsearch.tables.interactions import Interactions


@pytest.fixture(scope="module")
def log():
    """300 users, 40 items; confidences from 1 to 5 that have no common factor."""
    matrix = random_matrix(300, 40, 0.15, "csr", np.float32, np.random.default_rng(0))
    matrix.data = (1 + 4 * matrix.data).round(2)
    return matrix


def solved(X, k, reg, dropout, user_exponent):
    """B by the docstring of `ItemNeighbours`, in NumPy."""
    X = X.toarray().astype(np.float64)
    lengths = (X > 0).sum(axis=1)
    counts = np.maximum(lengths, 1) ** -user_exponent
    counts *= lengths.sum() / (counts * lengths).sum()
    gram = X.T @ np.diag(counts) @ X
    penalty = reg * np.mean(X[X > 0] ** 2)
    weights = np.zeros_like(gram)
    for j in range(len(gram)):
        cosines = gram[j] / np.sqrt(np.diag(gram) * gram[j, j])
        cosines[j] = 0
        near = np.sort(np.argsort(-cosines, kind="stable")[:k])
        near = near[cosines[near] > 0]
        block = gram[np.ix_(near, near)]
        block = block + penalty * np.eye(len(near)) + dropout * np.diag(np.diag(block))
        weights[near, j] = np.linalg.solve(block, gram[near, j])
    return weights


@pytest.mark.parametrize("max_dense", [0, 1 << 13])
@pytest.mark.parametrize(
    ("k", "reg", "dropout", "exponent"),
    [(5, 20.0, 1.0, 0.5), (39, 0.5, 0.0, 0.0), (39, 0.5, 0.0, 1.0)],
)
def test_weights_are_those_of_the_formula(log, monkeypatch, max_dense, k, reg, dropout, exponent):
    monkeypatch.setattr(item_neighbours, "MAX_DENSE_ITEMS", max_dense)
    model = ItemNeighbours(k, reg=reg, dropout=dropout, user_exponent=exponent).fit(log)
    expected = solved(log, k, reg, dropout, exponent)
    np.testing.assert_allclose(model.weights_.matrix().toarray(), expected, atol=2e-5)
    assert model.reg_ == pytest.approx(reg * np.mean(log.data.astype(float) ** 2))


def test_all_items_as_neighbours_are_ease(log):
    gram = (log.T @ log).toarray().astype(np.float64)
    inverse = np.linalg.inv(gram + 30 * np.mean(log.data**2) * np.eye(40))
    expected = -inverse / np.diag(inverse)
    np.fill_diagonal(expected, 0)
    model = ItemNeighbours(39, reg=30.0, dropout=0.0, user_exponent=0.0).fit(log)
    connected = gram > 0  # an item without a common user is no neighbour
    np.fill_diagonal(connected, False)
    assert connected.sum() > 0.95 * 40 * 39
    weights = model.weights_.matrix().toarray()
    np.testing.assert_allclose(weights[connected], expected[connected], atol=1e-2)


@pytest.mark.parametrize("max_dense", [0, 1 << 13])
def test_threads_change_no_bit_and_confidences_no_order(log, monkeypatch, max_dense):
    monkeypatch.setattr(item_neighbours, "MAX_DENSE_ITEMS", max_dense)
    monkeypatch.setattr(item_neighbours, "BATCH", 4)
    one, four = (ItemNeighbours(7, n_threads=n).fit(log).weights_ for n in (1, 4))
    np.testing.assert_array_equal(one.values, four.values)
    np.testing.assert_array_equal(one.targets, four.targets)
    scaled = ItemNeighbours(7).fit(log * 8).weights_
    np.testing.assert_allclose(scaled.values, one.values, rtol=1e-4)


def test_bounds_leave_out_heavy_users_and_sample_popular_items(log, monkeypatch):
    monkeypatch.setattr(item_neighbours, "MAX_DENSE_ITEMS", 0)
    whole = ItemNeighbours(39, reg=1.0, dropout=0.0).fit(log).weights_.matrix().toarray()
    heavy = csr_matrix(np.vstack([log.toarray(), np.ones((1, 40))]).astype(np.float32))
    with monkeypatch.context() as bounds:
        bounds.setattr(item_neighbours, "MAX_HISTORY", 30)
        model = ItemNeighbours(39, reg=1.0, dropout=0.0).fit(heavy)
    assert np.abs(model.weights_.matrix().toarray() - whole).max() < 1e-3
    many = csr_matrix(np.tile(log.toarray(), (40, 1)))
    exact = ItemNeighbours(10).fit(many).weights_.matrix().toarray()
    monkeypatch.setattr(item_neighbours, "MAX_ENTRIES", 4_000)
    sampled = ItemNeighbours(10).fit(many).weights_.matrix().toarray()
    assert np.corrcoef(exact.ravel(), sampled.ravel())[0, 1] > 0.9


def test_all_pairs_of_few_items_are_counted_however_many(log, monkeypatch):
    exact = ItemNeighbours(7).fit(log).weights_
    monkeypatch.setattr(item_neighbours, "MAX_PAIRS", 10)
    np.testing.assert_array_equal(ItemNeighbours(7).fit(log).weights_.values, exact.values)


def test_a_long_history_tells_less_of_two_items_than_a_short_one():
    # Items 0 and 1 meet in two short histories, items 0 and 2 in two long ones.
    users = np.zeros((4, 12))
    users[:2, :2] = users[2:, 0] = users[2:, 2:] = 1
    model = ItemNeighbours(11, reg=1.0).fit(csr_matrix(users))
    alike = ItemNeighbours(11, reg=1.0, user_exponent=0.0).fit(csr_matrix(users))
    _, short, long = model.scores([0])[:3]
    assert short > alike.scores([0])[1]
    assert long < alike.scores([0])[2]


def test_addends_are_what_a_removal_changes(log):
    weights = ItemNeighbours(10).fit(log).weights_
    history, confidences = np.array([3, 8, 21]), np.array([1.0, 0.25, 3.0])
    before = weights.scores(history, confidences)
    for item in range(40):
        addends = weights.addends(history, item, confidences)
        assert addends.sum() == pytest.approx(before[item], abs=1e-6)
        for left_out in range(3):
            kept = np.arange(3) != left_out
            after = weights.scores(history[kept], confidences[kept])
            assert before[item] - after[item] == pytest.approx(addends[left_out], abs=1e-6)
    with pytest.raises(DataError, match="history item 1"):
        weights.scores([1, 2], [1.0, -1.0])


def test_an_item_without_users_and_ids_of_interactions():
    log = Interactions.from_columns(["a", "a", "b", "b"], ["x", "y", "x", "y"], item_ids=None)
    model = ItemNeighbours(reg=1.0, dropout=0.0).fit(log)
    assert model.scores(["x"]).tolist() == pytest.approx([0, 2 / 3])
    empty = ItemNeighbours().fit(csr_matrix([[1, 1, 0], [1, 0, 0]]))
    assert empty.scores([0])[2] == 0
    with pytest.raises(DataError, match="no confidence"):
        ItemNeighbours().fit(csr_matrix([[1.0, -1.0]]))
    for name, value in (("n_neighbours", 0), ("reg", 0), ("dropout", -1), ("user_exponent", 1.5)):
        with pytest.raises(DataError, match=name):
            ItemNeighbours(**{name: value}).fit(csr_matrix([[1, 1]]))
