"""Column weights: by lengths, by made and by judged queries; keys that are sums by them."""

import numpy as np
import pytest

from qkvsearch.learn.head_weights import length_weights
from qkvsearch.text.encoders import fitted_encoder
from qkvsearch.text.text_encoder import item_keys, item_pieces

N_WORDS, N_ITEMS = 60, 600
WORDS = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(N_WORDS)]


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


@pytest.mark.parametrize("weights", [None, [0.5, 0.5], [0.2, 0.8]])
def test_pieces_add_up_to_the_key(weights):
    fields = [["deep sea", "red car", ""], ["water boat sea", "road", "sea road"]]
    encoder = fitted_encoder("lsa", fields)
    keys = item_keys(encoder.encode_many, fields, weights)
    for row, texts in enumerate(zip(*fields, strict=True)):
        total = item_pieces(encoder.encode_item, texts, weights).total
        np.testing.assert_allclose(total, keys[row], atol=1e-6)
    assert keys.dtype == np.float32


def test_a_weight_moves_the_key_to_its_column():
    first, second = np.eye(2, dtype=np.float32)
    columns = [first[None], second[None]]
    (key,) = item_keys(lambda column: column, columns, [0.6, 0.8])
    np.testing.assert_allclose(key, [0.6, 0.8])
