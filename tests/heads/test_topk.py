"""The k best, exactly: against sorting everything, with ties and masks, on both sides of the size
from which on most blocks of scores are not looked into.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.support.dense_search import search_dense
from qkvsearch.scores.topk import BLOCK, MAX_KEYS, MAX_QUERIES, _block_candidates, top_k

# Few values, so that most draws have ties at the threshold.
scores = st.lists(st.sampled_from([-2.0, 0.0, 1.0, 1.5]), max_size=30)


@given(scores, st.integers(0, 35), st.randoms())
def test_top_k_is_the_beginning_of_a_full_sort(values, k, random):
    mask = [random.random() < 0.6 for _ in values]
    expected = sorted(
        (i for i, allowed in enumerate(mask) if allowed), key=lambda i: (-values[i], i)
    )[:k]
    found = top_k(np.array(values, dtype=np.float32), k, np.array(mask, dtype=bool))
    assert found.tolist() == expected


@given(scores, st.integers(0, 35))
def test_without_a_mask_everything_may_be_ranked(values, k):
    found = top_k(np.array(values), k)
    assert found.tolist() == sorted(range(len(values)), key=lambda i: (-values[i], i))[:k]
    assert found.dtype == np.int64


@pytest.mark.parametrize("k", [0, 1, 3, 4, 99])
def test_all_equal_scores_come_in_order(k):
    assert top_k(np.ones(4), k).tolist() == list(range(4))[:k]


@pytest.mark.parametrize("k", [0, 1, 99])
def test_a_mask_that_leaves_nothing_gives_nothing(k):
    assert top_k(np.ones(4), k, np.zeros(4, dtype=bool)).tolist() == []


def test_infinite_scores_are_ordinary_candidates():
    values = np.array([0.0, np.inf, -np.inf, np.inf])
    assert top_k(values, 0).tolist() == []
    assert top_k(values, 1).tolist() == [1]
    assert top_k(values, 3).tolist() == [1, 3, 0]


# --- more scores than the threshold of the fast path ---

# Blocks and a rest that fills none; k up to 4 are found by large blocks, up to 20 by small ones.
MANY = 40 * BLOCK + 77


def best(values, k, mask=None):
    """The same by sorting all of them."""
    places = np.arange(len(values)) if mask is None else np.flatnonzero(mask)
    return places[np.lexsort((places, -values[places].astype(np.float64)))][:k].tolist()


def drawn(kind, rng):
    """Scores that are all different, few different ones, or equal but for a handful."""
    if kind == "different":
        return rng.standard_normal(MANY)
    if kind == "few":
        return rng.integers(0, 5, MANY).astype(float)
    values = np.zeros(MANY)
    values[rng.integers(0, MANY, 3)] = 1
    return values


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
@pytest.mark.parametrize("kind", ["different", "few", "equal"])
@pytest.mark.parametrize("left", [None, 0.5, 0.002])
def test_many_scores_are_ranked_as_a_full_sort_ranks_them(dtype, kind, left):
    rng = np.random.default_rng(7)
    values = drawn(kind, rng).astype(dtype)
    mask = None if left is None else rng.random(MANY) < left
    for k in (1, 2, 4, 5, 18, 600):
        assert top_k(values, k, mask).tolist() == best(values, k, mask)


@pytest.mark.parametrize("k", [1, 4, 18])
def test_a_mask_that_hides_the_first_of_many_ties_leaves_the_later_ones(k):
    values = np.ones(MANY, dtype=np.float32)
    for hidden in (BLOCK, 10 * BLOCK, 39 * BLOCK, MANY - 2):
        mask = np.arange(MANY) >= hidden
        assert top_k(values, k, mask).tolist() == list(range(hidden, min(hidden + k, MANY)))


def test_ties_that_the_mask_scatters_over_many_blocks_are_all_found():
    """Over 4,096 scores are equal, in more blocks than are looked into, and the first are hidden:
    without a second look there would be no hits.
    """
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values = np.zeros(MANY, dtype=np.float32)
        tied = rng.permutation(40)[:18] * BLOCK
        values[(tied[:, None] + np.arange(300)).ravel()] = 1
        mask = np.ones(MANY, dtype=bool)
        for start in np.sort(tied)[:16]:
            mask[start : start + BLOCK] = False
        for k in (1, 2, 4, 18):
            assert top_k(values, k, mask).tolist() == best(values, k, mask)


def test_the_fast_path_is_reached_and_left_as_said():
    values = np.arange(MANY, dtype=np.float32)
    assert _block_candidates(values, 4, None) is not None
    assert _block_candidates(values, 6, None) is not None
    assert _block_candidates(values, 21, None) is None
    assert _block_candidates(values.astype(np.int64), 4, None) is None
    assert _block_candidates(np.where(values == 3, np.nan, values), 4, None) is None
    assert _block_candidates(values, 4, np.zeros(MANY, dtype=bool)) is None


@pytest.mark.parametrize("dtypes", [(np.float32, np.float16), (np.float64, np.float32)])
@pytest.mark.parametrize("n_queries", [1, 3, MAX_QUERIES + 2])
def test_many_keys_are_ranked_as_all_products_are(dtypes, n_queries):
    """More queries than one pass takes, more keys than one block has, ties, a mask, two dtypes."""
    rng = np.random.default_rng(3)
    queries = rng.integers(-2, 3, (n_queries, 4)).astype(dtypes[0])
    keys = rng.integers(-2, 3, (MAX_KEYS + 500, 4)).astype(dtypes[1])
    mask = rng.random(len(keys)) < 0.7
    mask[:2000] = False
    positions, scores = search_dense(queries, keys, 9, mask)
    products = keys.astype(np.float64) @ queries.astype(np.float64).T
    for column, (places, values) in enumerate(zip(positions, scores, strict=True)):
        assert places.tolist() == best(products[:, column], 9, mask)
        np.testing.assert_array_equal(values, products[places, column])
