"""Block by block: the dense result, in little memory, from files, and with threads well kept."""

from __future__ import annotations

import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from qkvsearch.attention import Partial, attention, blocks, dot_score, partial_attention

INF, NAN = np.inf, np.nan
MANY = blocks.FEW_SCORES + 1


def random(*shape: int, dtype: str = "float64", seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def tensors(dtype: str, lead=(), L=500, S=600, d=8, dv=5, heads=None) -> tuple[np.ndarray, ...]:
    """Large enough for the block-wise path, with blocks that do not divide the tokens."""
    q = random(*lead, *([heads[0]] if heads else []), L, d, dtype=dtype)
    k = random(*lead, *([heads[1]] if heads else []), S, d, dtype=dtype, seed=1)
    v = random(*lead, *([heads[1]] if heads else []), S, dv, dtype=dtype, seed=2)
    if q.size // d * S < MANY:
        pytest.fail("too few scores for the block-wise path")
    return q, k, v


def dense(*args: Any, **options: Any) -> Any:
    """What `attention` gives where it must hold every weight."""
    return attention(*args, return_weights=True, **options)[0]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"is_causal": True},
    {"is_causal": True, "causal_offset": 100},
    {"is_causal": True, "causal_offset": -40},
    {"window": (70, 30)},
    {"window": (0, 0), "causal_offset": 50},
    {"window": (None, 5), "is_causal": True},
    {"window": (9, None), "causal_offset": 700},
    {"scale": 40.0},
    {"scale": -3.0, "is_causal": True},
    {"softcap": 2.0, "window": (400, 0)},
    {"score": "cosine", "scale": 5.0},
    {"normalize": "relu", "is_causal": True},
    {"normalize": "none", "window": (60, 60)},
    {"mask": np.random.default_rng(5).random((500, 600)) < 0.01},
    {"mask": np.arange(600) < 100},
    {"bias": np.where(np.arange(600) % 7, 0.5, -INF), "is_causal": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ", ".join(options) or "plain")
@pytest.mark.parametrize(("dtype", "atol"), [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("empty_rows", ["zero", "uniform", "nan"])
def test_blocks_give_the_dense_result(options, dtype, atol, empty_rows):
    given = tensors(dtype, lead=(2,))
    expected = dense(*given, empty_rows=empty_rows, **options)
    scale = np.nanmax(np.abs(expected), initial=1)
    got = attention(*given, empty_rows=empty_rows, **options)
    assert got.dtype == dtype
    np.testing.assert_allclose(got / scale, expected / scale, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_shared_heads_and_broadcast_batches(dtype):
    q, k, v = tensors(dtype, heads=(4, 2))
    k, v = k[None, None], v[None]
    got = attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(got, dense(q, k, v, is_causal=True), atol=1e-5)
    assert got.shape == (1, 1, 4, 500, 5)


def test_half_precision_is_converted_block_by_block():
    q, k, v = tensors("float16")
    got = attention(q, k, v)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, dense(q, k, v), atol=1e-3)


def test_arrays_that_are_not_contiguous():
    q, k, v = (np.asfortranarray(x) for x in tensors("float32"))
    np.testing.assert_allclose(attention(q, k, v), dense(q, k, v), atol=1e-5)
    np.testing.assert_allclose(attention(q[::-1], k, v), dense(q[::-1], k, v), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", [{"mask": np.zeros(600, bool)}, {"causal_offset": -900}])
def test_a_fully_masked_row_is_exact_zeros(dtype, options):
    output = attention(*tensors(dtype), is_causal=True, **options)
    assert not output.any()
    assert not np.isnan(output).any()


def test_an_empty_row_can_raise():
    with pytest.raises(ValueError, match="nothing to attend to among its 600 keys"):
        attention(*tensors("float32"), is_causal=True, causal_offset=-5, empty_rows="raise")


@pytest.mark.parametrize("poison", [NAN, INF, -INF])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nothing_leaks_from_a_key_that_is_hidden(poison, dtype):
    q, k, v = tensors(dtype)
    clean = attention(q, k, v, is_causal=True)
    k[290:], v[290:] = poison, poison
    broken = attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(broken[:290], clean[:290], atol=1e-6)
    assert not np.isfinite(broken[295]).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_too_large_for_exp(dtype):
    q, k, v = tensors(dtype)
    # Each block of keys has larger scores than the one before, then smaller ones.
    k *= np.minimum(np.arange(600), 1000 - np.arange(600))[:, None]
    np.testing.assert_allclose(attention(q, k, v), dense(q, k, v), rtol=1e-4, atol=1e-4)


def blocks_scored(**options: Any) -> list[tuple[int, int]]:
    """The queries and keys of each block that is scored, under a custom score."""
    seen = []

    def spy(query: np.ndarray, key: np.ndarray, scale: float | None) -> np.ndarray:
        seen.append((query.shape[-2], key.shape[-2]))
        return dot_score(query, key, scale)

    x = random(100, 2)
    attention(x, x, x, score=spy, **options)
    return sorted(seen)


def test_block_size_is_the_number_of_queries_and_keys_at_a_time():
    assert blocks_scored(block_size=60) == [(40, 40), (40, 60), (60, 40), (60, 60)]
    assert blocks_scored(block_size=1000) == [(100, 100)]


def test_few_scores_and_all_weights_are_computed_at_once():
    assert blocks_scored() == [(100, 100)]
    assert blocks_scored(block_size=60, return_weights=True) == [(100, 100)]


def test_blocks_that_a_mask_empties_are_skipped():
    triangle = [(25, 25)] * 10
    assert blocks_scored(block_size=25, is_causal=True) == triangle
    assert blocks_scored(block_size=25, mask=np.tri(100, dtype=bool)) == triangle
    assert blocks_scored(block_size=25, window=(0, 0)) == [(25, 25)] * 4
    assert blocks_scored(block_size=25, mask=np.zeros(100, bool)) == []


def test_memory_grows_with_the_tokens_not_with_their_pairs():
    n = 16_384
    q, k, v = (random(n, 64, dtype="float32", seed=i) for i in range(3))
    attention(q[:512], k[:1024], v[:1024])  # compiled before it is measured
    tracemalloc.start()
    output = attention(q, k, v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 2**20, "all scores at once would be 1 GiB"
    np.testing.assert_allclose(output[-3:], dense(q[-3:], k, v), atol=1e-5)


# --- partial results ---


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
        np.testing.assert_allclose(merged.output(), whole, atol=1e-5)


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


# --- threads ---


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info()]


def test_the_threads_of_blas_are_given_back():
    given = tensors("float32", lead=(4,))
    attention(*given)
    before = blas_threads()
    attention(*given)
    with pytest.raises(ZeroDivisionError):
        attention(*given, score=lambda query, key, scale: 1 / 0)
    assert blas_threads() == before


def test_calls_from_several_threads_at_once_agree():
    given = tensors("float32", lead=(4,))
    expected = attention(*given)
    before = blas_threads()
    outputs: list[np.ndarray] = []
    callers = [threading.Thread(target=lambda: outputs.append(attention(*given))) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(outputs) == 6
    for output in outputs:
        np.testing.assert_array_equal(output, expected)
    assert blas_threads() == before


def test_a_score_may_itself_attend():
    x = random(300, 4)

    def attentive(query: np.ndarray, key: np.ndarray, scale: float | None) -> np.ndarray:
        return dot_score(attention(query, x, x, block_size=50), key, scale)

    got = attention(x, x, x, score=attentive, block_size=100)
    np.testing.assert_allclose(got, dense(x, x, x, score=attentive), atol=1e-12)


def test_partial_attention_is_for_numpy():
    torch = pytest.importorskip("torch", reason="needs torch")
    x = torch.ones(3, 2)
    with pytest.raises(TypeError, match="takes NumPy arrays, got Tensor"):
        partial_attention(x, x, x)
