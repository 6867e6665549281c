"""Phrases, columns and beginnings of words, by the words of every item in order."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.heads.word_index import WordIndex, WordSequences
from qkvsearch.text.analysis import Analyzer

FIELDS = [
    ["Rain jacket", "Jacket potatoes", "The rain", "", "注意力"],
    ["for rain", "a rainy jacket", "Jacket of rain jackets", "rain", "猫"],
]
every = np.ones(5, dtype=bool)


@pytest.fixture
def index():
    return WordIndex([(WordSequences.of_fields(FIELDS), np.arange(5))], 5)


@pytest.mark.parametrize(
    ("terms", "column", "items"),
    [
        (["rain", "jacket"], None, [0, 2]),
        (["jacket", "rain"], None, []),
        (["rain", "jacket"], 0, [0]),
        (["rain", "jacket"], 1, [2]),
        (["rain"], 0, [0, 2]),
        (["注意", "意力"], None, [4]),
        (["rain", "for"], None, []),
        (["nowhere"], None, []),
    ],
)
def test_a_phrase_stands_in_one_column(index, terms, column, items):
    assert np.flatnonzero(index.with_phrase(terms, every, column)).tolist() == items


def test_only_candidates_are_looked_at(index):
    mask = np.array([False, True, True, True, True])
    assert np.flatnonzero(index.with_phrase(["rain", "jacket"], mask)).tolist() == [2]


@pytest.mark.parametrize(
    ("beginning", "expected"),
    [
        ("jack", {"jacket": "jacket"}),
        ("rain", {"rain": "rain", "raini": "rainy"}),
        ("mice", {"mouse": "mice"}),
        ("mous", {}),
    ],
)
def test_terms_have_their_first_spelling_in_all_segments(beginning, expected):
    spelled, terms = ["", "jackets", "rained", "mice"], ["", "jacket", "rain", "mouse"]
    more = WordSequences.numbered(spelled, terms, np.array([0, 4]), np.array([1, 2, 3, 0]))
    pieces = [(more, np.array([5])), (WordSequences.of_fields(FIELDS), np.arange(5))]
    assert WordIndex(pieces, 6).terms_with_prefix(beginning) == expected


def test_beginnings_and_words(index):
    assert index.words_with_prefix("jack") == ["jacket", "jackets"]
    assert index.words_with_prefix("zz") == []
    assert index.words_with_prefix("")[:2] == ["a", "for"]
    assert index.words_with_prefix("注") == ["注意"]
    assert "注意" not in index.by_letters.words
    assert "jackets" in index.by_letters.words


def test_pieces_are_one_index():
    """Rows of two segments, one of them deleted."""
    one = WordSequences.of_fields([["red sea", "deep sea"]])
    two = WordSequences.of_fields([["sea deep", "deep sea"]])
    index = WordIndex([(one, np.array([2, -1])), (two, np.array([0, 1]))], 3)
    assert np.flatnonzero(index.with_phrase(["deep", "sea"], np.ones(3, bool))).tolist() == [1]
    assert np.flatnonzero(index.with_phrase(["red", "sea"], np.ones(3, bool))).tolist() == [2]
    assert index.spellings.tolist() == [b"deep", b"red", b"sea"]
    assert index.mean_length == 3  # two words and the end of a column


@pytest.mark.parametrize(
    ("words", "is_whole", "items"),
    [
        (["rain"], False, [0]),
        (["rain"], True, []),
        (["rain", "jacket"], True, [0]),
        (["jacket"], False, [1]),
        (["the", "rain", "for"], False, []),
        (["注意", "意力"], True, [4]),
        (["nowhere"], False, []),
    ],
)
def test_items_that_start_with_words_do_so_in_their_first_column(index, words, is_whole, items):
    found = index.items_starting_with(words, np.arange(5), is_whole)
    assert found.tolist() == items


def test_the_items_of_all_segments_start_with_words():
    one = WordSequences.of_fields([["red sea", "deep sea"]])
    two = WordSequences.of_fields([["sea deep", "deep sea", "deep"]])
    index = WordIndex([(one, np.array([2, -1])), (two, np.array([3, 1, 0]))], 4)
    assert index.items_starting_with(["deep"], np.arange(4), is_whole=False).tolist() == [0, 1]
    assert index.items_starting_with(["deep"], np.arange(4), is_whole=True).tolist() == [0]
    assert index.items_starting_with(["deep"], np.arange(1, 4), is_whole=True).tolist() == []


@given(st.lists(st.tuples(*[st.text("ab ", max_size=12)] * 2), min_size=1, max_size=6))
def test_phrases_are_those_that_the_texts_have(rows):
    fields = list(map(list, zip(*rows, strict=True)))
    index = WordIndex([(WordSequences.of_fields(fields), np.arange(len(rows)))], len(rows))
    found = index.with_phrase(["a", "b"], np.ones(len(rows), bool))
    words = [[[t.term for t in Analyzer().tokens(text)] for text in texts] for texts in rows]
    expected = [any(["a", "b"] in map(list, pairwise(w)) for w in texts) for texts in words]
    assert found.tolist() == expected
