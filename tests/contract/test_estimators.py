"""What every estimator promises: the rules of scikit-learn, the same bits, the obvious answer."""

import copy
import inspect

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

import qkvsearch
from qkvsearch import (
    BiasedMF,
    CooccurrenceEncoder,
    CorpusEncoder,
    ImplicitALS,
    Interactions,
    embeddings,
)
from qkvsearch.errors import DataError, UnknownIdError
from qkvsearch.models.estimators import ItemNeighbours
from qkvsearch.models.next_item import NextItem
from qkvsearch.text.learned.corpus_encoders import ContrastiveEncoder

COLLABORATIVE = [ImplicitALS, BiasedMF]
TEXT = [CorpusEncoder, CooccurrenceEncoder, ContrastiveEncoder]
ESTIMATORS = [*COLLABORATIVE, ItemNeighbours, *TEXT, NextItem]


# The parameter that is a size; by default n_components.
SIZES = {ItemNeighbours: "n_neighbours"}


def size(estimator):
    return SIZES.get(type(estimator), "n_components")


def named(model):
    return model.__name__


@pytest.fixture(params=ESTIMATORS, ids=named)
def estimator(request):
    if request.param is NextItem:
        pytest.importorskip("torch", reason="NextItem learns with torch")
    if request.param is ItemNeighbours:
        return ItemNeighbours(4)
    return request.param(n_components=4, random_state=0)


@pytest.fixture(params=COLLABORATIVE, ids=named)
def model(request):
    return request.param(n_components=4, random_state=0)


@pytest.fixture
def data(estimator, scattered):
    """Something that it learns from, enough for the work to be shared among threads."""
    rng = np.random.default_rng(0)
    if isinstance(estimator, NextItem):
        users, items = scattered.nonzero()
        return Interactions.from_columns(users, items, times=rng.permutation(len(users)))
    if not isinstance(estimator, tuple(TEXT)):
        return scattered
    return [" ".join(f"w{word}" for word in rng.zipf(1.3, 12) if word < 900) for _ in range(900)]


def part_of(data):
    if isinstance(data, Interactions):
        return data.take(data.users < 20)
    return data[: len(data) // 2] if isinstance(data, list) else data[:20]


def arrays_of(data):
    if isinstance(data, Interactions):
        return [data.users, data.items, data.times]
    return [] if isinstance(data, list) else [data.data, data.indices, data.indptr]


def learned(fitted):
    """Every array that was learned, bit for bit."""
    arrays = {name: value for name, value in vars(fitted).items() if isinstance(value, np.ndarray)}
    if isinstance(fitted, ItemNeighbours):
        arrays |= vars(fitted.weights_)
    if isinstance(fitted, tuple(TEXT)):
        arrays |= {name: getattr(fitted.encoder_, name) for name in ("vectors", "weights")}
    assert arrays
    return {name: array.tobytes() for name, array in arrays.items()}


def test_every_public_estimator_is_under_this_contract():
    modules = (qkvsearch, embeddings)
    public = [getattr(module, name) for module in modules for name in module.__all__]
    assert {each for each in public if hasattr(each, "fit")} == set(ESTIMATORS)


class TestEveryEstimator:
    def test_the_constructor_only_stores(self, estimator):
        names = list(inspect.signature(type(estimator).__init__).parameters)[1:]
        marks = {name: object() for name in names}
        made = type(estimator)(**marks)
        assert vars(made) == marks
        assert made.get_params() == marks

    def test_clone_and_set_params_give_an_unfitted_copy(self, estimator, data):
        estimator.fit(data)
        assert estimator.set_params(**{size(estimator): 3}) is estimator
        copied = clone(estimator)
        assert copied.get_params() == estimator.get_params()
        assert copied.get_params()[size(estimator)] == 3
        assert not [name for name in vars(copied) if name.endswith("_")]

    def test_an_unknown_parameter_is_refused(self, estimator):
        with pytest.raises(ValueError, match="n_componets"):
            estimator.set_params(n_componets=3)

    def test_fit_returns_self_keeps_the_parameters_and_names_what_it_learnt(self, estimator, data):
        before = dict(estimator.get_params())
        assert estimator.fit(data) is estimator
        assert estimator.get_params() == before
        added = set(vars(estimator)) - set(before)
        assert [name for name in added if not name.endswith("_")] == []

    def test_fitting_again_forgets_what_was_fitted_before(self, estimator, data):
        again = clone(estimator).fit(part_of(data)).fit(data)
        assert learned(again) == learned(clone(estimator).fit(data))

    def test_one_random_state_gives_the_same_bits_and_another_others(self, estimator, data):
        first = learned(clone(estimator).fit(data))
        assert learned(clone(estimator).fit(data)) == first
        if "random_state" in estimator.get_params():
            assert learned(clone(estimator).set_params(random_state=1).fit(data)) != first

    def test_the_bits_do_not_depend_on_the_number_of_threads(self, estimator, data):
        results = []
        for n_threads in (1, 2, 3):
            one = clone(estimator).set_params(**{size(estimator): 64})
            if "n_threads" in one.get_params():
                one.set_params(n_threads=n_threads)
            with threadpool_limits(n_threads):
                results.append(learned(one.fit(data)))
        assert results[1] == results[0]
        assert results[2] == results[0]

    def test_the_input_stays_as_it_was(self, estimator, data):
        before = copy.deepcopy(data)
        for array in arrays_of(data):  # writing to it raises
            array.flags.writeable = False
        estimator.fit(data)
        assert all(map(np.array_equal, arrays_of(data), arrays_of(before)))
        assert not isinstance(data, list) or data == before

    def test_nothing_is_answered_before_fit(self, estimator):
        history = ([0],) if isinstance(estimator, NextItem) else ([0], [1.0])
        asked = {"predict": (0, 0), "fold_in": history, "transform": (["sea"],), "scores": ([0],)}
        answering = [name for name in asked if hasattr(estimator, name)]
        assert answering
        for name in answering:
            with pytest.raises(NotFittedError):
                getattr(estimator, name)(*asked[name])

    def test_embeddings_are_finite_and_float32(self, estimator, data):
        if isinstance(estimator, ItemNeighbours):
            pytest.skip("it has none")
        estimator.fit(data)
        found = [value for name, value in vars(estimator).items() if name.endswith("embeddings_")]
        assert found
        for array in found:
            assert array.dtype == np.float32
            assert array.shape[1] == 4
            assert np.isfinite(array).all()


class TestEveryCollaborativeModel:
    def test_checkerboard(self, model, checkerboard):
        """Each user scores what their kind likes above what it does not, unseen items too."""
        users, items = np.indices(checkerboard.shape)
        like = (users + items) % 2 == 0
        liked = checkerboard if isinstance(model, ImplicitALS) else graded(like)
        scores = model.fit(liked).predict(users.ravel(), items.ravel()).reshape(like.shape)
        for row, kind in zip(scores, like, strict=True):
            assert row[kind].min() > row[~kind].max()

    def test_any_sparse_format_gives_the_same(self, model, scattered):
        pairs = scattered.tocoo()
        halves = (np.tile(pairs.data / 2, 2), (np.tile(pairs.row, 2), np.tile(pairs.col, 2)))
        repeated = coo_matrix(halves, shape=scattered.shape)
        unmerged = csr_matrix(scattered.shape)  # two halves of each pair side by side
        unmerged.data, unmerged.indices = (
            np.repeat(x, 2) for x in (scattered.data / 2, scattered.indices)
        )
        unmerged.indptr = scattered.indptr * 2
        expected = clone(model).fit(scattered).item_embeddings_
        for matrix in (scattered.tocsc(), scattered.astype(np.float64), repeated, unmerged):
            assert np.allclose(clone(model).fit(matrix).item_embeddings_, expected, atol=1e-5)

    def test_no_interactions_no_embedding(self, model, scattered):
        model.fit(scattered)
        assert model.user_embeddings_.shape == (40, 4)
        assert model.item_embeddings_.shape == (30, 4)
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
        by_row = clone(model).fit(log.matrix(model._values(log)))
        assert list(model.user_ids_) == ["ann", "bob", "cy"]
        assert np.array_equal(
            model.predict(["cy", "ann"], [30, "20"]), by_row.predict([2, 0], [2, 1])
        )
        with pytest.raises(UnknownIdError, match=r"^no user 'anne'$"):
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

    def test_callback_hears_of_every_iteration(self, model, scattered):
        heard = []
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


class TestQuality:
    """Floors on planted data, a little below what was measured."""

    def test_implicit_als_ranks_what_was_held_out_before_the_rest(self, planted):
        train, test = (ratings > 3.5 for ratings in planted)
        model = ImplicitALS(8, random_state=0).fit(train.astype(np.float32))
        scores = model.user_embeddings_ @ model.item_embeddings_.T
        assert auc(scores, train, test) > 0.80

    def test_biased_mf_predicts_what_biases_alone_cannot(self, planted):
        train, test = planted
        pairs = test.tocoo()

        def rmse(**parameters):
            model = BiasedMF(max_iter=150, reg=0.02, random_state=0, **parameters).fit(train)
            errors = model.predict(pairs.row, pairs.col) - pairs.data
            return float(np.sqrt(np.mean(errors**2)))

        error = rmse(n_components=8)
        assert error < 0.25
        assert error < 0.4 * rmse(n_components=1, init_scale=1e-9)

    def test_the_corpus_encoder_tells_subjects_apart_by_words_that_a_text_lacks(self):
        """Each text has 6 of its subject's 30 words: most pairs of texts share one or none."""
        rng = np.random.default_rng(2)
        subjects = rng.integers(4, size=200)
        texts = [
            " ".join(f"s{subject}w{word}" for word in rng.choice(30, 6, replace=False))
            for subject in subjects
        ]
        keys = CorpusEncoder(n_components=4).fit(texts).embeddings_
        cosines = keys @ keys.T - 2 * np.eye(len(keys))
        assert np.mean(subjects[cosines.argmax(axis=1)] == subjects) > 0.95


def auc(scores, train, test):
    """How often a liked item of the test part stands before one that nobody said to be liked."""
    liked, known = test.toarray().astype(bool), train.toarray().astype(bool)
    found = [
        np.mean(row[hit][:, None] > row[~hit & ~seen][None, :])
        for row, hit, seen in zip(scores, liked, known, strict=True)
        if hit.any()
    ]
    return float(np.mean(found))


def graded(like):
    """5 where `like`, else 1; the diagonal is left unrated."""
    users, items = np.nonzero(~np.eye(*like.shape, dtype=bool))
    return csr_matrix((np.where(like, 5.0, 1.0)[users, items], (users, items)), shape=like.shape)
