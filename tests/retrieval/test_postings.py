"""Word queries answered in a batch: as one by one by the lexical head."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from qkvsearch.retrieval import LexicalKeys, top_k
from qkvsearch.retrieval.postings import search_postings
from qkvsearch.texts.analysis import Token
from qkvsearch.texts.vocabulary import Vocabulary


@pytest.mark.parametrize("k", [0, 1, 10, 9999])
def test_as_the_lexical_head(k):
    rng = np.random.default_rng(0)
    counts = csr_matrix(rng.poisson(0.05, size=(1500, 26)).astype(np.float32))
    words = [chr(97 + i) for i in range(26)]
    keys = LexicalKeys.from_counts(Vocabulary.of(words), counts)
    queries = [rng.integers(26, size=n) for n in rng.integers(0, 5, size=60)]
    arrays = keys.indptr, keys.indices, keys.weights, keys.n_items
    for query, (positions, scores) in zip(
        queries, search_postings(*arrays, queries, k), strict=True
    ):
        head = keys.head([Token(words[i], words[i]) for i in query])
        expected = [] if head is None else top_k(head.scores, k, head.answers)
        assert positions.tolist() == list(expected)
        if head is not None:
            np.testing.assert_allclose(scores, head.scores[positions], rtol=1e-6)


@pytest.mark.parametrize("k", [1, 10, 5000, 30_000])
def test_ties_come_by_position_among_more_items_than_a_block_holds(k):
    """Of 20,000 texts of one or two words each, thousands have the same score."""
    rng = np.random.default_rng(1)
    first, second = rng.integers(6, size=(2, 20_000))
    counts = np.zeros((20_000, 6), np.float32)
    counts[np.arange(20_000), first] += 1
    counts[np.arange(20_000), second] += 1
    keys = LexicalKeys.from_counts(Vocabulary.of(list("abcdef")), csr_matrix(counts))
    arrays = keys.indptr, keys.indices, keys.weights, keys.n_items
    queries = [np.array([0]), np.array([2, 5]), np.array([1, 1, 3])] * 20
    found = search_postings(*arrays, queries, k)
    for query, (positions, scores) in zip(queries[:3], found, strict=False):
        head = keys.head([Token("abcdef"[i], "abcdef"[i]) for i in query])
        ranked = np.lexsort((np.arange(20_000), -head.scores.astype(np.float64)))
        expected = ranked[head.answers[ranked]][:k]
        assert np.array_equal(positions, expected)
        assert np.array_equal(scores, head.scores[expected])
    for (positions, _), (again, _) in zip(found, found[3:], strict=False):
        assert np.array_equal(positions, again)


def test_without_items_or_queries_nothing_is_found():
    arrays = np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
    assert search_postings(*arrays, 0, [np.array([0])], 5)[0][0].tolist() == []
    assert search_postings(*arrays, 3, [], 5) == []
