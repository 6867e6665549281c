"""Co-occurrence: words used together are near, chance is not, and texts are sums of their words."""

import numpy as np
import pytest

from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.labelled import LabelledVectors
from qkvsearch.text.learned import svd
from qkvsearch.text.learned.corpus_encoders import CooccurrenceEncoder
from qkvsearch.text.learned.svd import positive_information
from qkvsearch.text.text_encoder import item_keys, item_pieces
from tests.terms import count_terms

TEXTS = ["boat sea", "sea fish", "boat fish sea", "engine road", "road wheel", "engine wheel road"]


def test_words_used_together_are_nearer_than_words_apart():
    encoder = CooccurrenceEncoder(n_components=2).fit(TEXTS).encoder_
    boat, fish, wheel = (encoder.encode(word).total for word in ("boat", "fish", "wheel"))
    assert boat @ fish > 0.9
    assert abs(boat @ wheel) < 0.1


def test_information_is_positive_and_by_hand_for_two_texts():
    _, counts = count_terms(["sea boat", "road"], Analyzer().terms)
    information = positive_information(counts, smoothing=1.0).toarray()
    # Terms in order: boat, road, sea. The pairs count 3 in all: ½ for each of boat and sea, 1 for
    # road with itself; chance would have each term's share, a third, of each other's.
    expected = np.log([[1.5, 1, 1.5], [1, 3, 1], [1.5, 1, 1.5]])
    np.testing.assert_allclose(information, expected, rtol=1e-6)


def test_information_counted_in_pieces_is_the_same(monkeypatch):
    _, counts = count_terms(TEXTS, Analyzer().terms)
    whole = positive_information(counts, 0.75)
    monkeypatch.setattr(svd, "PAIRS_PER_BLOCK", 3)
    pieces = positive_information(counts, 0.75)
    assert np.array_equal(pieces.toarray(), whole.toarray())


@pytest.mark.parametrize("speed", [0, 1e9])
def test_information_of_long_texts_is_that_of_short_ones(monkeypatch, speed):
    texts = ["red kettle on a stove", "a red stove", "kettle and pan", "pan on the stove", ""]
    _, counts = count_terms(texts, Analyzer("none").terms)
    expected = positive_information(counts, 0.75).toarray()
    monkeypatch.setattr(svd, "DENSE_SPEED", speed)
    monkeypatch.setattr(svd, "PAIRS_PER_BLOCK", 9)
    np.testing.assert_allclose(positive_information(counts, 0.75).toarray(), expected, rtol=1e-6)


def test_with_too_many_pairs_only_the_most_frequent_words_get_vectors(monkeypatch):
    texts = [*TEXTS, "boat rudder keel anchor mast sail"]
    everything = CooccurrenceEncoder(n_components=2).fit(texts).encoder_
    monkeypatch.setattr(svd, "MAX_PAIRS", 36)
    bounded = CooccurrenceEncoder(n_components=2).fit(texts).encoder_
    rows = everything.vocabulary.rows(["rudder", "boat", "sea", "wheel"])
    assert everything.vectors.any(axis=1)[rows].tolist() == [True, True, True, True]
    assert bounded.vectors.any(axis=1)[rows].tolist() == [False, True, True, True]
    boat, fish, wheel = (bounded.encode(word).total for word in ("boat", "fish", "wheel"))
    assert boat @ fish > 0.9
    assert abs(boat @ wheel) < 0.1
    assert not len(bounded.encode("rudder"))


def test_a_key_is_its_columns_sum_at_length_1_and_its_pieces_add_up_to_it():
    encoder = CooccurrenceEncoder(n_components=3).fit(TEXTS).encoder_
    fields = [["boat sea", "", "nothing known"], ["wheel", "fish", ""]]
    keys = item_keys(encoder.encode_many, fields)
    np.testing.assert_allclose(np.linalg.norm(keys, axis=1), [1, 1, 0], atol=1e-6)
    for i, row in enumerate(zip(*fields, strict=True)):
        pieces = item_pieces(encoder.encode_item, row)
        total = pieces.total if len(pieces) else np.zeros(3)
        np.testing.assert_allclose(total, keys[i], atol=1e-6)
    assert item_pieces(encoder.encode_item, ["boat sea", "wheel"]).labels == [
        "boat",
        "sea",
        "wheel",
    ]


def test_columns_that_cancel_out_leave_nothing():
    one, other = (
        LabelledVectors([word], np.array([[sign, 0.0]])) for word, sign in (("a", 1), ("b", -1))
    )
    assert len(LabelledVectors.joined([one, other])) == 0


def test_texts_without_a_word():
    encoder = CooccurrenceEncoder().fit(["", "  "])
    assert not encoder.transform(["boat"]).any()
