"""What both collaborative models promise, and what only `ImplicitALS` does."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from qkvsearch.data.interactions import Interactions
from qkvsearch.embeddings.explicit import BiasedMF
from qkvsearch.embeddings.factors import ImplicitFactors
from qkvsearch.embeddings.implicit import ImplicitALS
from qkvsearch.errors import DataError, UnknownIdError

MODELS = [ImplicitALS, BiasedMF]


@pytest.fixture(params=MODELS, ids=lambda model: model.__name__)
def model(request: pytest.FixtureRequest) -> Any:
    return request.param(n_components=4, random_state=0)


class TestEveryModel:
    """Checks that hold for any collaborative model."""

    def test_clone_and_parameters(self, model):
        copy = clone(model.set_params(n_components=3))
        assert copy.get_params() == model.get_params()
        assert copy.get_params()["n_components"] == 3

    def test_fit_returns_self_and_float32_embeddings(self, model, scattered):
        assert model.fit(scattered) is model
        assert model.user_embeddings_.shape == (40, 4)
        assert model.item_embeddings_.shape == (30, 4)
        assert model.user_embeddings_.dtype == model.item_embeddings_.dtype == np.float32

    def test_same_random_state_same_bits(self, model, scattered):
        first, second = clone(model).fit(scattered), clone(model).fit(scattered)
        assert first.user_embeddings_.tobytes() == second.user_embeddings_.tobytes()
        assert first.item_embeddings_.tobytes() == second.item_embeddings_.tobytes()
        other = clone(model).set_params(random_state=1).fit(scattered)
        assert not np.array_equal(other.item_embeddings_, first.item_embeddings_)

    def test_any_sparse_format_gives_the_same_and_stays_as_it_was(self, model, scattered):
        pairs = scattered.tocoo()
        halves = (np.tile(pairs.data / 2, 2), (np.tile(pairs.row, 2), np.tile(pairs.col, 2)))
        repeated = coo_matrix(halves, shape=scattered.shape)
        before = scattered.copy()
        expected = clone(model).fit(scattered).item_embeddings_
        for matrix in (scattered.tocsc(), scattered.astype(np.float64), repeated):
            assert np.allclose(clone(model).fit(matrix).item_embeddings_, expected, atol=1e-5)
        assert (scattered != before).nnz == 0

    def test_no_interactions_no_embedding(self, model, scattered):
        model.fit(scattered)
        assert not model.user_embeddings_[3].any()
        assert not model.item_embeddings_[5].any()
        assert np.isfinite(model.predict(3, 5)).all()

    @pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1)])
    def test_one_user_or_one_item(self, model, shape):
        model.fit(csr_matrix(np.ones(shape)))
        assert np.isfinite(model.predict(0, 0)).all()

    def test_own_ids_in_and_unknown_ones_named(self, model):
        log = Interactions.from_columns(
            ["ann", "ann", "bob", "cy"], [10, 20, 20, 30], ratings=[5, 3, 4, 1]
        )
        model.fit(log)
        by_row = clone(model).fit(log.matrix(log.ratings if isinstance(model, BiasedMF) else None))
        assert list(model.user_ids_) == ["ann", "bob", "cy"]
        assert np.array_equal(
            model.predict(["cy", "ann"], [30, "20"]), by_row.predict([2, 0], [2, 1])
        )
        with pytest.raises(UnknownIdError, match="no user 'anne'; did you mean ann"):
            model.predict("anne", 10)
        with pytest.raises(UnknownIdError, match="no item '11'"):
            model.predict("ann", 11)

    def test_rows_out_of_range_are_named(self, model, scattered):
        model.fit(scattered)
        for users, items, message in [
            (40, 0, "no user in row 40: .* rows 0 to 39"),
            (0, [2, -1], "no item in row -1: .* rows 0 to 29"),
            ("ann", 0, "no user 'ann': .* row numbers only"),
        ]:
            with pytest.raises(UnknownIdError, match=message):
                model.predict(users, items)

    def test_predict_scores_pairs_and_repeats_a_single_one(self, model, scattered):
        model.fit(scattered)
        one_by_one = [model.predict(7, item)[0] for item in (1, 2, 4)]
        assert np.allclose(model.predict(7, [1, 2, 4]), one_by_one)
        with pytest.raises(DataError, match="got 2 users and 3 items"):
            model.predict([1, 2], [1, 2, 3])

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_a_value_that_is_no_number_is_named(self, model, scattered, value):
        place = scattered.indptr[7]
        scattered.data[place] = value
        with pytest.raises(DataError, match=f"row 7, column {scattered.indices[place]}: "):
            model.fit(scattered)

    def test_what_cannot_be_fitted_says_what_can(self, model):
        with pytest.raises(DataError, match="csr_matrix"):
            model.fit(np.ones((2, 2)))
        with pytest.raises(DataError, match="nothing to learn from"):
            model.fit(csr_matrix((3, 3)))

    @pytest.mark.parametrize("name", ["n_components", "max_iter", "reg"])
    def test_a_parameter_that_cannot_work_is_named(self, model, scattered, name):
        with pytest.raises(DataError, match=name):
            model.set_params(**{name: 0}).fit(scattered)

    def test_not_fitted(self, model):
        with pytest.raises(NotFittedError):
            model.predict(0, 0)
        with pytest.raises(NotFittedError):
            model.fold_in([0], [1.0])

    def test_callback_hears_of_every_iteration(self, model, scattered):
        heard: list[tuple[int, int]] = []
        model.set_params(max_iter=3, callback=lambda *turn: heard.append(turn)).fit(scattered)
        assert heard == [(1, 3), (2, 3), (3, 3)]

    def test_factors_survive_storage(self, model, scattered):
        factors = model.fit(scattered).factors_
        arrays, numbers = factors.state()
        again = type(factors).from_state(
            {name: array.copy() for name, array in arrays.items()}, dict(numbers)
        )
        answers = (each.fold_in([1, 2], [1.0, 2.0]) for each in (again, factors))
        assert all(np.array_equal(*parts) for parts in zip(*answers, strict=True))

    def test_checkerboard(self, model, checkerboard):
        """Each user scores what their kind likes above what it does not, unseen items too."""
        users, items = np.indices(checkerboard.shape)
        like = (users + items) % 2 == 0
        liked = checkerboard if isinstance(model, ImplicitALS) else graded(like)
        scores = model.fit(liked).predict(users.ravel(), items.ravel()).reshape(like.shape)
        for row, kind in zip(scores, like, strict=True):
            assert row[kind].min() > row[~kind].max()


def graded(like: np.ndarray) -> csr_matrix:
    """5 where `like`, else 1; the diagonal is left unrated."""
    users, items = np.nonzero(~np.eye(*like.shape, dtype=bool))
    return csr_matrix((np.where(like, 5.0, 1.0)[users, items], (users, items)), shape=like.shape)


def objective(model: ImplicitALS, confidences: csr_matrix) -> float:
    """The loss as the docstring of `ImplicitALS` writes it, dense and in float64."""
    c = confidences.toarray().astype(np.float64)
    users, items = (e.astype(np.float64) for e in (model.user_embeddings_, model.item_embeddings_))
    scores = users @ items.T
    total = (c * (1 - scores) ** 2).sum() + model.alpha0_ * (scores**2).sum()
    for embeddings, axis in ((users, 1), (items, 0)):
        lengths = np.count_nonzero(c, axis=axis)
        others = np.count_nonzero(c.any(axis=axis - 1))
        strength = model.reg_ * (lengths + model.alpha0_ * others) ** model.nu
        total += (strength * (embeddings**2).sum(axis=1))[lengths > 0].sum()
    return float(total)


def best_user(model: ImplicitALS, c: np.ndarray) -> np.ndarray:
    """The minimum of the objective over one user, confidences c (n_items,), items held fixed."""
    items = model.item_embeddings_.astype(np.float64)
    n_items = np.count_nonzero(items.any(axis=1))
    ridge = model.reg_ * (np.count_nonzero(c) + model.alpha0_ * n_items) ** model.nu
    matrix = items.T @ np.diag(c + model.alpha0_) @ items + ridge * np.eye(items.shape[1])
    return np.linalg.solve(matrix, items.T @ c)


class TestImplicitALS:
    @pytest.mark.parametrize("nu", [0.0, 0.5, 1.0])
    def test_converges_to_the_normal_equations(self, scattered, nu):
        model = ImplicitALS(
            n_components=5, max_iter=500, cg_steps=20, alpha0=0.1, reg=0.05, nu=nu, random_state=0
        ).fit(scattered)
        expected = np.array([best_user(model, c) for c in scattered.toarray().astype(np.float64)])
        assert np.abs(model.user_embeddings_ - expected).max() < 1e-3
        assert np.abs(model.fold_in(scattered) - expected).max() < 1e-6

    def test_objective_falls_with_every_iteration(self, scattered):
        losses = [
            objective(ImplicitALS(8, max_iter=n, random_state=0).fit(scattered), scattered)
            for n in range(1, 9)
        ]
        assert all(after < before for before, after in pairwise(losses))

    def test_same_bits_whatever_the_threads(self, scattered):
        first, *others = (
            ImplicitALS(8, n_threads=n, random_state=0).fit(scattered) for n in (1, 2, 3)
        )
        for other in others:
            assert other.user_embeddings_.tobytes() == first.user_embeddings_.tobytes()
            assert other.item_embeddings_.tobytes() == first.item_embeddings_.tobytes()

    @pytest.mark.parametrize("n_components", [1, 3, 4, 7])
    def test_any_number_of_components(self, scattered, n_components):
        """Guards the kernel's loops over rows in fours, and what is left over."""
        before, after = (
            ImplicitALS(n_components, max_iter=n, cg_steps=30, random_state=0).fit(scattered)
            for n in (2, 3)
        )
        confidences = scattered.toarray().astype(np.float64)
        expected = np.array([best_user(before, c) for c in confidences])
        assert np.allclose(after.user_embeddings_, expected, atol=1e-4)

    def test_a_row_or_column_of_nothing_changes_nothing(self, checkerboard):
        small = ImplicitALS(3, max_iter=60, random_state=0).fit(checkerboard)
        wide = csr_matrix(checkerboard)
        wide.resize((20, 50))
        large = ImplicitALS(3, max_iter=60, random_state=0).fit(wide)
        assert (large.alpha0_, large.reg_) == (small.alpha0_, small.reg_)
        scores = [m.user_embeddings_[:12] @ m.item_embeddings_[:10].T for m in (small, large)]
        assert np.allclose(*scores, atol=1e-3)

    def test_confidence_raises_the_score(self, checkerboard):
        plain = ImplicitALS(4, random_state=0).fit(checkerboard).predict(0, 2)
        checkerboard[0, 2] = 20
        assert ImplicitALS(4, random_state=0).fit(checkerboard).predict(0, 2) > plain

    def test_stored_zeros_are_no_interaction(self, scattered):
        expected = ImplicitALS(4, random_state=0).fit(scattered).item_embeddings_
        zeroed = coo_matrix(scattered)
        zeroed = csr_matrix(
            ([*zeroed.data, 0.0], ([*zeroed.row, 3], [*zeroed.col, 5])), shape=scattered.shape
        )
        model = ImplicitALS(4, random_state=0).fit(zeroed)
        assert np.array_equal(model.item_embeddings_, expected)

    def test_negative_confidence_is_named(self, scattered):
        scattered.data[scattered.indptr[7]] = -1
        with pytest.raises(DataError, match=r"row 7, column \d+: -1\.0 is no confidence"):
            ImplicitALS().fit(scattered)

    def test_fold_in_finds_a_user_where_training_left_them(self, scattered):
        model = ImplicitALS(4, max_iter=100, random_state=0).fit(scattered)
        row = scattered[[8]]
        folded = model.fold_in(row.indices, row.data)
        assert np.allclose(folded, model.user_embeddings_[8], atol=1e-3)
        assert np.array_equal(model.fold_in(row)[0], folded)

    def test_fold_in_of_nobody_and_of_everything(self, scattered):
        model = ImplicitALS(4, random_state=0).fit(scattered)
        assert not model.fold_in([]).any()
        assert np.isfinite(model.fold_in(range(30))).all()

    def test_fold_in_refuses_what_it_cannot_read(self, scattered):
        model = ImplicitALS(4, random_state=0).fit(scattered)
        with pytest.raises(UnknownIdError, match="no item in row 30"):
            model.fold_in([30])
        with pytest.raises(DataError, match="2 items and 1 values"):
            model.fold_in([1, 2], [1.0])
        with pytest.raises(DataError, match="history item 1"):
            model.fold_in([1, 2], [1.0, -1.0])
        with pytest.raises(DataError, match="3 columns, the model 30 items"):
            model.fold_in(csr_matrix((2, 3)))

    def test_fold_in_by_own_ids(self):
        log = Interactions.from_columns([1, 1, 2, 2, 3], ["a", "b", "b", "c", "c"])
        model = ImplicitALS(2, random_state=0).fit(log)
        assert np.array_equal(
            model.fold_in(["c", "a"]), model.factors_.fold_in([2, 0]).astype("f4")
        )

    def test_history_vectors_add_up_to_the_score(self, scattered):
        factors = ImplicitALS(4, random_state=0).fit(scattered).factors_
        history, confidences = np.array([2, 9, 17]), np.array([1.0, 0.5, 3.0])
        parts = factors.history_vectors(history, confidences) @ factors.item_embeddings[4]
        score = factors.fold_in(history, confidences) @ factors.item_embeddings[4]
        assert np.isclose(parts.sum(), score, rtol=1e-12)

    def test_factors_by_hand(self):
        factors = ImplicitFactors(np.eye(2), np.eye(2), alpha0=0.5, reg=0.5, nu=1.0, n_items=2)
        # A = 0.5·I + 3·y₀y₀ᵀ + 0.5·(1 + 0.5·2)·I, and u = A⁻¹·3·y₀.
        assert np.allclose(factors.fold_in([0], [3.0]), [3 / 4.5, 0])

    def test_defaults_on_movielens(self, movielens):
        """NDCG@20; a floor a little below what was measured."""
        train, held_out = ((ratings > 0).astype(np.float32) for ratings in movielens)
        model = ImplicitALS(random_state=0).fit(train)
        assert ndcg(model.user_embeddings_ @ model.item_embeddings_.T, train, held_out) > 0.42


def ndcg(scores: np.ndarray, train: csr_matrix, held_out: csr_matrix, k: int = 20) -> float:
    """Mean NDCG@k over all items not in `train`, of users with an item in `held_out`."""
    scores[train.nonzero()] = -np.inf
    top = np.argsort(-scores, axis=1)[:, :k]
    hits = np.take_along_axis(held_out.toarray(), top, axis=1)
    discount = 1 / np.log2(np.arange(2, k + 2))
    relevant = np.diff(held_out.indptr)
    ideal = np.cumsum(discount)[np.minimum(relevant, k) - 1]
    return float(((hits @ discount) / ideal)[relevant > 0].mean())
