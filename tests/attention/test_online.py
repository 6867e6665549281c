"""Partial results: attention over some of the keys, merged; keys and values in files."""

import tracemalloc

import numpy as np
import pytest

from qkvsearch.attention import Partial, attention, partial_attention
from tests.attention.numbers import random

INF = np.inf


def tensors(dtype):
    return tuple(random(n, d, dtype=dtype, seed=d) for n, d in ((500, 8), (600, 8), (600, 5)))


def dense(*args, **options):
    """What `attention` gives where it must hold every weight."""
    return attention(*args, return_weights=True, **options)[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", [{}, {"scale": 30.0}, {"is_causal": True}, {"window": (90, 9)}])
def test_partial_results_merge_in_any_order(dtype, options):
    q, k, v = tensors(dtype)
    parts = [
        partial_attention(q, k[i : i + 150], v[i : i + 150], causal_offset=20 - i, **options)
        for i in range(0, 600, 150)
    ]
    whole = dense(q, k, v, causal_offset=20, **options)
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        merged = parts[order[0]]
        for i in order[1:]:
            merged = merged.merge(parts[i])
        np.testing.assert_allclose(merged.output(), whole, atol=3e-5)


def test_merging_with_nothing_changes_nothing():
    q, k, v = tensors("float64")
    part = partial_attention(q, k, v)
    nothing = partial_attention(q, k, v, mask=np.zeros(600, bool))
    for merged in (part.merge(nothing), nothing.merge(part)):
        np.testing.assert_array_equal(merged.output(), part.output())
    assert not nothing.output().any()
    assert not nothing.merge(nothing).output().any()


def test_an_infinite_value_whose_weight_shrinks_to_0_takes_nothing():
    small = Partial(np.array([0.0]), np.array([1.0]), np.array([[INF]]))
    large = Partial(np.array([1e4]), np.array([1.0]), np.array([[3.0]]))
    assert small.merge(large).output() == [[3.0]]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_keys_and_values_in_files_are_read_block_by_block(tmp_path, dtype):
    q = random(3, 64, dtype=dtype)
    keys, values = random(100_000, 64, dtype=dtype, seed=1), random(100_000, 8, dtype=dtype, seed=2)
    np.save(tmp_path / "keys.npy", keys)
    np.save(tmp_path / "values.npy", values)
    k, v = (np.load(tmp_path / name, mmap_mode="r") for name in ("keys.npy", "values.npy"))
    attention(q, k[:90_000], v[:90_000])
    tracemalloc.start()
    output = attention(q, k, v)
    halves = [partial_attention(q, k[i], v[i]) for i in (slice(50_000), slice(50_000, None))]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < keys.nbytes / 8
    expected = dense(q, keys, values)
    np.testing.assert_allclose(output, expected, atol=1e-3 if dtype == "float16" else 1e-5)
    np.testing.assert_allclose(halves[0].merge(halves[1]).output(), expected, atol=1e-3)


def test_an_empty_row_does_not_bring_a_whole_file_into_memory(tmp_path):
    np.save(tmp_path / "x.npy", random(100_000, 64, dtype="float16"))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    q = random(3, 64, dtype="float16")
    mask = np.array([[True], [False], [True]])
    attention(q, x[:90_000], x[:90_000], mask=mask)
    tracemalloc.start()
    output = attention(q, x, x, mask=mask)
    uniform = attention(q, x, x, mask=mask, empty_rows="uniform")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.nbytes / 8
    assert not output[1].any()
    np.testing.assert_allclose(uniform[1], x.mean(axis=0, dtype=np.float32), atol=1e-3)


@pytest.mark.parametrize("option", ["normalize", "empty_rows", "block_size", "return_weights"])
def test_a_partial_result_takes_no_option_that_needs_all_keys(option):
    with pytest.raises(TypeError, match=f"takes no {option}"):
        partial_attention([[1.0]], [[1.0]], [[1.0]], **{option: "none"})


def test_partial_attention_is_for_numpy():
    torch = pytest.importorskip("torch", reason="needs torch")
    x = torch.ones(3, 2)
    with pytest.raises(TypeError, match="takes NumPy arrays, got Tensor"):
        partial_attention(x, x, x)
