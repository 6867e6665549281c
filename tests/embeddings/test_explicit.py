"""What only `BiasedMF` promises; the checks it shares are in test_implicit.py."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from qkvsearch.data.interactions import Interactions
from qkvsearch.embeddings.explicit import BiasedMF
from qkvsearch.embeddings.factors import RatingFactors
from qkvsearch.errors import DataError


def rmse(predicted: np.ndarray, ratings: np.ndarray) -> float:
    return float(np.sqrt(np.mean((predicted - ratings) ** 2)))


def test_finds_the_planted_tastes(planted):
    train, test = planted
    pairs = test.tocoo()
    model = BiasedMF(8, max_iter=150, reg=0.02, random_state=0).fit(train)
    biases = BiasedMF(1, init_scale=1e-9, max_iter=150, reg=0.02, random_state=0)
    biases = biases.fit(train)
    biases.user_embeddings_[:] = 0
    error = rmse(model.predict(pairs.row, pairs.col), pairs.data)
    assert error < 0.25
    assert error < 0.4 * rmse(biases.predict(pairs.row, pairs.col), pairs.data)


def test_stays_within_the_scale_seen(planted):
    train, _ = planted
    model = BiasedMF(8, random_state=0).fit(train)
    users, items = np.indices(train.shape)
    predicted = model.predict(users.ravel(), items.ravel())
    assert model.rating_range_ == (train.data.astype("f4").min(), train.data.astype("f4").max())
    assert predicted.min() >= model.rating_range_[0]
    assert predicted.max() <= model.rating_range_[1]


def test_a_user_or_item_without_ratings_is_predicted_from_the_rest(scattered):
    model = BiasedMF(4, random_state=0).fit(scattered)
    assert model.predict(3, 5)[0] == pytest.approx(model.mean_)
    assert model.predict(3, 7)[0] == pytest.approx(model.mean_ + model.item_biases_[7])


def test_a_stored_zero_is_a_rating():
    ratings = csr_matrix(([0.0, 0.0, 4.0, 4.0], ([0, 1, 0, 1], [0, 0, 1, 1])), shape=(2, 2))
    model = BiasedMF(2, random_state=0).fit(ratings)
    assert model.mean_ == 2
    assert model.predict(0, 0) < model.predict(0, 1)


def test_the_scale_of_the_ratings_does_not_matter(planted):
    """Guards against a learning rate that diverges on percentages."""
    train, _ = planted
    stars = BiasedMF(4, random_state=0).fit(train)
    percent = BiasedMF(4, random_state=0).fit(train * 20)
    users, items = train.nonzero()
    assert np.allclose(
        percent.predict(users, items), 20 * stars.predict(users, items), rtol=1e-3, atol=0.1
    )


def test_equal_ratings_are_predicted_as_they_are():
    assert np.allclose(BiasedMF(2).fit(csr_matrix(np.full((3, 3), 4.0))).predict(0, [0, 1, 2]), 4)


def test_interactions_without_ratings_say_what_to_do():
    with pytest.raises(DataError, match="use ImplicitALS"):
        BiasedMF().fit(Interactions.from_columns([1, 2], [3, 4]))


def test_a_rating_that_is_no_number_is_named_by_own_ids():
    log = Interactions.from_columns(["ann", "bob"], [10, 20], ratings=[3, np.nan])
    with pytest.raises(DataError, match="user 'bob', item 20: nan is no rating"):
        BiasedMF().fit(log)


def test_fold_in_predicts_a_newcomer_as_well_as_someone_trained(planted):
    train, test = planted
    model = BiasedMF(8, max_iter=150, reg=0.02, random_state=0).fit(train)
    known, new = [], []
    for user in range(20):
        seen, asked = train[[user]], test[[user]]
        bias, embedding = model.fold_in(seen.indices, seen.data)
        new.append(model.factors_.predict(embedding, bias, asked.indices) - asked.data)
        known.append(model.predict(user, asked.indices) - asked.data)
    assert rmse(np.concatenate(new), 0) < 1.2 * rmse(np.concatenate(known), 0)


def test_fold_in_is_the_ridge_solution(scattered):
    factors = BiasedMF(4, random_state=0).fit(scattered).factors_
    items, ratings = np.array([1, 4, 9]), np.array([2.0, 1.0, 0.5])
    bias, embedding = factors.fold_in(items, ratings)

    def gradient_is_zero(step: float) -> bool:
        def loss(b: float, p: np.ndarray) -> float:
            offset = factors.mean + factors.item_biases[items] + b
            errors = ratings - offset - factors.item_embeddings[items].astype(float) @ p
            return float((errors**2).sum() + factors.reg * 3 * (b**2 + (p**2).sum()))

        directions = np.eye(5) * step
        return all(loss(bias + d[0], embedding + d[1:]) > loss(bias, embedding) for d in directions)

    assert gradient_is_zero(1e-3)
    assert gradient_is_zero(-1e-3)


def test_fold_in_of_nothing_and_of_nonsense(scattered):
    model = BiasedMF(4, random_state=0).fit(scattered)
    bias, embedding = model.fold_in([], [])
    assert bias == 0
    assert not embedding.any()
    with pytest.raises(DataError, match="nan of history item 0"):
        model.fold_in([1], [np.nan])


def test_factors_by_hand():
    factors = RatingFactors(np.zeros(2), np.zeros((2, 1)), mean=3.0, lowest=1.0, highest=5.0, reg=1)
    bias, embedding = factors.fold_in([0, 1], [5.0, 5.0])
    # The embedding can do nothing, and the bias is Σ(r − mean) / (h + reg·h).
    assert bias == pytest.approx(1.0)
    assert embedding == pytest.approx([0.0])
    assert factors.predict(embedding, 9.0, [0]) == [5.0]


def test_defaults_on_movielens(movielens):
    """A ceiling a little above what was measured."""
    train, held_out = movielens
    pairs = held_out.tocoo()
    model = BiasedMF(random_state=0).fit(train)
    assert rmse(model.predict(pairs.row, pairs.col), pairs.data) < 0.915
