"""Attention: its definition, every option and every refusal."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qkvsearch.attention import (
    AdditiveScore,
    attention,
    cap,
    cosine_score,
    hide,
    padding_mask,
    softmax,
)
from qkvsearch.attention.masks import add
from tests.attention.numbers import random

# Four tokens a, b, c, D, the last of them padding.
ONE_QUERY, KEYS_1_TO_4 = [[1.0]], [[1.0], [2.0], [3.0], [4.0]]
PADDED = padding_mask([3], size=4)

INF = np.inf
NAN = np.nan


def attend(*args, **options):
    """`attention`, where any warning and any floating-point error is a failure."""
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        return attention(*args, **options)


def weights_of(*args, **options):
    return attend(*args, return_weights=True, **options)[1]


@pytest.mark.parametrize("normalize", ["softmax", "relu", "none"])
def test_a_row_with_nothing_to_attend_to_can_raise(normalize):
    options = {"normalize": normalize, "empty_rows": "raise"}
    with pytest.raises(ValueError, match="nothing to attend to among its 4 keys"):
        attend(ONE_QUERY, KEYS_1_TO_4, np.eye(4), mask=[False] * 4, **options)
    np.testing.assert_array_equal(
        attend(ONE_QUERY, KEYS_1_TO_4, np.eye(4), mask=PADDED, **options),
        attend(ONE_QUERY, KEYS_1_TO_4, np.eye(4), mask=PADDED, normalize=normalize),
    )


# --- what masks must do ---


def test_minus_infinity_wins_over_whatever_it_is_added_to():
    scores, mask = np.array([2.0, -3.0, INF, NAN]), np.full(4, -INF)
    with np.errstate(invalid="ignore"):  # −∞ + ∞ is NaN elsewhere
        np.testing.assert_array_equal(add(scores, mask), mask)
    np.testing.assert_array_equal(hide(scores, [False] * 4), mask)


# --- the definition ---


@dataclass
class Case:
    """One call of attention: q (B, Hq, L, d), k (B, Hk, S, d), v (B, Hk, S, dv) and its options."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    options: dict[str, Any] = field(default_factory=dict)


@st.composite
def cases(draw):
    size = st.integers(1, 4)
    batch, key_heads, group, L, S, d, dv = (draw(size) for _ in range(7))
    heads = key_heads * group
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    shapes = [(S,), (L, S), (1, S), (L, 1), (heads, 1, S), (batch, 1, L, S), (batch, heads, L, S)]
    mask_shape, bias_shape = draw(st.sampled_from(shapes)), draw(st.sampled_from(shapes))
    bias = rng.normal(size=bias_shape)
    bias[rng.random(bias_shape) < 0.2] = -INF
    additive = AdditiveScore(rng.normal(size=(d, 3)), rng.normal(size=(d, 3)), rng.normal(size=3))
    side = st.none() | st.integers(0, 4)
    return Case(
        rng.normal(size=(batch, heads, L, d)),
        rng.normal(size=(batch, key_heads, S, d)),
        rng.normal(size=(batch, key_heads, S, dv)),
        {
            "mask": draw(st.sampled_from([None, rng.random(mask_shape) < 0.6])),
            "bias": draw(st.sampled_from([None, bias])),
            "is_causal": draw(st.booleans()),
            "causal_offset": draw(st.integers(-3, 3)),
            "window": draw(st.none() | st.tuples(side, side)),
            "scale": draw(st.sampled_from([None, 0.5, 3.0])),
            "softcap": draw(st.sampled_from([0.0, 0.7, 20.0])),
            "score": draw(st.sampled_from(["dot", "cosine", additive])),
            "normalize": draw(st.sampled_from(["softmax", "relu", "none"])),
            "empty_rows": draw(st.sampled_from(["zero", "uniform", "nan"])),
        },
    )


@settings(max_examples=75, deadline=None)
@given(cases())
def test_attention_equals_its_definition(dense, case):
    output, weights = attend(case.q, case.k, case.v, return_weights=True, **case.options)
    ones = np.broadcast_to(np.eye(case.k.shape[-2]), (*case.k.shape[:-1], case.k.shape[-2]))
    expected = dense(case.q, case.k, ones, **case.options)  # of such values the outputs are weights
    np.testing.assert_allclose(weights, expected, rtol=1e-9, atol=1e-12)
    expected = dense(case.q, case.k, case.v, **case.options)
    np.testing.assert_allclose(output, expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(cases(), st.integers(1, 5))
def test_any_block_size_gives_the_dense_result(case, block_size):
    dense = attend(case.q, case.k, case.v, **case.options)
    blocks = attend(case.q, case.k, case.v, block_size=block_size, **case.options)
    np.testing.assert_allclose(blocks, dense, rtol=1e-13, atol=1e-14)


# --- shapes ---


def test_plain_lists_give_float64():
    output = attend([[0, 0]], [[1, 2], [3, 4]], [[1], [2]])
    assert output.dtype == np.float64
    assert output.tolist() == [[1.5]]


def test_leading_axes_broadcast():
    q, k, v = random(6, 2, 1, 3, 4), random(2, 1, 5, 4), random(5, 2)
    output, weights = attend(q, k, v, return_weights=True)
    assert output.shape == (6, 2, 1, 3, 2)
    assert weights.shape == (6, 2, 1, 3, 5)
    for a, b in np.ndindex(6, 2):
        np.testing.assert_allclose(output[a, b, 0], attend(q[a, b, 0], k[b, 0], v))


@pytest.mark.parametrize("shape", [(1, 3, 4), (3, 4)], ids=["one head", "no head axis"])
def test_one_query_head_serves_every_key_head(shape):
    q, k = random(*shape), random(5, 2, 4)
    expected = [attend(q.reshape(3, 4), k[h], k[h]) for h in range(5)]
    np.testing.assert_allclose(attend(q, k, k), expected)


def test_no_queries_give_no_rows():
    output, weights = attend(random(0, 3), random(4, 3), random(4, 2), return_weights=True)
    assert output.shape == (0, 2)
    assert weights.shape == (0, 4)
    assert attend(random(0, 3), random(4, 3), random(4, 2), block_size=2).shape == (0, 2)


@pytest.mark.parametrize("normalize", ["softmax", "relu", "none"])
@pytest.mark.parametrize("empty_rows", ["zero", "uniform", "nan"])
def test_no_keys_make_every_row_empty(normalize, empty_rows):
    options = {"normalize": normalize, "empty_rows": empty_rows}
    output, weights = attend(
        random(3, 2), random(0, 2), random(0, 4), is_causal=True, return_weights=True, **options
    )
    np.testing.assert_array_equal(output, np.zeros((3, 4)))
    assert weights.shape == (3, 0)
    for block_size in ("auto", 1, 2):
        blocks = attention(
            random(3, 2), random(0, 2), random(0, 4), block_size=block_size, **options
        )
        np.testing.assert_array_equal(blocks, output)


def test_vectors_of_width_0_attend_evenly():
    np.testing.assert_array_equal(attend(np.ones((1, 0)), np.ones((2, 0)), [[1.0], [3.0]]), [[2.0]])


# --- dtypes ---


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (("float16",) * 3, "float16"),
        (("float32",) * 3, "float32"),
        (("float64",) * 3, "float64"),
        (("int8",) * 3, "float64"),
        (("bool",) * 3, "float64"),
        (("float16", "float32", "float16"), "float32"),
    ],
)
@pytest.mark.parametrize("score", ["dot", "cosine", AdditiveScore(np.eye(3), np.eye(3), [1, 1, 1])])
def test_the_result_has_the_inputs_dtype(dtypes, expected, score):
    q, k, v = (np.eye(3, dtype=dtype) for dtype in dtypes)
    options = {
        "score": score,
        "scale": np.float64(2),
        "softcap": np.float64(9),
        "bias": np.zeros((3, 3)),
    }
    output, weights = attend(q, k, v, return_weights=True, **options)
    assert output.dtype == weights.dtype == attend(q, k, v, **options).dtype == expected


def test_float16_is_computed_in_float32():
    x = np.full((1, 4), 300, np.float16)  # 4 · 300² is beyond float16's largest number, 65504
    assert weights_of(x, np.vstack([x, x]), np.eye(2, dtype=np.float16)).tolist() == [[0.5, 0.5]]
    many = np.ones((4096, 1), np.float16)  # a float16 sum of ones stops at 2048
    assert attend(many[:1], many, many).tolist() == [[1.0]]


def test_inputs_are_left_as_they_were():
    q, k, v, bias = random(2, 3), random(4, 3), random(4, 3), random(2, 4)
    mask = bias > 0
    before = [x.copy() for x in (q, k, v, bias, mask)]
    attend(q, k, v, bias=bias, mask=mask, softcap=5, window=(1, 1))
    for x, y in zip((q, k, v, bias, mask), before, strict=True):
        np.testing.assert_array_equal(x, y)


# --- infinities and NaN ---


@pytest.mark.parametrize("poison", [NAN, INF, -INF])
@pytest.mark.parametrize("normalize", ["softmax", "relu", "none"])
@pytest.mark.parametrize("score", ["dot", "cosine", AdditiveScore(np.eye(2), np.eye(2), [1, 1])])
@pytest.mark.parametrize(
    "hiding",
    [
        {"mask": [True, True, False]},
        {"bias": [0, 0, -INF]},
        {"is_causal": True, "causal_offset": 0},
        {"window": (None, 0)},
    ],
)
def test_nothing_leaks_from_a_hidden_key_or_its_value(poison, normalize, score, hiding):
    q, k, v = random(2, 2), random(3, 2), random(3, 2)
    clean, options = (q, k, v), {"normalize": normalize, "score": score, **hiding}
    spoilt = q, k.copy(), v.copy()
    spoilt[1][2] = spoilt[2][2] = poison
    for expected, found in zip(
        attend(*clean, return_weights=True, **options),
        attend(*spoilt, return_weights=True, **options),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


def test_a_broken_value_hidden_from_one_query_still_reaches_another():
    mask = [[True, True, False], [False, True, True]]
    values = [[1.0, 1.0], [2.0, 2.0], [NAN, INF]]
    output = attend(np.zeros((2, 1)), np.zeros((3, 1)), values, mask=mask)
    np.testing.assert_array_equal(output, [[1.5, 1.5], [NAN, INF]])


def test_a_nan_in_one_batch_leaves_the_others_alone():
    q, k, v = random(2, 3, 2), random(2, 4, 2), random(2, 4, 2)
    expected = attend(q, k, v)
    v[1, 2, 0] = NAN
    found = attend(q, k, v)
    np.testing.assert_allclose(found[0], expected[0])
    np.testing.assert_allclose(found[1, :, 1], expected[1, :, 1])
    assert np.isnan(found[1, :, 0]).all()


def test_a_visible_nan_is_not_hushed_up():
    assert np.isnan(attend([[NAN]], [[1.0], [2.0]], [[1.0], [2.0]])).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sign", [1, -1])
def test_scores_near_the_largest_float_do_not_overflow(dtype, sign):
    largest = np.finfo(dtype).max
    q, k = np.ones((1, 1), dtype), np.array([[1], [1], [-1]], dtype) * (sign * largest)
    assert weights_of(q, k, k, scale=1).tolist() == [[0.5, 0.5, 0] if sign > 0 else [0, 0, 1]]


# --- the verbs ---


def test_cap_is_smooth_and_bounded():
    scores = np.array([-INF, -1e308, 1e-9, 1e308, INF])
    np.testing.assert_allclose(cap(scores, 5), [-5, -5, 1e-9, 5, 5])
    assert cap(scores, 0) is scores


def test_hide_selects_and_never_adds():
    scores = np.array([1e300, NAN, INF, 2.0], np.float64)
    hidden = hide(scores, [False, False, False, True])
    np.testing.assert_array_equal(hidden, [-INF, -INF, -INF, 2.0])
    np.testing.assert_array_equal(hide(scores, None), scores)
    assert hide(np.ones(2, np.float32), [True, False]).dtype == np.float32


def test_softmax_along_another_axis():
    scores = random(3, 4)
    np.testing.assert_allclose(softmax(scores, axis=0), softmax(scores.T).T)


def test_softmax_temperature_divides_the_scores():
    scores = random(5)
    np.testing.assert_allclose(softmax(scores, temperature=0.25), softmax(scores * 4))


@pytest.mark.parametrize("temperature", [1e-3, 1e-300, 5e-324])
def test_softmax_near_temperature_0_is_a_hard_search(temperature):
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(softmax([3.0, 9.0, -INF, 9.0], temperature), [0, 0.5, 0, 0.5])


def test_cosine_ignores_length_and_survives_extremes():
    q = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    k = np.array([[3.0, 4.0], [3e30, 4e30], [3e-40, 4e-40], [0.0, 0.0]], np.float32)
    weights = weights_of(q, k, np.eye(4, dtype=np.float32), score="cosine", normalize="none")
    np.testing.assert_allclose(weights, [[1, 1, 1, 0], [0, 0, 0, 0]], atol=1e-4)
    np.testing.assert_allclose(cosine_score(q[:1], k[:1], scale=7), [[7]], rtol=1e-6)


def test_additive_weights_are_not_rounded_for_whole_numbers():
    score = AdditiveScore(np.full((1, 1), 0.5), np.full((1, 1), 0.25), np.array([0.5]))
    assert score(np.array([[1]]), np.array([[2]])) == pytest.approx(0.5 * math.tanh(1.0))


def test_additive_score_lets_queries_and_keys_differ_in_width():
    score = AdditiveScore(random(3, 4), random(2, 4), random(4))
    q, k = random(5, 3), random(6, 2)
    expected = [[score.w @ np.tanh(x @ score.w_query + y @ score.w_key) for y in k] for x in q]
    np.testing.assert_allclose(weights_of(q, k, k, score=score, normalize="none"), expected)


# --- refusals ---

TOKENS = np.ones((4, 2))
NO_KEYS = (np.ones((2, 4)), np.ones((0, 4)), np.ones((0, 3)))
HEADS = np.ones((4, 3, 2))


@pytest.mark.parametrize(
    ("arrays", "options", "error", "message"),
    [
        ((TOKENS,) * 3, {"mask": np.ones((4, 4))}, TypeError,
         r"mask must be boolean.*got float64.*`bias`.*masks\.keep_from_ignore\(\)"),
        ((TOKENS,) * 3, {"mask": [1, 1, 1, 0]}, TypeError, r"got int64.*\.astype\(bool\)"),
        ((TOKENS,) * 3, {"bias": [True] * 4}, TypeError, r"bias must be numbers.*bool.*`mask`"),
        ((TOKENS,) * 3, {"mask": [True] * 3}, ValueError,
         r"mask of shape \(3,\) does not broadcast to .* \(4, 4\)"),
        ((TOKENS,) * 3, {"bias": np.ones((3, 4))}, ValueError, r"bias of shape \(3, 4\)"),
        ((TOKENS[:1], TOKENS, TOKENS), {"mask": np.ones((4, 4), bool)}, ValueError,
         r"mask of shape \(4, 4\) does not broadcast to .* \(1, 4\)"),
        ((TOKENS, np.ones((4, 3)), TOKENS), {}, ValueError,
         r"same width d, got shapes \(4, 2\) and \(4, 3\)"),
        ((TOKENS, np.ones((4, 3)), TOKENS), {"score": "cosine"}, ValueError, r"same width d"),
        ((TOKENS, TOKENS, np.ones((3, 2))), {}, ValueError,
         r"key and value .* tokens S, got shapes \(4, 2\) and \(3, 2\)"),
        ((np.ones(2), TOKENS, TOKENS), {}, ValueError, r"query must have axes .* shape \(2,\)"),
        ((HEADS, HEADS[:3], HEADS[:3]), {}, ValueError,
         r"query's 4 heads must be a multiple of key's 3.*\(4, 3, 2\) and \(3, 3, 2\)"),
        ((HEADS, HEADS[:0], HEADS[:0]), {}, ValueError, r"4 heads must be a multiple of key's 0"),
        ((HEADS, HEADS[:2], HEADS), {}, ValueError, r"do not broadcast.*key \(2, 3, 2\), value"),
        ((HEADS[:, None], HEADS[:2, None], HEADS[:2, None]), {}, ValueError,
         r"leading axes do not broadcast together: query \(4, 1, 3, 2\), key \(2, 1, 3, 2\)"),
        ((TOKENS + 1j, TOKENS, TOKENS), {}, TypeError, r"real numbers, got complex128"),
        (([["a"]], [["b"]], [["c"]]), {}, TypeError, r"real numbers, got <U1"),
        ((TOKENS,) * 3, {"score": "dott"}, ValueError, r"score must be one of dot, cosine, got"),
        ((TOKENS,) * 3, {"normalize": "max"}, ValueError, r"one of softmax, relu, none, got 'max'"),
        ((TOKENS,) * 3, {"empty_rows": "one"}, ValueError, r"zero, uniform, nan, raise, got 'one'"),
        ((TOKENS,) * 3, {"softcap": -1}, ValueError, r"softcap must be positive.*got -1"),
        (NO_KEYS, {"softcap": -1, "block_size": 4}, ValueError, r"softcap must be positive"),
        ((TOKENS,) * 3, {"block_size": True}, ValueError, r"positive integer, got True"),
        ((TOKENS,) * 3, {"window": (-1, 0)}, ValueError, r"left side.*got -1; None is unlimited"),
        ((TOKENS,) * 3, {"window": 5}, ValueError, r"window must be a pair \(left, right\), got 5"),
        ((TOKENS,) * 3, {"causal_offset": 2.0, "is_causal": True}, TypeError, r"whole .* 2\.0"),
        ((TOKENS,) * 3, {"block_size": 0}, ValueError, r'"auto" or a positive integer, got 0'),
        ((TOKENS,) * 3, {"score": AdditiveScore(np.eye(3), np.eye(2, 3), np.ones(3))}, ValueError,
         r"w_query takes a query of width 3, got \(4, 2\)"),
        ((TOKENS,) * 3, {"score": AdditiveScore(np.eye(2), np.eye(3, 2), np.ones(2))}, ValueError,
         r"w_key takes a key of width 3, got \(4, 2\)"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_to_do(arrays, options, error, message):
    with pytest.raises(error, match=message):
        attend(*arrays, **options)


@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (2, 4), (3,)), ((2, 3), (2, 3), (2,)), ((2, 0), (2, 0), (0,)), ((2,), (2,), (2,))],
)
def test_additive_weights_must_share_their_hidden_units(shapes):
    with pytest.raises(ValueError, match="must share h, got"):
        AdditiveScore(*(np.ones(shape) for shape in shapes))


@pytest.mark.parametrize("temperature", [0, -1, NAN, INF])
def test_softmax_refuses_a_temperature_that_is_none(temperature):
    with pytest.raises(ValueError, match="temperature must be positive and finite"):
        softmax([1.0, 2.0], temperature)
