"""Gradients: every entry of every input against central differences in float64."""

import numpy as np
import pytest

from qkvsearch.attention.functional import attention
from qkvsearch.attention.gradients import attention_vjp, pull_softmax, softmax_vjp, unit_vjp
from qkvsearch.attention.masks import padding_mask
from qkvsearch.attention.training import cross_entropy, mean_squared_error
from tests.attention.numbers import numeric, random


def assert_gradients(function, gradients, arrays):
    """function() is a number; gradients are named as the arrays that it reads."""
    assert gradients.keys() == arrays.keys()
    for name, array in arrays.items():
        expected = numeric(function, array)
        tolerance = 1e-6 * max(1.0, np.abs(expected).max(initial=0))
        np.testing.assert_allclose(
            gradients[name], expected, rtol=1e-6, atol=tolerance, err_msg=name
        )
        assert gradients[name].shape == array.shape


# --- functions ---


@pytest.mark.parametrize("function", [softmax_vjp, unit_vjp])
def test_the_pull_of_a_function_is_its_gradient(function):
    x = 2 * random(2, 3, 5)
    output, pull = function(x)
    direction = random(*output.shape, seed=1)
    assert_gradients(
        lambda: float((function(x)[0] * direction).sum()), {"x": pull(direction)}, {"x": x}
    )


PADDED = padding_mask([3, 5], size=5)[:, None, None, :]

ATTENTIONS = {
    "plain": {},
    "scale": {"scale": 0.9},
    "mask": {"mask": PADDED},
    "causal, with two keys before": {"is_causal": True, "causal_offset": 2},
    "causal window": {"window": (1, 3), "is_causal": True},
    "empty rows, zero": {"mask": np.zeros((3, 1), bool)},
    "empty rows, uniform": {"window": (0, 0), "causal_offset": 4, "empty_rows": "uniform"},
}


@pytest.mark.parametrize("options", ATTENTIONS.values(), ids=ATTENTIONS)
def test_attention_gives_gradients_to_all_it_reads(dense, options):
    arrays = {
        "query": random(2, 2, 3, 4),
        "key": random(2, 2, 5, 4, seed=1),
        "value": random(2, 2, 5, 2),
        "bias": random(3, 5),
    }
    assert_attention_gradients(dense, arrays, **options)


@pytest.mark.parametrize(
    "shapes",
    [
        [(3, 4), (5, 4), (5, 2), (5,)],
        [(2, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 2), (4, 1, 5)],
        [(4, 3, 4), (2, 5, 4), (1, 5, 2), (3, 1)],
        [(3, 4), (2, 5, 4), (5, 2), (2, 3, 5)],
        [(2, 3, 4), (5, 4), (5, 2), (1, 5)],
        [(3, 4), (5, 4), (2, 5, 2), (1,)],
        [(3, 4), (5, 4), (5, 2), (2, 3, 5)],
    ],
    ids=["matrices", "grouped", "own groups", "keys lead", "query leads", "values lead", "bias"],
)
def test_what_is_shared_by_broadcasting_gets_the_sum(dense, shapes):
    names = ("query", "key", "value", "bias")
    assert_attention_gradients(
        dense,
        {name: random(*s, seed=i) for i, (name, s) in enumerate(zip(names, shapes, strict=True))},
    )


def assert_attention_gradients(dense, arrays, **options):
    """Those of the definition, which is no code of ours, by central differences."""
    output, pull = attention_vjp(**arrays, **options)
    np.testing.assert_array_equal(output, attention(**arrays, **options))
    direction = random(*output.shape, seed=7)
    assert_gradients(
        lambda: float((dense(**arrays, **options) * direction).sum()),
        pull(direction)._asdict(),
        arrays,
    )


def test_a_bias_that_hides_gets_no_gradient_and_spoils_none():
    bias = np.array([0.5, -np.inf, 0.1])
    _, pull = attention_vjp(random(2, 4), random(3, 4), random(3, 2), bias=bias)
    found = pull(np.ones((2, 2)))
    assert found.bias[1] == 0
    assert not found.key[1].any()
    assert np.isfinite(found.query).all()


@pytest.mark.parametrize("options", [{"score": "cosine"}, {"normalize": "relu"}, {"softcap": 1.0}])
def test_other_weights_than_those_of_softmax_over_dot_products_are_refused(options):
    with pytest.raises(TypeError, match="dot products and softmax"):
        attention_vjp(random(1, 2), random(3, 2), random(3, 2), **options)


def test_half_precision_gradients_are_computed_in_float32():
    halves = [random(*shape, dtype=np.float16) for shape in [(3, 4), (600, 4), (600, 2), (600,)]]
    results = []
    for dtype in (np.float16, np.float64):
        *inputs, bias = (x.astype(dtype) for x in halves)
        output, pull = attention_vjp(*inputs, bias=bias)
        results.append([output, *pull(np.ones((3, 2), dtype))])
    for half, full in zip(*results, strict=True):
        assert half.dtype == np.float16
        # Half precision's own rounding, and that of numbers near 0.
        np.testing.assert_allclose(half, full, rtol=2e-3, atol=2e-6)


@pytest.mark.parametrize("garbage", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "options",
    [
        {"mask": np.array([True, True, False])},
        {"bias": np.array([0.0, 0.0, -np.inf])},
        {"is_causal": True},
    ],
    ids=["mask", "bias", "causal"],
)
@pytest.mark.filterwarnings("error")
def test_what_a_hidden_token_holds_has_no_say(options, garbage):
    q, k, v = random(2, 2, 4), random(2, 3, 4, seed=1), random(2, 3, 2, seed=2)
    output, pull = attention_vjp(q, k, v, **options)
    expected = pull(np.ones_like(output))
    k[:, 2], v[:, 2] = garbage, garbage
    found, pull = attention_vjp(q, k, v, **options)
    np.testing.assert_array_equal(found, output)
    found = pull(np.ones_like(output))
    np.testing.assert_equal(found, expected)
    assert not found.key[:, 2].any()
    assert not found.value[:, 2].any()


def test_a_value_that_counts_for_nothing_has_no_say():
    values, far = np.array([[1.0], [2.0], [np.inf]]), np.array([0.0, 0.0, -1e9])
    output, pull = attention_vjp(random(2, 4), random(3, 4), values, bias=far)
    assert np.isfinite(output).all()
    assert np.isfinite(pull(np.ones_like(output)).query).all()
    assert pull_softmax(np.array([1.0, 0.0]), np.array([1.0, np.nan])).tolist() == [0, 0]


# --- losses ---


@pytest.mark.parametrize(
    ("loss", "targets"),
    [
        (cross_entropy, np.array([[0, 2, 3], [2, 1, 0]])),
        (mean_squared_error, random(2, 3, 4, seed=1)),
    ],
)
def test_a_loss_gives_its_gradient(loss, targets):
    output = random(2, 3, 4)
    _, gradient = loss(output, targets)
    assert_gradients(lambda: loss(output, targets)[0], {"output": gradient}, {"output": output})


def test_cross_entropy_of_huge_logits_is_exact():
    assert cross_entropy(np.array([[1e4, 0.0]]), [1])[0] == 1e4


@pytest.mark.parametrize(
    ("targets", "error", "message"),
    [
        ([0.0, 1.0], TypeError, "whole numbers"),
        ([0, 3], ValueError, "0 … 2, got 3"),
        ([0, -1], ValueError, "0 … 2, got -1"),
        ([0], ValueError, r"\(2, 3\) do not fit targets"),
    ],
)
def test_cross_entropy_refuses_targets_that_name_no_class(targets, error, message):
    with pytest.raises(error, match=message):
        cross_entropy(random(2, 3), targets)


def test_losses_of_whole_numbers_are_those_of_floats():
    logits = np.array([[1, 2, 3]])
    loss, gradient = cross_entropy(logits, [0])
    expected, by_logits = cross_entropy(logits.astype(float), [0])
    assert loss == expected
    np.testing.assert_array_equal(gradient, by_logits)
    loss, gradient = mean_squared_error(np.array([1, 2]), [1.5, 2.5])
    assert (loss, gradient.tolist()) == (0.25, [-0.5, -0.5])


def test_losses_of_half_precision_do_not_overflow():
    loss, gradient = mean_squared_error(np.array([300.0, 0.0], np.float16), [0.0, 0.0])
    assert (loss, gradient.tolist(), gradient.dtype) == (45000, [300, 0], np.float16)
    _, gradient = cross_entropy(np.zeros((1, 70_000), np.float16), [0])
    assert gradient.dtype == np.float16
