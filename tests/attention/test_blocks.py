"""Block by block: the dense result, in little memory, from files, and with threads well kept."""

import tracemalloc

import numpy as np
import pytest

from qkvsearch.attention import (
    attention,
    blockwise,
    dot_score,
    functional,
)
from qkvsearch.attention.functional import attend
from tests.attention.numbers import random

INF, NAN = np.inf, np.nan
MANY = blockwise.FEW_SCORES + 1
SMALL_MASK = np.random.default_rng(7).random((700, 1, 10, 10)) < 0.7


def tensors(dtype, lead=(), L=500, S=600, d=8, dv=5, heads=None):
    """Large enough for the block-wise path, with blocks that do not divide the tokens."""
    q = random(*lead, *([heads[0]] if heads else []), L, d, dtype=dtype)
    k = random(*lead, *([heads[1]] if heads else []), S, d, dtype=dtype, seed=1)
    v = random(*lead, *([heads[1]] if heads else []), S, dv, dtype=dtype, seed=2)
    if q.size // d * S < MANY:
        pytest.fail("too few scores for the block-wise path")
    return q, k, v


OPTIONS = [
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
def test_blocks_give_the_dense_result(dense, options, dtype, atol, empty_rows):
    given = tensors(dtype, lead=(2,))
    expected = dense(*given, empty_rows=empty_rows, **options)
    scale = np.nanmax(np.abs(expected), initial=1)
    got = attention(*given, empty_rows=empty_rows, **options)
    assert got.dtype == dtype
    np.testing.assert_allclose(got / scale, expected / scale, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_shared_heads_and_broadcast_batches(dense, dtype):
    q, k, v = tensors(dtype, heads=(4, 2))
    k, v = k[None, None], v[None]
    got = attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(got, dense(q, k, v, is_causal=True), atol=1e-5)
    assert got.shape == (1, 1, 4, 500, 5)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"mask": np.arange(600) % 3 > 0}])
@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (("float32", "float64", "float32"), "float64"),
        (("float64", "float32", "float32"), "float64"),
        (("float32", "float32", "float64"), "float64"),
        (("float32", "float16", "float32"), "float32"),
        (("float16", "float32", "float16"), "float32"),
    ],
)
def test_arrays_of_several_dtypes_meet_in_the_widest(dense, options, dtypes, expected):
    q, k, v = (x.astype(dtype) for x, dtype in zip(tensors("float32"), dtypes, strict=True))
    got = attention(q, k, v, **options)
    assert got.dtype == expected
    np.testing.assert_allclose(got, dense(q, k, v, **options), atol=1e-5)


def test_the_mean_of_many_half_precision_values_is_not_summed_in_half_precision():
    """600 values of 200 add up to more than the 65,504 that float16 can hold."""
    q, k, v = tensors("float16")
    v[:] = 200
    got = attention(q, k, v, mask=np.zeros(600, bool), empty_rows="uniform")
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, np.full((500, 5), 200))


def test_arrays_that_are_not_contiguous(dense):
    q, k, v = (np.asfortranarray(x) for x in tensors("float32"))
    np.testing.assert_allclose(attention(q, k, v), dense(q, k, v), atol=1e-5)
    np.testing.assert_allclose(attention(q[::-1], k, v), dense(q[::-1], k, v), atol=1e-5)


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
def test_scores_too_large_for_exp(dense, dtype):
    q, k, v = tensors(dtype)
    # Each block of keys has larger scores than the one before, then smaller ones.
    k *= np.minimum(np.arange(600), 1000 - np.arange(600))[:, None]
    np.testing.assert_allclose(attention(q, k, v), dense(q, k, v), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [{"is_causal": True, "causal_offset": offset} for offset in (-40, -1, 13)]
    + [{"window": (550, 0)}, {"window": (0, 300)}],
)
@pytest.mark.parametrize("size", [0.001, 1.0, 3.0])
def test_a_block_that_a_row_does_not_see_leaves_its_peak_alone(dense, options, size):
    q, k = np.full((900, 4), 10, np.float32), np.full((900, 4), -20, np.float32)
    k[512:] = size
    v = random(900, 3, dtype="float32")
    np.testing.assert_allclose(attention(q, k, v, **options), dense(q, k, v, **options), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("far", [10**6, 2**63, 10**30])
def test_a_window_wider_than_any_text_hides_nothing(dtype, far):
    given = tensors(dtype)
    for options in ({"window": (far, far)}, {"window": (far, None), "causal_offset": far - 600}):
        np.testing.assert_allclose(attention(*given, **options), attention(*given), atol=1e-6)
    assert not attention(*given, window=(5, 5), causal_offset=far).any()


def test_an_infinite_softcap_is_none():
    given = tensors("float64")
    np.testing.assert_array_equal(attention(*given, softcap=INF), attention(*given))


@pytest.mark.parametrize("later", [79.0, 81.0, 500.0])
@pytest.mark.parametrize("size", [1.0, 1e6])
def test_scores_far_above_those_that_were_seen_first(dense, later, size):
    """Exponentials of scores above the peak are finite, or the result is found in another way."""
    q, k = np.full((300, 4), 10, np.float32), np.zeros((900, 4), np.float32)
    k[:, 0] = np.linspace(0, 1, 900)
    k[600:640, 0] = later / 5  # scores are 5 times that
    v = size * random(900, 3, dtype="float32")
    np.testing.assert_allclose(attention(q, k, v), dense(q, k, v), rtol=2e-5, atol=1e-4 * size)


def test_a_total_too_large_for_float32_is_not_taken_for_a_result(dense):
    q, k = np.full((300, 1), 9, np.float32), np.full((20_000, 1), 79 / 9, np.float32)
    k[:512] = 0
    v = np.full((20_000, 1), 1e-3, np.float32)
    np.testing.assert_allclose(attention(q, k, v), dense(q, k, v), rtol=1e-4)


@pytest.mark.parametrize("block_size", ["auto", 1, 2, 3])
def test_a_weight_that_is_0_beside_all_keys_takes_nothing_in_whatever_blocks(block_size):
    """A weight may be above 0 beside the keys of each next block, and 0 beside them all."""
    keys, values = [[0.0], [500.0], [1000.0]], [[np.inf], [1.0], [2.0]]
    assert attention([[1.0]], keys, values, scale=1, block_size=block_size).tolist() == [[2]]


@pytest.mark.parametrize("block_size", ["auto", 1, 2, 3])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_term_above_0_whose_share_is_0_takes_nothing_in_whatever_blocks(block_size, value):
    """exp(−744.5) is the smallest number there is; half of it is 0."""
    keys, values = [[0.0], [744.5], [744.5]], [[value], [1.0], [3.0]]
    assert np.exp(-744.5) > 0 == np.exp(-744.5) / 2
    assert attention([[1.0]], keys, values, scale=1, block_size=block_size).tolist() == [[2]]


# --- which path ---


@pytest.fixture
def compiled_parts(monkeypatch):
    """For every part computed in compiled code, whether it could be used."""
    parts = []
    original = blockwise._in_compiled_code

    def spy(*args):
        part = original(*args)
        parts.append(bool(np.isfinite(part.mixed).all()))
        return part

    monkeypatch.setattr(blockwise, "_in_compiled_code", spy)
    return parts


@pytest.mark.parametrize("scale", [1.0, 40.0, 1e4])
def test_plain_float32_runs_in_compiled_code(dense, compiled_parts, scale):
    given = tensors("float32", lead=(2,))
    got = attention(*given, scale=scale, is_causal=True)
    assert len(compiled_parts) >= 2
    assert all(compiled_parts)
    # Scores are rounded to 24 bits, and so are off by more the larger they are.
    expected = dense(*given, scale=scale, is_causal=True)
    np.testing.assert_allclose(got, expected, atol=1e-5 + 1e-6 * scale)


@pytest.mark.parametrize("options", [{}, {"mask": SMALL_MASK}, {"is_causal": True}])
@pytest.mark.parametrize("heads", [1, 2, 6])
def test_many_small_matrices_are_computed_together(
    dense, compiled_parts, monkeypatch, options, heads
):
    monkeypatch.setattr(functional, "MANY_SCORES", 1000)
    q = random(700, 6, 10, 4, dtype="float32")
    k, v = (random(1, heads, 10, 4, dtype="float32", seed=i) for i in (1, 2))
    assert MANY < 700 * 6 * 100
    seen = []
    monkeypatch.setattr(
        functional, "attend", lambda q, k, v, rule: seen.append(q.shape) or attend(q, k, v, rule)
    )
    got = attention(q, k, v, **options)
    assert len(seen) > 100
    assert not compiled_parts
    np.testing.assert_allclose(got, dense(q, k, v, **options), atol=1e-5)


def blocks_scored(**options):
    """The queries and keys of each block that is scored, under a custom score."""
    seen = []

    def spy(query, key, scale):
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


def test_memory_grows_with_the_tokens_not_with_their_pairs(dense):
    n = 16_384
    q, k, v = (random(n, 64, dtype="float32", seed=i) for i in range(3))
    attention(q[:512], k[:1024], v[:1024])  # compiled before it is measured
    tracemalloc.start()
    output = attention(q, k, v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 2**20, "all scores at once would be 1 GiB"
    np.testing.assert_allclose(output[-3:], dense(q[-3:], k, v), atol=1e-5)
