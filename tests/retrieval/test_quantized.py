"""int8 keys: the neighbours that float32 keys have, with exact scores."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.retrieval.quantized import QuantizedKeys
from qkvsearch.retrieval.topk import search_dense


def recall(found, exact):
    return np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, exact, strict=True)])


def drawn(kind, n, rng):
    noise = rng.standard_normal((n, 64), np.float32)
    if kind == "random":
        return noise
    centres = np.random.default_rng(9).standard_normal((50, 64), np.float32)
    return centres[rng.integers(50, size=n)] + 0.1 * noise


@pytest.mark.parametrize("kind", ["random", "clustered"])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_the_ten_nearest_are_found(kind, n):
    rng = np.random.default_rng(3)
    keys, queries = drawn(kind, 20_000, rng), drawn(kind, n, rng)
    positions, scores = QuantizedKeys.from_keys(keys).search(queries, keys, 10)
    exact, expected = search_dense(queries, keys, 10)
    assert recall(positions, exact) >= 0.99
    # A missed neighbour moves those after it up by one, to scores all but as good.
    np.testing.assert_allclose(scores, expected, rtol=2e-2)
    for i, query in enumerate(queries):
        np.testing.assert_allclose(scores[i], keys[positions[i]] @ query, rtol=1e-5)


def test_a_code_is_within_half_a_step():
    keys = np.random.default_rng(0).standard_normal((500, 16)).astype(np.float32)
    keys[0], keys[1], keys[2] = 0, 1e-42, 3e38
    quantized = QuantizedKeys.from_keys(keys, rows=64)
    rebuilt = quantized.codes * quantized.scales[:, None].astype(np.float64)
    assert (np.abs(rebuilt - keys)[3:] <= 0.501 * quantized.scales[3:, None]).all()
    assert not rebuilt[0].any()
    np.testing.assert_allclose(rebuilt[2], 3e38, rtol=1e-5)


@pytest.mark.parametrize("n", [1, 5])
def test_masks_too_few_keys_and_none(n, tmp_path):
    rng = np.random.default_rng(1)
    keys, queries = drawn("random", 300, rng), drawn("random", n, rng)
    mask = rng.random(300) < 0.1
    quantized = QuantizedKeys.from_keys(keys)
    positions, _ = quantized.search(queries, keys, 500, mask)
    assert np.array_equal(positions, search_dense(queries, keys, 500, mask)[0])
    assert quantized.search(queries, keys, 5, np.zeros(300, bool))[0].shape == (n, 0)
    empty = QuantizedKeys.from_keys(keys[:0])
    assert len(empty) == 0
    assert empty.search(queries, keys[:0], 5)[0].shape == (n, 0)


@pytest.mark.parametrize("n", [1, 2, 3, 40, 130])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_keys_that_tie_come_by_position_beyond_every_block(n, masked, dtype):
    """20,000 keys, more than a block scores at once, are 40 vectors over and over; the queries are
    single letters, so that all products are exact.
    """
    rng = np.random.default_rng(2)
    distinct = np.eye(40, 48) * rng.permutation(np.arange(1, 41))[:, None]
    kinds = rng.integers(40, size=20_000)
    keys = distinct[kinds].astype(np.float32)
    asked = rng.integers(40, size=n)
    queries = np.eye(48)[asked].astype(dtype)
    mask = rng.random(20_000) < 0.5 if masked else None
    positions, scores = QuantizedKeys.from_keys(keys).search(queries, keys, 7, mask)
    for found, score, kind in zip(positions, scores, asked, strict=True):
        left = kinds == kind if mask is None else (kinds == kind) & mask
        assert found.tolist() == np.flatnonzero(left)[:7].tolist()
        assert np.array_equal(score, np.full(7, distinct[kind, kind], np.float32))


def test_it_is_stored_and_opened_as_memory_maps(tmp_path):
    keys = drawn("random", 300, np.random.default_rng(1))
    for name, array in QuantizedKeys.from_keys(keys).arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
    opened = {path.stem: np.load(path, mmap_mode="r") for path in tmp_path.iterdir()}
    for n in (1, 5):
        found, _ = QuantizedKeys.from_arrays(opened).search(keys[:n], keys, 3)
        assert found[:, 0].tolist() == list(range(n))


def test_what_does_not_fit_is_refused():
    keys = np.ones((4, 3), np.float32)
    quantized = QuantizedKeys.from_keys(keys)
    with pytest.raises(ValueError, match="quantized"):
        quantized.search(keys, keys[:2], 1)
    with pytest.raises(ValueError, match="fit"):
        quantized.search(keys[:, :2], keys, 1)
    with pytest.raises(ValueError, match="finite"):
        QuantizedKeys.from_keys(keys * np.nan)
    with pytest.raises(ValueError, match=r"\(N, d\)"):
        QuantizedKeys.from_keys(keys[0])
