"""Keys searched in blocks: as by brute force, in little memory, whatever the threads do."""

import tracemalloc

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks.support.dense_search import search_dense
from qkvsearch.scores import topk


def whole(rng, shape):
    """Small whole numbers: their products are exact in any order, and many tie."""
    return rng.integers(-2, 3, size=shape).astype(np.float32)


def by_sorting(scores, k, mask=None):
    allowed = np.arange(len(scores)) if mask is None else np.flatnonzero(mask)
    return allowed[np.lexsort((allowed, -scores[allowed]))][:k]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(topk, "PRODUCTS", 256)
    monkeypatch.setattr(topk, "MAX_QUERIES", 8)


@pytest.mark.parametrize("n", [1, 2, 7, 20])
@pytest.mark.parametrize("k", [0, 1, 10, 999])
@pytest.mark.parametrize("share", [None, 0.0, 0.01, 0.6, 1.0])
@pytest.mark.usefixtures("small_blocks")
def test_as_by_sorting_all_scores_with_ties_and_masks(n, k, share):
    rng = np.random.default_rng(n + k)
    queries, keys = whole(rng, (n, 5)), whole(rng, (700, 5))
    mask = None if share is None else rng.random(700) < share
    positions, scores = search_dense(queries, keys, k, mask)
    products = queries @ keys.T
    for i in range(n):
        expected = by_sorting(products[i], k, mask)
        assert positions[i].tolist() == expected.tolist()
        assert scores[i].tolist() == products[i, expected].tolist()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("order", ["rising", "falling", "equal"])
def test_no_order_of_the_keys_matters(order):
    keys = {"rising": np.arange(900), "falling": -np.arange(900), "equal": np.ones(900)}[order]
    positions, _ = search_dense(np.ones((3, 1), np.float32), keys[:, None].astype(np.float32), 4)
    expected = [899, 898, 897, 896] if order == "rising" else [0, 1, 2, 3]
    assert positions.tolist() == [expected] * 3


@pytest.mark.parametrize("n", [0, 1, 3])
def test_without_keys_there_is_nothing(n):
    positions, scores = search_dense(np.ones((n, 4), np.float32), np.ones((0, 4), np.float32), 5)
    assert positions.shape == scores.shape == (n, 0)


@pytest.mark.parametrize("n", [1, 3])
def test_a_nan_comes_last(n):
    keys = np.array([[np.nan], [1], [2]], np.float32)
    assert search_dense(np.ones((n, 1), np.float32), keys, 3)[0].tolist() == [[2, 1, 0]] * n


@pytest.mark.parametrize("n", [1, 3])
def test_what_does_not_fit_is_refused(n):
    queries, keys = np.ones((n, 4), np.float32), np.ones((9, 4), np.float32)
    with pytest.raises(ValueError, match="must be"):
        search_dense(queries[:, :3], keys, 2)
    with pytest.raises(ValueError, match="mask"):
        search_dense(queries, keys, 2, np.ones(8, bool))
    with pytest.raises(ValueError, match="negative"):
        search_dense(queries, keys, -1)


def test_a_memory_map_is_read_in_little_memory_and_threads_agree(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "keys.npy", whole(rng, (200_000, 32)))
    keys = np.load(tmp_path / "keys.npy", mmap_mode="r")
    queries = whole(rng, (64, 32))
    search_dense(queries, keys[:9], 10)
    tracemalloc.start()
    several = search_dense(queries, keys, 10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All products would be 51 MB. Each thread holds two arrays of a block's.
    assert peak < 30e6
    with threadpool_limits(1, "blas"):
        alone = search_dense(queries, keys, 10)
    assert np.array_equal(several[0], alone[0])
    assert np.array_equal(several[1], alone[1])
