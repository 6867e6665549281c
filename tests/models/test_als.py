"""What only `ImplicitALS` promises; the checks it shares are in tests/contract."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_matrix

from qkvsearch.errors import DataError, QkvError, UnknownIdError
from qkvsearch.models.als_training import MAX_GATHERED
from qkvsearch.models.confidences import Feedback, rating_confidences
from qkvsearch.models.estimators import ImplicitALS
from qkvsearch.models.user_vectors import ImplicitFactors
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.ratings import infer_scale


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


@pytest.fixture(scope="module")
def much_met() -> csr_matrix:
    """Confidences of people, their number odd, who all met the first of four items."""
    rng = np.random.default_rng(0)
    met = (rng.random((MAX_GATHERED + 7, 4)) < 0.4).astype(float)
    met[:, 0] = rng.uniform(0.5, 2, len(met))
    return csr_matrix(met)


class TestImplicitALS:
    @pytest.mark.parametrize("nu", [0.0, 0.5, 1.0])
    def test_converges_to_the_normal_equations(self, scattered, nu):
        model = ImplicitALS(
            n_components=5, max_iter=500, cg_steps=20, alpha0=0.1, reg=0.05, nu=nu, random_state=0
        ).fit(scattered)
        expected = np.array([best_user(model, c) for c in scattered.toarray().astype(np.float64)])
        assert np.abs(model.user_embeddings_ - expected).max() < 1e-3
        assert np.abs(model.fold_in(scattered) - expected).max() < 1e-6

    @pytest.mark.parametrize("n_components", [1, 3, 4, 7])
    def test_any_number_of_components(self, scattered, n_components):
        """Guards the kernel's loops over rows in fours, what is left over, and the padding."""
        before, after = (
            ImplicitALS(n_components, max_iter=n, cg_steps=30, random_state=0).fit(scattered)
            for n in (2, 3)
        )
        confidences = scattered.toarray().astype(np.float64)
        expected = np.array([best_user(before, c) for c in confidences])
        assert np.allclose(after.user_embeddings_, expected, atol=1e-4)

    def test_a_history_longer_than_what_is_gathered_at_once(self, much_met):
        """By the items' half of the last iteration: all met the first item."""
        settings = {"cg_steps": 20, "alpha0": 0.1, "reg": 0.01, "random_state": 0}
        model = ImplicitALS(3, max_iter=4, **settings).fit(much_met)
        users, c = model.user_embeddings_.astype(np.float64), much_met[:, [0]].toarray()
        ridge = model.reg_ * (len(users) + model.alpha0_ * len(users))
        matrix = users.T @ ((c + model.alpha0_) * users) + ridge * np.eye(3)
        expected = np.linalg.solve(matrix, users.T @ c[:, 0])
        assert np.allclose(model.item_embeddings_[0], expected, rtol=1e-3)

    @pytest.mark.slow
    def test_many_components_over_a_history_longer_than_what_is_gathered(self, much_met):
        fits = (ImplicitALS(130, max_iter=n, random_state=0).fit(much_met) for n in (1, 2, 3))
        losses = [objective(fitted, much_met) for fitted in fits]
        assert losses[0] > losses[1] > losses[2]

    @pytest.mark.parametrize("n_components", [8, 16])
    def test_twice_as_many_steps_as_components_solve_what_is_badly_conditioned(self, n_components):
        """As conjugate directions do; steepest descent is then still a tenth off."""
        rng = np.random.default_rng(0)
        c = (rng.random((40, 30)) < 0.4) * 10.0 ** rng.uniform(-1, 1, (40, 30))
        settings = {"cg_steps": 2 * n_components, "alpha0": 0.05, "reg": 1e-3, "nu": 0.0}
        before, after = (
            ImplicitALS(n_components, max_iter=n, random_state=0, **settings).fit(csr_matrix(c))
            for n in (1, 2)
        )
        expected = np.array([best_user(before, row) for row in c])
        error = np.linalg.norm(after.user_embeddings_ - expected) / np.linalg.norm(expected)
        assert error < 1e-4

    @pytest.mark.parametrize(
        "n_components",
        [130, pytest.param(384, marks=pytest.mark.slow)],  # compiled anew
    )
    def test_many_components_end_at_the_exact_solution(self, scattered, n_components):
        """By the users' half of the last iteration; 130 leaves padding."""
        settings = {"cg_steps": 20, "alpha0": 0.1, "reg": 0.05, "random_state": 0}
        before, after = (
            ImplicitALS(n_components, max_iter=n, **settings).fit(scattered) for n in (20, 21)
        )
        confidences = scattered.toarray().astype(np.float64)
        expected = np.array([best_user(before, c) for c in confidences])
        assert after.user_embeddings_.shape == (40, n_components)
        assert np.allclose(after.user_embeddings_, expected, atol=1e-3)
        assert np.abs(expected).max() > 0.05

    @pytest.mark.parametrize(
        "n_components",
        [8, 130, pytest.param(384, marks=pytest.mark.slow)],  # compiled anew
    )
    def test_objective_falls_with_every_iteration(self, scattered, n_components):
        losses = [
            objective(
                ImplicitALS(n_components, max_iter=n, random_state=0).fit(scattered), scattered
            )
            for n in range(1, 9)
        ]
        assert all(after < before for before, after in pairwise(losses))

    def test_many_components_give_the_same_bits_by_one_thread_and_by_two(self, scattered):
        one, two = (ImplicitALS(130, n_threads=n, random_state=0).fit(scattered) for n in (1, 2))
        assert np.array_equal(one.user_embeddings_, two.user_embeddings_)
        assert np.array_equal(one.item_embeddings_, two.item_embeddings_)

    @pytest.mark.parametrize(
        ("settings", "weight"),
        [
            ({}, 1e30),
            ({"alpha0": 1e30}, 1),
            ({"nu": 20}, 1),
            ({"nu": 400}, 1),
            ({"init_scale": 1e25}, 1),
        ],
    )
    def test_numbers_too_large_for_32_bits_are_refused_and_not_returned_as_nan(
        self, scattered, settings, weight
    ):
        with pytest.raises(DataError, match="smaller confidences"):
            ImplicitALS(8, random_state=0, **settings).fit(scattered * np.float32(weight))

    def test_equal_confidences_are_kept_once_and_count_the_same(self, scattered):
        """One confidence for all pairs, or one for each where a single one differs by a hair."""
        equal = scattered.sign() * np.float32(0.5)
        almost = equal.copy()
        almost.data[0] *= np.float32(1.00001)
        for n_components in (8, 130):
            found = [
                ImplicitALS(n_components, random_state=0).fit(matrix).item_embeddings_
                for matrix in (equal, almost)
            ]
            assert not np.array_equal(*found)
            assert np.allclose(*found, atol=1e-3)

    def test_a_row_or_column_of_nothing_changes_nothing(self, checkerboard):
        small = ImplicitALS(3, max_iter=60, random_state=0).fit(checkerboard)
        wide = csr_matrix(checkerboard)
        wide.resize((20, 50))
        large = ImplicitALS(3, max_iter=60, random_state=0).fit(wide)
        assert (large.alpha0_, large.reg_) == (small.alpha0_, small.reg_)
        scores = [m.user_embeddings_[:12] @ m.item_embeddings_[:10].T for m in (small, large)]
        assert np.allclose(*scores, atol=1e-3)

    def test_the_scale_of_the_confidences_hardly_matters(self, scattered):
        """Guards against an alpha0 and a reg chosen on ones, which flattened squared ratings."""
        plain = ImplicitALS(8, max_iter=50, random_state=0).fit(scattered)
        expected = plain.user_embeddings_ @ plain.item_embeddings_.T
        for factor in (1e-4, 0.3, 40):
            scaled = ImplicitALS(8, max_iter=50, random_state=0).fit(scattered * factor)
            assert scaled.alpha0_ == pytest.approx(factor * plain.alpha0_, rel=1e-5)
            scores = scaled.user_embeddings_ @ scaled.item_embeddings_.T
            assert np.corrcoef(scores.ravel(), expected.ravel())[0, 1] > 0.97
            assert 0.9 < np.linalg.norm(scores) / np.linalg.norm(expected) < 1.1

    def test_auto_by_hand(self):
        """The formulas of the docstring; in a dense set α₀ is the mean confidence."""
        sparse = csr_matrix(np.eye(100, dtype=np.float32))
        model = ImplicitALS(2, random_state=0).fit(sparse)
        assert model.alpha0_ == pytest.approx(0.1)
        assert model.reg_ == pytest.approx(0.2 / 10 ** (2 / 3))
        dense = ImplicitALS(2, random_state=0).fit(csr_matrix(np.full((30, 20), 0.5)))
        assert dense.alpha0_ == pytest.approx(0.5)
        assert dense.reg_ == pytest.approx(0.2 / 20 ** (2 / 3) * 2 * 0.5 / 1.5)

    def test_defaults_on_small_dense_data(self):
        """The bundled films as `build` weighs them; NDCG@20 was 0.45 with formulas made on ones."""
        path = Path(__file__).parents[2] / "datasets" / "ratings.csv"
        table = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
        users, items = (np.unique(table[n], return_inverse=True)[1] for n in ("user", "movie"))
        values = rating_confidences(table["rating"], len(table), infer_scale(table["rating"]))
        apart = np.random.default_rng(2).random(len(table)) < 0.2
        shape = users.max() + 1, items.max() + 1
        train, held_out = (
            csr_matrix((values[part], (users[part], items[part])), shape=shape)
            for part in (~apart, apart & (values > 0.5))
        )
        held_out.data[:] = 1
        model = ImplicitALS(random_state=0).fit(train)
        assert ndcg(model.user_embeddings_ @ model.item_embeddings_.T, train, held_out) > 0.49

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
        with pytest.raises(DataError, match="2 items and 1 value"):
            model.fold_in([1, 2], [1.0])
        with pytest.raises(DataError, match="history item 1"):
            model.fold_in([1, 2], [1.0, -1.0])
        with pytest.raises(DataError, match="3 columns, the model 30 items"):
            model.fold_in(csr_matrix((2, 3)))

    def test_ratings_and_weights_of_interactions_are_confidences(self):
        users, items = ["a", "a", "b", "b"], ["x", "y", "x", "z"]
        weights = Interactions.from_columns(users, items, weights=[1, 9, 2, 4])
        ratings = Interactions.from_columns(users, items, [5, 1, 4, 3], scale=(1, 5))
        for log in (weights, ratings):
            confidences = Feedback.of(log).confidences(log.items, log.ratings, log.weights)
            expected = ImplicitALS(2, random_state=0).fit(log.matrix(confidences))
            model = ImplicitALS(2, random_state=0).fit(log)
            assert np.array_equal(model.item_embeddings_, expected.item_embeddings_)

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


def test_damaged_factors_are_an_error_of_ours():
    gram = np.zeros((2, 2))
    factors = ImplicitFactors(np.zeros((3, 2)), gram, alpha0=1.0, reg=0.0, nu=1.0, n_items=3)
    with pytest.raises(QkvError, match="qkvsearch repair"):
        factors.fold_in([0, 1])
    with pytest.raises(QkvError, match="qkvsearch repair"):
        factors.fold_in_many(csr_matrix(np.ones((1, 3))))
