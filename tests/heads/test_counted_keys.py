"""Weights made from counts when a query asks: those of keys made afresh, to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkvsearch.heads.bm25 import CountedKeys, LexicalKeys, TermCounts, length_norms
from qkvsearch.heads.late_interaction import TokenKeys, idf
from qkvsearch.text.analysis import Token
from tests.terms import count_terms

WORDS = ["a", "bb", "ccc", "猫", "eeeee"]
documents = st.lists(st.lists(st.sampled_from(WORDS), max_size=9), min_size=1, max_size=12)


def afresh(texts):
    return LexicalKeys.from_counts(*count_terms([" ".join(t) for t in texts], str.split))


def assert_same_arrays(one, other):
    np.testing.assert_array_equal(one.vocabulary.terms, other.vocabulary.terms)
    assert one.vocabulary.terms.dtype == other.vocabulary.terms.dtype
    for name in ("indptr", "indices", "weights"):
        array, like = getattr(one, name), getattr(other, name)
        assert array.dtype == like.dtype
        np.testing.assert_array_equal(array, like)
    assert one.n_items == other.n_items


@settings(max_examples=60)
@given(st.lists(documents, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_pieces_in_any_order_have_the_weights_of_all_their_items_afresh(pieces, random):
    """Each item of each piece gets a place among all, or −1: it left."""
    stored = [text for piece in pieces for text in piece]
    there = [row for row in range(len(stored)) if random.random() < 0.8] or [0]
    random.shuffle(there)
    place = np.full(len(stored), -1)
    place[there] = np.arange(len(there))
    ends = np.cumsum([len(piece) for piece in pieces])
    counts = [TermCounts.of_texts(piece) for piece in pieces]
    placed = [
        count.renumbered(place[end - len(piece) : end])
        for count, piece, end in zip(counts, pieces, ends, strict=True)
    ]
    texts = [stored[row] for row in there]
    fresh = afresh(texts)
    lengths = np.array([len(text) for text in texts])
    joined = TermCounts.joined(placed)
    np.testing.assert_array_equal(joined.lengths(len(there)), lengths)
    assert_same_arrays(LexicalKeys.weighed(joined, length_norms(lengths)), fresh)

    rest = TermCounts.joined(placed[1:])
    norms, n_base = length_norms(lengths), len(pieces[0])
    keys = CountedKeys(counts[0], place[:n_base], rest, norms, len(there))
    for term in [*WORDS, "z"]:
        for array, like in zip(keys.postings(term), fresh.postings(term), strict=True):
            np.testing.assert_array_equal(array, like)
        assert keys.n_with(term) == fresh.n_with(term) == sum(term in text for text in texts)
    np.testing.assert_array_equal(idf(WORDS, keys), idf(WORDS, fresh))
    query = [Token(word, word) for word in ("猫", "a", "z", "a")]
    head, like = keys.head(query), fresh.head(query)
    assert (head is None) == (like is None)
    if head is not None:
        np.testing.assert_array_equal(head.scores, like.scores)
        assert [list(head.parts(i)) for i in range(len(there))] == [
            list(like.parts(i)) for i in range(len(there))
        ]


def test_the_mean_length_does_not_depend_on_the_order_of_items():
    """In float32 sums of more than 2²⁴ would round differently in another order."""
    lengths = np.random.default_rng(0).integers(1, 2000, size=60_001).astype(np.int32)
    expected = length_norms(lengths)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(lengths))
        np.testing.assert_array_equal(length_norms(lengths[order]), expected[order])


def test_what_is_no_term_and_what_is_longer_than_any_term_has_no_items():
    keys = afresh([["a", "bb"]])
    for term in ("", "b", "bbb", "\ud800", "a" * 99):
        assert keys.n_with(term) == 0


@pytest.mark.parametrize("d", [None, 3])
def test_tokens_of_a_base_and_of_what_was_added_are_those_of_all(d):
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 5, size=9)
    shape = (int(lengths.sum()),) if d is None else (int(lengths.sum()), d)
    tokens = rng.integers(-5, 5, size=shape).astype(np.int8)
    indptr, n_base = np.cumsum([0, *lengths]), 6
    at = indptr[n_base]
    rows = np.array([7, 0, 2, 8, 5, 6])
    keys = TokenKeys(indptr, tokens[:at], None, [tokens[at : at + 2], tokens[at + 2 :]], rows)
    spans = [tokens[indptr[row] : indptr[row + 1]] for row in rows]
    asked = np.array([4, 0, 1, 3])
    np.testing.assert_array_equal(keys.lengths(asked), [len(spans[i]) for i in asked])
    np.testing.assert_array_equal(keys.tokens(asked), np.concatenate([spans[i] for i in asked]))
