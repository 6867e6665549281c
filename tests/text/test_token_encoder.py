"""The token encoder: labelled vectors that add up, in the order and with the words of the text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.labelled import PADDING
from qkvsearch.text.token_encoder import TokenEncoder
from qkvsearch.text.vocabulary import Vocabulary

TERMS = ["bird", "cat", "dog", "no", "run", "void"]


@pytest.fixture(scope="module")
def encoder():
    vectors = np.random.default_rng(0).normal(size=(len(TERMS), 4)).astype(np.float32)
    vectors[TERMS.index("void")] = 0
    weights = np.linspace(1, 2, len(TERMS), dtype=np.float32)
    return TokenEncoder(Vocabulary.of(TERMS), vectors, weights)


words = st.lists(st.sampled_from([*TERMS, "the", "zzqx", "Running", "ＣＡＴ", "!"]), max_size=8)


def test_what_is_left_of_terms_without_a_direction_is_no_embedding():
    """Rounding errors of 1e-8 in place of a vector are not brought to length 1."""
    vectors = np.array([[1, 0], [1e-8, 2e-8]], np.float32)
    encoder = TokenEncoder(Vocabulary.of(["cat", "void"]), vectors, np.ones(2, np.float32))
    assert encoder.encode_many(["void", "cat", "void void"]).tolist() == [[0, 0], [1, 0], [0, 0]]
    assert len(encoder.encode("void")) == 0


def test_encode_is_the_formula_of_its_docstring(encoder):
    encoded = encoder.encode("a dog, a dog, a cat")
    dog, cat = TERMS.index("dog"), TERMS.index("cat")
    expected = (1 + np.log(2)) * encoder.weights[dog] * encoder.vectors[dog]
    expected = expected + encoder.weights[cat] * encoder.vectors[cat]
    np.testing.assert_allclose(encoded.total, expected / np.linalg.norm(expected), atol=1e-6)
    assert encoded.labels == ["dog", "cat"]


def test_labels_are_words_as_written_one_for_each_term(encoder):
    assert encoder.encode("Running dogs").labels == ["running", "dogs"]
    assert encoder.encode("cat Cats CAT").labels == ["cat"]


def test_sequence_keeps_reading_order_repeats_and_plain_vectors(encoder):
    sequence = encoder.sequence("dog the cat dog")
    assert list(sequence.labels) == ["dog", "cat", "dog"]
    rows = [TERMS.index(name) for name in sequence.labels]
    np.testing.assert_array_equal(sequence.vectors, encoder.vectors[rows])


@pytest.mark.parametrize("text", ["cat <PAD> dog", "cat <pad> dog", "cat<PAD>dog"])
def test_padding_is_a_token_of_zeros_in_its_place(encoder, text):
    sequence = encoder.sequence(text)
    assert list(sequence.labels) == ["cat", PADDING, "dog"]
    assert not sequence.vectors[1].any()
    assert encoder.unread(text) == []


@pytest.mark.parametrize(
    ("text", "labels"), [("<PAD><PAD>", [PADDING] * 2), ("zzqx", []), ("", [])]
)
def test_padding_alone_and_nothing_known_are_sequences_too(encoder, text, labels):
    sequence = encoder.sequence(text)
    assert list(sequence.labels) == labels
    assert sequence.vectors.shape == (len(labels), 4)


def test_unknown_lists_what_sequence_leaves_out_once_each(encoder):
    assert encoder.unread("the zzqx cat zzqx") == ["the", "zzqx"]
    assert encoder.unread("cat") == []


@given(words)
def test_every_word_is_either_in_the_sequence_or_listed_as_unknown(encoder, text):
    text = " ".join(text)
    every = {token.text for token in Analyzer().tokens(text)}
    used = set(encoder.sequence(text).labels)
    assert used | set(encoder.unread(text)) == every
    assert not used & set(encoder.unread(text))
