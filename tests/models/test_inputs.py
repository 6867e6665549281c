"""What estimators take: columns, matrices, histories, texts and seeds; and errors about them."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from qkvsearch.errors import DataError, QkvError
from qkvsearch.evaluation.splits import split
from qkvsearch.models.estimators import BiasedMF, ImplicitALS, ItemNeighbours
from qkvsearch.models.next_item import NextItem
from qkvsearch.models.next_item_model import NextItemModel
from qkvsearch.tables.interactions import Interactions
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.learned.corpus_encoders import (
    ContrastiveEncoder,
    CooccurrenceEncoder,
    CorpusEncoder,
)

BASE = {"users": ["a", "b", "a"], "items": [1, 1, 2]}
NOT_COLUMNS = [[5, 4, 3, 2], [5, 4], [5], [], [[5], [4], [3]], np.ones((3, 1)), "545", 5, {1: 2}]
LOWEST = np.iinfo(np.int64).min


@pytest.mark.parametrize("values", NOT_COLUMNS, ids=str)
@pytest.mark.parametrize("name", ["items", "ratings", "times", "weights"])
def test_a_column_that_does_not_fit_is_named(name, values):
    with pytest.raises(DataError, match=name):
        Interactions.from_columns(**BASE | {name: values})


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39, "many", 1j, [1]], ids=str)
@pytest.mark.parametrize("name", ["ratings", "weights"])
def test_what_is_no_finite_number_is_named(name, value):
    with pytest.raises(DataError, match=name):
        Interactions.from_columns(**BASE, **{name: [1.0, 2.0, value]})


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_rating_is_none(missing):
    log = Interactions.from_columns(**BASE, ratings=[1, missing, 3])
    assert np.isnan(log.ratings).sum() == 1


DAYS = pd.to_datetime(["2024-03-02", "2024-03-01", "2024-03-03"])
TIMES = {
    "whole": [2, 1, 3],
    "floats": np.array([2.0, 1.0, 3.0]),
    "digits": ["2", "1", "3"],
    "dates": DAYS,
    "series": pd.Series(DAYS, index=[7, 8, 9]),
    "zone": DAYS.tz_localize("Europe/Berlin"),
    "seconds": DAYS.astype("datetime64[s]"),
    "days": [datetime.date(2024, 3, day) for day in (2, 1, 3)],
    "numpy": DAYS.to_numpy("datetime64[D]"),
}


@pytest.mark.parametrize("form", TIMES)
def test_times_of_any_form_have_the_same_order(form):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log = Interactions.from_columns([1, 1, 1], [1, 2, 3], times=TIMES[form])
    assert np.argsort(log.times).tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    "times",
    [
        [2.0, 1.0, np.nan],
        pd.Series([2, 1, None], dtype="Int64"),
        pd.Series([*DAYS[:2], pd.NaT]),
        np.ma.masked_array([2, 1, 5], [False, False, True]),
    ],
    ids=["floats", "Int64", "dates", "masked"],
)
def test_a_missing_time_is_before_all_others(times):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log = Interactions.from_columns([1, 1, 1], [1, 2, 3], times=times)
    assert log.times[2] == LOWEST < log.times[1] < log.times[0]


@pytest.mark.parametrize("time", [1.5, np.inf, 1e30, 2**64 - 1, "2024-03-02", 1j], ids=str)
def test_what_is_no_time_is_refused(time):
    with pytest.raises(DataError, match="times"):
        Interactions.from_columns([1, 1], [1, 2], times=np.array([1, time]))


def test_other_arguments_of_interactions_are_checked():
    for scale in ((5, 1), (1, np.inf), "1..5", (1,)):
        with pytest.raises(DataError, match="scale"):
            Interactions.from_columns(**BASE, ratings=[1, 2, 3], scale=scale)
    with pytest.raises(DataError, match="item_ids"):
        Interactions.from_columns(**BASE, item_ids=[1, 2])
    with pytest.raises(DataError, match="users"):
        Interactions.from_columns([["a"], ["b"]], [1, 2])
    log = Interactions.from_columns(**BASE)
    with pytest.raises(DataError, match="keep"):
        log.take([True])
    with pytest.raises(DataError, match="pairs"):
        log.matrix([1.0, 2.0, 3.0, 4.0])


def counted(dtype, kind):
    """A matrix with 300 ones for one pair, one each for the others."""
    users = np.repeat([0, 0, 1, 1, 2], [300, 1, 1, 2, 1])
    items = np.repeat([0, 1, 1, 2, 0], [300, 1, 1, 2, 1])
    matrix = sp.coo_matrix((np.ones(len(users), dtype), (users, items)), shape=(3, 3))
    if kind == "csr":
        starts = np.searchsorted(users, np.arange(4))
        return sp.csr_matrix((matrix.data, items, starts), shape=(3, 3))
    return matrix


@pytest.mark.parametrize("kind", ["coo", "csr"])
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int16, np.float64])
def test_repeated_entries_of_few_bits_add_up(dtype, kind):
    matrix = counted(dtype, kind)
    before = matrix.data.copy()
    read = ItemNeighbours()._read(matrix)
    assert read.toarray().tolist() == [[300, 1, 0], [0, 1, 2], [1, 0, 0]]
    assert matrix.data.dtype == before.dtype
    assert (matrix.data == before).all()


@pytest.mark.parametrize(
    "matrix",
    [
        sp.csr_matrix([[1j, 0], [1, 1]]),
        sp.coo_array(np.array([1.0, 2.0])),
        sp.csr_matrix((np.ones(2), [0, 1], [0, 1, 2]), shape=(2, 5)),
    ],
    ids=["complex", "one axis", "damaged"],
)
def test_a_matrix_that_is_none_is_refused(matrix):
    if matrix.shape == (2, 5):
        matrix.indices = np.array([0, 9], np.int32)
    with pytest.raises(DataError):
        ImplicitALS(2).fit(matrix)


@pytest.fixture(scope="module")
def models():
    generator = np.random.default_rng(0)
    matrix = sp.csr_matrix((generator.random((60, 15)) < 0.3).astype("f4"))
    ratings = matrix.copy()
    ratings.data = generator.integers(1, 6, matrix.nnz).astype("f4")
    als = ImplicitALS(4, random_state=0).fit(matrix)
    neighbours = ItemNeighbours().fit(matrix)
    return als, neighbours, BiasedMF(4, max_iter=2, random_state=0).fit(ratings)


def test_an_item_twice_in_a_history_counts_once(models):
    als, neighbours, ratings = models
    assert np.array_equal(als.fold_in([2, 5, 2]), als.fold_in([5, 2]))
    assert np.array_equal(als.fold_in([2, 5, 2], [1, 2, 3]), als.fold_in([5, 2], [2, 3]))
    assert np.array_equal(neighbours.scores([2, 5, 2]), neighbours.scores([2, 5]))
    twice, once = ratings.fold_in([2, 5, 2], [1, 4, 5]), ratings.fold_in([5, 2], [4, 5])
    assert twice[0] == once[0]
    assert np.array_equal(twice[1], once[1])


def test_an_item_twice_in_a_sequence_has_its_last_place():
    model = NextItem(4)
    model.model_ = NextItemModel.create(9, 4, 1, 1, 8, np.random.default_rng(0))
    model.item_embeddings_, model.item_ids_ = model.model_.items.weight, None
    assert np.array_equal(model.fold_in([1, 2, 1]), model.fold_in([2, 1]))


@pytest.mark.parametrize("values", [[1, np.nan], [1, np.inf], [1], [[1, 2]], ["a", "b"], [1, -1]])
def test_values_of_a_history_are_checked(models, values):
    als, neighbours, ratings = models
    for use in (als.fold_in, neighbours.scores):
        with pytest.raises(DataError):
            use([2, 5], values)
    if values != [1, -1]:
        with pytest.raises(DataError):
            ratings.fold_in([2, 5], values)
    with pytest.raises(DataError):
        ratings.fold_in([2, 5], None)


@pytest.mark.parametrize("items", [[[1, 2]], np.ones((2, 2), int), [None], ["x"], -1, 99, 1.5])
def test_items_that_are_none_are_refused(models, items):
    for use in (models[0].fold_in, models[1].scores):
        with pytest.raises(QkvError):
            use(items)


# --- seeds ---


@pytest.mark.parametrize("seed", [0, 2**32, 1764347105123, np.int64(3), np.random.default_rng(1)])
def test_any_seed_works(seed):
    matrix = sp.csr_matrix(np.eye(4))
    assert ImplicitALS(2, max_iter=1, random_state=seed).fit(matrix).factors_ is not None
    assert BiasedMF(2, max_iter=1, random_state=seed).fit(matrix).factors_ is not None
    assert CorpusEncoder(2, random_state=seed).fit(["a b", "c d"]).embeddings_.shape == (2, 2)


def test_a_large_seed_is_not_the_same_as_its_last_bits():
    matrix = sp.csr_matrix(np.eye(4))
    one, other = (
        ImplicitALS(2, max_iter=1, random_state=seed).fit(matrix).item_embeddings_
        for seed in (1, 2**32 + 1)
    )
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True, [1]], ids=str)
def test_what_is_no_seed_is_named(seed):
    log = Interactions.from_columns(list("aaabbb"), [1, 2, 3, 1, 2, 3])
    for use in (
        lambda: ImplicitALS(2, random_state=seed).fit(sp.csr_matrix(np.eye(4))),
        lambda: CorpusEncoder(2, random_state=seed).fit(["a b", "c d"]),
        lambda: ContrastiveEncoder(2, random_state=seed).fit([["a b"] * 20]),
        lambda: split(log, "random", seed),
    ):
        with pytest.raises(DataError, match="random_state"):
            use()


# --- texts ---

TEXTS = ["red kettle", "blue kettle", "green anchor"] * 3
NO_TEXTS = [
    "red kettle",
    b"red",
    None,
    5,
    {"a": 1},
    np.array([["a", "b"]]),
    pd.DataFrame({"a": ["b"]}),
]
WITH_GAPS = [["red", None], ["red", np.nan], pd.Series(["red", None], dtype="string"), ["red", 1]]


@pytest.mark.parametrize("encoder", [CorpusEncoder, CooccurrenceEncoder, ContrastiveEncoder])
def test_texts_are_texts(encoder):
    model = encoder(n_components=2, random_state=0).fit(TEXTS)
    for texts in (*NO_TEXTS, *WITH_GAPS):
        with pytest.raises(DataError):
            model.transform(texts)
        with pytest.raises(DataError):
            model.encoder_.encode_many(texts)
        with pytest.raises(DataError):
            encoder(n_components=2).fit(texts)
    with pytest.raises(DataError, match="nothing to learn"):
        encoder(n_components=2).fit([])
    with pytest.raises(DataError):
        model.encoder_.encode(None)
    same = model.transform(TEXTS)
    for texts in (tuple(TEXTS), np.array(TEXTS), pd.Series(TEXTS, index=range(9, 18)), iter(TEXTS)):
        assert np.array_equal(model.transform(texts), same)
    assert model.transform([]).shape == (0, 2)


def test_the_columns_of_a_contrastive_encoder_are_texts():
    for columns in ([["a", None], ["b", "c"]], [["a"], None], [[], []], [1, 2]):
        with pytest.raises(DataError):
            ContrastiveEncoder(n_components=2).fit(columns)


@pytest.mark.parametrize("text", [None, 5, b"red", ["red"]], ids=str)
def test_an_analyzer_takes_texts(text):
    analyzer = Analyzer()
    for use in (analyzer.tokens, analyzer.terms, analyzer.key_terms, analyzer.token_spans):
        with pytest.raises(DataError):
            use(text)


class OtherLibrary:
    """A column of an array library whose conversion to NumPy turns a gap into NaN."""

    def __init__(self, values):
        self.values = values

    def __iter__(self):
        return iter(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.array([np.nan if x is None else x for x in self.values], float)

    def to_list(self):
        return self.values


def columns_with_a_gap(values):
    yield OtherLibrary(values)
    try:
        import pyarrow
    except ImportError:
        return
    yield pyarrow.array(values)
    yield pyarrow.chunked_array([values])


def test_long_whole_numbers_keep_all_digits_beside_a_gap():
    long = 2**53 + 1
    for column in columns_with_a_gap([long, long - 1, None]):
        assert list(Interactions.from_columns(["a", "b", "c"], column).item_ids) == [long - 1, long]
        log = Interactions.from_columns(["a", "a", "a"], [1, 2, 3], times=column)
        assert log.times.tolist() == [long, long - 1, LOWEST]


def test_numbers_in_the_byte_order_of_another_machine_are_read():
    users, ratings = np.array([7, 8, 7], ">i8"), pd.Series(np.array([1, 2, 3], ">f4"))
    log = Interactions.from_columns(users, users.astype(">f8"), ratings, users)
    assert list(log.user_ids) == list(log.item_ids) == [7, 8]
    assert log.ratings.tolist() == [3, 2]


@pytest.mark.parametrize("name", ["users", "items"])
def test_an_id_without_an_encoding_is_refused(name):
    with pytest.raises(DataError, match=name):
        Interactions.from_columns(**BASE | {name: ["a", "\ud800", "b"]})


@pytest.mark.parametrize("name", ["ratings", "weights", "times"])
def test_a_number_of_too_many_digits_is_refused(name):
    with pytest.raises(DataError, match=name):
        Interactions.from_columns(**BASE, **{name: [1, 10**400, 3]})


def test_weights_that_add_up_to_too_much_are_refused_with_their_pair():
    with pytest.raises(DataError, match=r"user 'a', item 5.*`weights`"):
        Interactions.from_columns(["b", "a", "a"], [4, 5, 5], weights=[1, 3e38, 3e38])
    taken_back = Interactions.from_columns(["a"] * 3, [5] * 3, weights=[3e38, -3e38, 3e38])
    assert np.isfinite(taken_back.weights).all()


MATRIX = sp.csr_matrix(np.array([[5, 3, 0], [0, 4, 2], [1, 0, 5]], np.float32))


@pytest.mark.parametrize("value", [1e39, 3e38, 10**400, -1, np.nan, "x", None, [1]], ids=str)
def test_a_confidence_that_cannot_be_added_up_is_refused(value):
    als = ImplicitALS(n_components=2, max_iter=1, random_state=0).fit(MATRIX)
    neighbours = ItemNeighbours().fit(MATRIX)
    for ask in (als.fold_in, neighbours.scores):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(DataError):
                ask([1, 2], [1, value])


def test_a_confidence_above_the_limit_is_refused_everywhere():
    large = MATRIX.copy()
    large.data[0] = 1e13
    als = ImplicitALS(n_components=2, max_iter=1, random_state=0).fit(MATRIX)
    for ask in (als.fold_in, ImplicitALS(n_components=2).fit, ItemNeighbours().fit):
        with pytest.raises(DataError, match=r"1e\+12"):
            ask(large)


@pytest.mark.parametrize("rating", [1e39, 10**400, np.inf, "x", 1j, {}], ids=str)
def test_a_rating_that_is_no_number_is_refused(rating):
    model = BiasedMF(n_components=2, max_iter=1, random_state=0).fit(MATRIX)
    for item, ratings in ((1, rating), ([1, 2], [1, rating])):
        with pytest.raises(DataError):
            model.fold_in(item, ratings)
    assert np.isfinite(model.fold_in([1, 2], [1, 3e38])[1]).all()  # as the end of the scale


def test_items_in_lists_of_several_lengths_are_refused():
    model = ImplicitALS(n_components=2, max_iter=1, random_state=0).fit(MATRIX)
    with pytest.raises(DataError, match="items"):
        model.fold_in([[1], [1, 2]])


def test_values_of_a_matrix_are_numbers():
    with pytest.raises(DataError, match="values"):
        Interactions.from_columns(**BASE).matrix("many")


@pytest.mark.parametrize("encoder", [CorpusEncoder, CooccurrenceEncoder, ContrastiveEncoder])
@pytest.mark.parametrize("language", [5, "xx", None, "auto"], ids=str)
def test_an_unknown_language_is_refused_with_those_that_are_there(encoder, language):
    with pytest.raises(DataError, match="language") as caught:
        encoder(n_components=2, language=language).fit(["red lamp", "blue kettle"] * 3)
    assert isinstance(language, str) is ("de, " in str(caught.value))


def test_a_language_has_two_spellings():
    texts = ["die roten Lampen", "eine rote Lampe", "ein blauer Kessel"]
    by_code = CorpusEncoder(n_components=2, language="de").fit_transform(texts)
    by_name = CorpusEncoder(n_components=2, language="german").fit_transform(texts)
    np.testing.assert_array_equal(by_code, by_name)


@pytest.mark.parametrize("name", ["init", "epochs"])
def test_a_parameter_that_is_a_list_is_named(name):
    with pytest.raises(DataError, match=name):
        ContrastiveEncoder(n_components=2, **{name: [1]}).fit(["red lamp", "blue kettle"])
