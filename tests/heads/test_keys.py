"""Lexical and dense keys: scores against plain loops, parts against scores."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.heads.bm25 import LexicalKeys
from qkvsearch.heads.dense_keys import WHOLE_TEXT, DenseKeys
from qkvsearch.scores.fusion import fuse
from qkvsearch.text.analysis import Token
from qkvsearch.text.labelled import LabelledVectors
from tests.terms import count_terms

K1, B = 1.2, 0.75
texts = st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=8)
queries = st.lists(st.sampled_from("abcdz"), max_size=5)


def keys_of(documents):
    return LexicalKeys.from_counts(
        *count_terms([" ".join(words) for words in documents], lambda text: text.split())
    )


def tokens(words):
    return [Token(word, word) for word in words]


def bm25(query, documents):
    """The formula of `LexicalKeys.from_counts`, one term and one document at a time."""
    mean_length = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        counts, score = Counter(document), 0.0
        for word in query:
            if not counts[word]:
                continue
            n = sum(word in other for other in documents)
            idf = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
            norm = K1 * (1 - B + B * len(document) / mean_length)
            score += idf * counts[word] * (K1 + 1) / (counts[word] + norm)
        scores.append(score)
    return scores


@given(texts, queries)
def test_bm25_is_its_formula(documents, query):
    head = keys_of(documents).head(tokens(query))
    expected = bm25(query, documents)
    if head is None:
        assert not any(expected)
        return
    np.testing.assert_allclose(head.scores, expected, rtol=1e-5, atol=1e-6)
    assert head.covered.tolist() == [score > 0 for score in expected]


@given(texts, queries)
def test_lexical_parts_add_up_and_name_only_words_that_the_item_has(documents, query):
    head = keys_of(documents).head(tokens(query))
    for position, document in enumerate(documents) if head else ():
        parts = head.parts(position)
        assert sum(part.value for part in parts) == pytest.approx(head.scores[position], abs=1e-4)
        different = dict.fromkeys(query)
        assert [part.query for part in parts] == [word for word in different if word in document]
        assert all(part.value > 0 for part in parts)


def test_many_words_are_added_up_some_at_a_time(monkeypatch):
    """Each counts as often as it is asked."""
    keys, query = keys_of([["a", "b"], ["b", "c"], ["a"]]), tokens("abcabaab")
    head = keys.head(query)
    monkeypatch.setattr("qkvsearch.heads.bm25.WORDS_PER_BATCH", 1)
    np.testing.assert_allclose(keys.head(query).scores, head.scores, rtol=1e-6)
    once = [keys.head(tokens(word)).scores for word in "abc"]
    np.testing.assert_allclose(head.scores, np.array([4, 3, 1]) @ np.array(once), rtol=1e-6)


def test_unknown_words_have_no_head():
    keys = keys_of([["a"], ["b"]])
    assert keys.head(tokens(["zzqx", "wvvk"])) is None
    assert keys.head([]) is None


def test_texts_without_words_have_no_head_and_no_warning(recwarn):
    assert keys_of([[], []]).head(tokens("a")) is None
    assert not recwarn.list


def test_a_word_that_every_item_has_still_counts_for_the_item():
    head = keys_of([["a"], ["a"]]).head(tokens("a"))
    assert (head.scores > 0).all()


def test_keys_are_stored_in_types_that_map_from_disk():
    keys = keys_of([["b", "a"], ["a"]])
    types = (keys.indptr.dtype, keys.indices.dtype, keys.weights.dtype)
    assert types == (np.int64, np.int32, np.float32)
    assert keys.indices.tolist() == [0, 1, 0]


def sums(n_pieces, d=3):
    numbers = st.floats(-9, 9, width=32)
    return st.lists(st.lists(numbers, min_size=d, max_size=d), min_size=n_pieces, max_size=4).map(
        lambda rows: np.array(rows, dtype=np.float32).reshape(-1, d)
    )


@given(sums(1), st.lists(sums(0), min_size=1, max_size=4))
def test_dense_parts_are_products_of_pairs_and_add_up(query, items):
    pieces = [LabelledVectors(range(len(item)), item) for item in items]
    keys = DenseKeys(np.array([piece.total for piece in pieces], dtype=np.float32))
    words = [f"q{i}" for i in range(len(query))]
    head = keys.head("semantic", LabelledVectors(words, query), pieces.__getitem__)
    for position, item in enumerate(items):
        parts = head.parts(position)
        assert {(part.query, part.key) for part in parts} == {
            (word, j) for word in words for j in range(len(item))
        }
        for part in parts:
            expected = query[int(part.query[1:])] @ item[part.key]
            assert part.value == pytest.approx(expected, abs=1e-3)
        size = sum(abs(part.value) for part in parts)
        total = sum(part.value for part in parts)
        assert total == pytest.approx(head.scores[position], abs=1e-4 * max(1, size))


def test_a_long_text_is_one_piece_beside_a_long_query(monkeypatch):
    rng = np.random.default_rng(0)
    query = LabelledVectors(["x", "y"], rng.normal(size=(2, 4)).astype(np.float32))
    text = LabelledVectors(list("abc"), rng.normal(size=(3, 4)).astype(np.float32))
    head = DenseKeys(text.total[None]).head("semantic", query, lambda _: text)
    pairs = head.parts(0)
    monkeypatch.setattr("qkvsearch.heads.dense_keys.MAX_PAIRS", 5)
    words = head.parts(0)
    assert [(part.query, part.key) for part in words] == [("x", WHOLE_TEXT), ("y", WHOLE_TEXT)]
    np.testing.assert_allclose(words.sums, pairs.sums, rtol=1e-5)


def test_a_key_without_pieces_is_one_part_for_each_piece_of_the_query():
    keys = DenseKeys(np.eye(2, dtype=np.float32))
    head = keys.head("semantic", LabelledVectors(["x", "y"], np.array([[1.0, 2.0], [3.0, 4.0]])))
    assert [(part.query, part.value) for part in head.parts(1)] == [("x", 2.0), ("y", 4.0)]
    assert head.scores.tolist() == [4.0, 6.0]
    assert head.covered is None


def test_an_empty_query_has_no_dense_head():
    assert DenseKeys(np.eye(2)).head("semantic", LabelledVectors([], np.zeros((0, 2)))) is None


def test_relative_parts_are_how_a_key_differs_from_the_mean(assert_adds_up):
    rng = np.random.default_rng(0)
    common = 5 * np.ones(4)  # as all texts of some encoders have
    pieces = [
        LabelledVectors(list("abc")[: 1 + i % 3], rng.normal(size=(1 + i % 3, 4)) + common)
        for i in range(7)
    ]
    keys = DenseKeys(np.stack([piece.total for piece in pieces]))
    query = LabelledVectors(["x", "y"], rng.normal(size=(2, 4)) + common)
    head = keys.head("dense", query, pieces.__getitem__, is_relative=True)
    plain = keys.head("dense", query, pieces.__getitem__)
    np.testing.assert_array_equal(head.scores, plain.scores)
    mean = keys.vectors.mean(axis=0)
    for i, own in enumerate(pieces):
        parts = list(head.parts(i))
        assert_adds_up([part.value for part in parts], head.scores[i])
        for word, vector in zip(query.labels, query.vectors, strict=True):
            added = sum(part.value for part in parts if part.query == word)
            assert added == pytest.approx(vector @ (own.total - mean), abs=1e-6)
    # Against the mean item, no constant is left.
    fused = fuse([head], [1.0])
    parts = list(fused.parts(3))
    assert_adds_up([part.value for part in parts], fused.scores[3])
    assert None not in {part.query for part in parts}
