"""Column weights: by lengths, by made and by judged queries; keys that are sums by them."""

import numpy as np
import pytest

from qkvsearch.retrieval import head_weights
from qkvsearch.retrieval.column_weights import ColumnScores, length_weights, likeliest
from qkvsearch.retrieval.head_weights import learn_columns_from_judgements, learn_weights
from qkvsearch.retrieval.training_queries import JudgedQueries
from qkvsearch.text.encoders import fitted_encoder
from qkvsearch.text.labelled import unit_rows
from qkvsearch.text.text_encoder import item_keys, item_pieces
from qkvsearch.text.token_encoder import TokenEncoder
from qkvsearch.text.vocabulary import Vocabulary

N_WORDS, N_ITEMS = 60, 600
WORDS = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(N_WORDS)]


def random_units(rng, *shape):
    return unit_rows(rng.normal(size=shape)).astype(np.float32)


def column_scores(seed=0, n=40, d=6):
    """Queries that a third column tells of, and the two others do not."""
    rng = np.random.default_rng(seed)
    queries = random_units(rng, n, d)
    near = unit_rows(queries + 0.3 * rng.normal(size=(n, d))).astype(np.float32)
    columns = [random_units(rng, n, d), random_units(rng, n, d), near]
    columns[0][3] = columns[1][5] = 0
    return ColumnScores.of(queries, columns, np.eye(n, dtype=np.float32))


# --- by lengths ---


def test_a_longer_column_counts_by_the_root_of_its_length():
    short, long = ["a cat"] * 5, [" ".join(["word"] * 144)] * 5
    np.testing.assert_allclose(length_weights([short, long]), [0.25, 0.75])
    np.testing.assert_allclose(length_weights([long, short, short]), [0.6, 0.2, 0.2])


def test_short_columns_count_alike_and_no_length_counts_without_end():
    tags = [f"a b c d e f g {i}" for i in range(4)]
    np.testing.assert_allclose(length_weights([list("abcd"), tags]), [0.5, 0.5])
    book, page = [" ".join(["word"] * 5000)], [" ".join(["word"] * 300)]
    np.testing.assert_allclose(length_weights([book, page]), [0.5, 0.5])


@pytest.mark.parametrize(
    ("texts", "apart"), [(["x"] * 4, 0.01), (["x", "y", "x", "y"], 1), (["x", "", "x", ""], 1)]
)
def test_a_column_with_the_same_text_in_every_row_hardly_counts(texts, apart):
    titles, other = length_weights([list("abcd"), texts])
    assert other / titles == pytest.approx(apart)


def test_empty_texts_make_a_column_no_shorter():
    half = [" ".join(["word"] * 64), ""]
    np.testing.assert_allclose(length_weights([["a", "b"], half]), [1 / 3, 2 / 3])


# --- by queries ---


def test_scores_are_those_of_the_keys():
    rng = np.random.default_rng(1)
    queries, columns = random_units(rng, 4, 5), [random_units(rng, 7, 5) for _ in range(3)]
    columns[0][2] = columns[1][2] = columns[2][2] = 0
    weights = np.array([0.5, 0.2, 0.3])
    found = ColumnScores.of(queries, columns, np.eye(4, 7)).scores(weights)
    keys = item_keys(lambda column: column, columns, weights)
    np.testing.assert_allclose(found, queries @ keys.T, atol=1e-6)
    assert not found[:, 2].any()


def test_the_gradient_is_that_of_the_loss():
    found, weights, step = column_scores(), np.array([0.5, 0.2, 0.3]), 1e-4
    found = ColumnScores(*(np.asarray(array, dtype=np.float64) for array in found))
    _, by_weights, by_scale = found.loss(weights, 5.0)
    for c in range(3):
        up, down = weights.copy(), weights.copy()
        up[c], down[c] = up[c] + step, down[c] - step
        slope = (found.loss(up, 5.0)[0] - found.loss(down, 5.0)[0]) / (2 * step)
        assert by_weights[c] == pytest.approx(slope, rel=1e-4, abs=1e-6)
    slope = (found.loss(weights, 5 + step)[0] - found.loss(weights, 5 - step)[0]) / (2 * step)
    assert by_scale == pytest.approx(slope, rel=1e-4)


def test_the_column_that_tells_gets_the_weight():
    assert likeliest([column_scores()], np.full(3, 1 / 3))[2] > 0.8


def test_columns_of_which_nothing_is_told_keep_their_share():
    found, given = column_scores(), np.array([0.7, 0.2, 0.1])
    nothing = ColumnScores(np.zeros_like(found.products), found.grams * 0, found.answers)
    np.testing.assert_allclose(likeliest([nothing], given), given)


def planted(telling):
    """Two columns of 60 words. In the telling one they are the item's few, so that a passage is
    much like the rest; in the other they are of all words there are."""
    rng = np.random.default_rng(0)
    columns = [[], []]
    half = N_WORDS // 2
    for _ in range(N_ITEMS):
        columns[telling].append(" ".join(rng.choice(rng.choice(WORDS[:half], 4), 60)))
        columns[1 - telling].append(" ".join(rng.choice(WORDS[half:], 60)))
    return columns


@pytest.mark.parametrize("telling", [0, 1])
def test_made_queries_move_the_weight_to_the_column_that_tells(telling):
    vectors = random_units(np.random.default_rng(0), N_WORDS, 24)
    encoder = TokenEncoder(Vocabulary.of(WORDS), vectors, np.ones(N_WORDS, np.float32))
    found = learn_weights(planted(telling), {"static": encoder}, {"lexical": 0.5, "static": 0.5})
    assert found.columns["static"].sum() == pytest.approx(1)
    assert found.columns["static"][telling] > 0.57  # halfway from one half
    assert sum(found.heads.values()) == pytest.approx(1)


def test_without_queries_the_lengths_decide():
    fields = [["sea"] * 50, [" ".join(WORDS)] * 50]
    encoder = fitted_encoder("lsa", fields)
    found = learn_weights(fields, {"lsa": encoder}, {"lexical": 0.4, "lsa": 0.6})
    assert found.heads == {"lexical": 0.4, "lsa": 0.6}
    np.testing.assert_array_equal(found.columns["lsa"], length_weights(fields))


def judged_case(n_queries):
    """Every item has a word in each column; who asks for a word means the second column's."""
    rng = np.random.default_rng(0)
    words = np.stack([rng.integers(N_WORDS, size=N_ITEMS), np.arange(N_ITEMS) % N_WORDS])
    vectors = random_units(rng, N_WORDS, 24)
    encoder = TokenEncoder(Vocabulary.of(WORDS), vectors, np.ones(N_WORDS, np.float32))
    columns = [encoder.encode_many([WORDS[w] for w in column]) for column in words]
    asked = [i % N_WORDS for i in range(n_queries)]
    answers = [np.flatnonzero(words[1] == word) for word in asked]
    return JudgedQueries([WORDS[word] for word in asked], answers, []), encoder, columns


def test_judgements_move_the_weight_the_more_the_more_there_are():
    given = np.array([0.6, 0.4])
    few, many = (learn_columns_from_judgements(*judged_case(n), given) for n in (10, 300))
    assert given[1] < few[1] < 0.5  # 10 of 110
    assert many[1] > 0.75
    assert [many.sum(), few.sum()] == pytest.approx([1, 1])


def test_a_sample_of_the_items_tells_nearly_the_same(monkeypatch):
    given, case = np.array([0.5, 0.5]), judged_case(100)
    whole = learn_columns_from_judgements(*case, given)
    monkeypatch.setattr(head_weights, "MAX_ITEMS", 150)
    assert learn_columns_from_judgements(*case, given) == pytest.approx(whole, abs=0.05)


# --- keys ---


@pytest.mark.parametrize("weights", [None, [0.5, 0.5], [0.2, 0.8]])
def test_pieces_add_up_to_the_key(weights):
    fields = [["deep sea", "red car", ""], ["water boat sea", "road", "sea road"]]
    encoder = fitted_encoder("lsa", fields)
    keys = item_keys(encoder.encode_many, fields, weights)
    for row, texts in enumerate(zip(*fields, strict=True)):
        total = item_pieces(encoder, texts, weights).total
        np.testing.assert_allclose(total, keys[row], atol=1e-6)
    assert keys.dtype == np.float32


def test_a_weight_moves_the_key_to_its_column():
    first, second = np.eye(2, dtype=np.float32)
    columns = [first[None], second[None]]
    (key,) = item_keys(lambda column: column, columns, [0.6, 0.8])
    np.testing.assert_allclose(key, [0.6, 0.8])
