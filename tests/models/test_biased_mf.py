"""What only `BiasedMF` promises; the checks it shares are in tests/contract."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from qkvsearch.errors import DataError
from qkvsearch.models.estimators import BiasedMF
from qkvsearch.models.sgd import Grid, Penalties
from qkvsearch.models.user_vectors import RatingFactors
from qkvsearch.tables.interactions import Interactions


def rmse(predicted: np.ndarray, ratings: np.ndarray) -> float:
    return float(np.sqrt(np.mean((predicted - ratings) ** 2)))


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
    log = Interactions.from_columns(["ann", "bob"], [10, 20], ratings=[3, 4])
    log = replace(log, ratings=np.float32([3, np.inf]))
    with pytest.raises(DataError, match="user 'bob', item 20: inf is no rating"):
        BiasedMF().fit(log)


def test_pairs_without_a_rating_are_left_out_and_keep_their_ids():
    columns = ["ann", "ann", "bob", "cy"], [10, 20, 20, 30]
    some = Interactions.from_columns(*columns, ratings=[5, 2, 4, np.nan], times=[1, 2, 3, 4])
    model = BiasedMF(2, random_state=0).fit(some)
    rated = csr_matrix(([5.0, 2.0, 4.0], ([0, 0, 1], [0, 1, 1])), shape=(3, 3))
    expected = BiasedMF(2, random_state=0).fit(rated)
    assert np.array_equal(model.user_embeddings_, expected.user_embeddings_)
    assert model.predict("cy", 30)[0] == pytest.approx(model.mean_)
    with pytest.raises(DataError, match="no user has rated"):
        BiasedMF().fit(Interactions.from_columns(*columns, ratings=[np.nan] * 4))


def many_ratings(seed: int = 0) -> csr_matrix:
    """10,000 or so ratings from 1 to 5, users and items at random."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((400, 200)) < 0.125)
    return csr_matrix((rng.integers(1, 6, len(users)).astype("f4"), (users, items)), (400, 200))


def test_one_mistyped_rating_leaves_the_others_as_they_are():
    """Guards against 1e6 among stars, which made every embedding NaN, and against a 35."""
    right, wrong = many_ratings(), many_ratings()
    pairs = right.nonzero()
    expected = BiasedMF(4, random_state=0).fit(right).predict(*pairs)
    for mistyped in (1e6, 35, -1e6):
        wrong.data[7] = mistyped
        model = BiasedMF(4, random_state=0).fit(wrong)
        assert model.rating_range_ == (1, 5)
        assert rmse(model.predict(*pairs), expected) < 0.1


@pytest.mark.parametrize("tail", ["lognormal", "pareto", "cauchy", "float32's ends"])
def test_heavy_tails_are_learnt_without_nan(tail):
    ratings, rng = many_ratings(), np.random.default_rng(1)
    ratings.data[:] = {
        "lognormal": rng.lognormal(0, 3, ratings.nnz),
        "pareto": rng.pareto(0.5, ratings.nnz),
        "cauchy": rng.standard_cauchy(ratings.nnz),
        "float32's ends": rng.choice([-3e38, 3e38], ratings.nnz),
    }[tail]
    model = BiasedMF(4, random_state=0).fit(ratings)
    predicted = model.predict(*ratings.nonzero())
    assert np.isfinite(predicted).all()
    clipped = np.clip(ratings.data.astype(float), *model.rating_range_)
    assert rmse(predicted, clipped) < clipped.std()


def test_a_learning_rate_too_high_is_halved_until_it_converges():
    ratings = many_ratings()
    model = BiasedMF(8, learning_rate=5, random_state=0).fit(ratings)
    assert model.learning_rate_ < 5
    assert rmse(model.predict(*ratings.nonzero()), ratings.data) < ratings.data.std()
    assert BiasedMF(8, random_state=0).fit(ratings).learning_rate_ == 0.045


def test_what_never_converges_says_what_to_do():
    with pytest.raises(DataError, match=r"diverges.*: lower learning_rate \(here 1000000\.0\)"):
        BiasedMF(8, learning_rate=1e6, random_state=0).fit(many_ratings())


def test_the_descent_ends_near_a_minimum_of_the_objective(planted):
    """Guards the penalties in the kernel: no user gains much by the exact solve of `fold_in`."""
    train, _ = planted
    model = BiasedMF(8, max_iter=400, reg=0.05, damping=5, bias_reg=2, random_state=0).fit(train)
    for user in range(20):
        seen = train[[user]]
        bias, embedding = model.fold_in(seen.indices, seen.data)
        assert bias == pytest.approx(model.user_biases_[user], abs=0.02)
        assert np.allclose(embedding, model.user_embeddings_[user], atol=0.02)


def test_blocks_that_threads_share_hold_every_rating_once():
    ratings = many_ratings()
    penalties = Penalties(reg=0.5, damping=3.0, bias_reg=2.0)
    for n_groups in (1, 2, 4):
        grid = Grid.of(ratings, penalties, n_groups)
        spans = [np.diff(group.starts) for group in grid.item_groups]
        whole = grid.item_groups[0]
        users = np.concatenate([np.repeat(np.arange(400), counts) for counts in spans])
        again = csr_matrix((whole.targets, (users, whole.items)), shape=ratings.shape)
        assert (again != ratings).nnz == 0
        assert sorted(np.concatenate(grid.user_groups)) == list(range(400))
        sizes = np.array([[counts[group].sum() for group in grid.user_groups] for counts in spans])
        assert sizes.max() < 1.2 * sizes.mean()
        by_group = np.split(whole.items, np.cumsum(sizes.sum(axis=1))[:-1])
        assert sorted(np.concatenate([np.unique(part) for part in by_group])) == list(range(200))
    n = np.diff(ratings.indptr)[:5]
    expected = np.column_stack([0.5 * (n + 3) / n, 2 / n])
    assert np.allclose(whole.user_shares[:5], expected, rtol=1e-6)


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
            penalty = factors.reg * (3 + factors.damping) * (p**2).sum() + factors.bias_reg * b**2
            return float((errors**2).sum() + penalty)

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
    scale = {"mean": 3.0, "lowest": 1.0, "highest": 5.0}
    factors = RatingFactors(
        np.zeros(2), np.zeros((2, 1)), **scale, reg=1, damping=7.0, bias_reg=2.0
    )
    bias, embedding = factors.fold_in([0, 1], [5.0, 5.0])
    # The embedding can do nothing, and the bias is Σ(r − mean) / (h + bias_reg).
    assert bias == pytest.approx(1.0)
    assert embedding == pytest.approx([0.0])
    assert factors.predict(embedding, 9.0, [0]) == [5.0]
    # A slip in a history counts as the end of the scale.
    assert factors.fold_in([0, 1], [5.0, 1e6])[0] == pytest.approx(1.0)
    # Both vectors 1, no bias to speak of: p = Σ(r − mean) / (h + reg·(h + damping)).
    factors = RatingFactors(
        np.zeros(2), np.ones((2, 1)), **scale, reg=0.5, damping=6.0, bias_reg=1e9
    )
    assert factors.fold_in([0, 1], [5.0, 5.0])[1] == pytest.approx([4 / 6], rel=1e-6)


def test_defaults_on_movielens(movielens):
    """A ceiling a little above what was measured."""
    train, held_out = movielens
    pairs = held_out.tocoo()
    model = BiasedMF(random_state=0).fit(train)
    assert rmse(model.predict(pairs.row, pairs.col), pairs.data) < 0.905
