"""Online softmax: parts that are merged; keys and values in files."""

import tracemalloc

import numpy as np
import pytest

from qkvsearch.attention import attention
from qkvsearch.attention.blockwise import Partial
from tests.attention.numbers import random

INF = np.inf


def dense(*args, **options):
    """What `attention` gives where it must hold every weight."""
    return attention(*args, return_weights=True, **options)[0]


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
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < keys.nbytes / 8
    expected = dense(q, keys, values)
    np.testing.assert_allclose(output, expected, atol=1e-3 if dtype == "float16" else 1e-5)


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
