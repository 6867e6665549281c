"""Gradients: every entry of every input and weight against central differences in float64."""

import numpy as np
import pytest

from qkvsearch.attention.functional import attention
from qkvsearch.attention.gradients import attention_vjp, cap_vjp, softmax_vjp, standardize_vjp, vjp
from qkvsearch.attention.layers.basic import (
    Embedding,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    Linear,
)
from qkvsearch.attention.layers.state_dict import state
from qkvsearch.attention.layers.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    MultiHeadAttention,
)
from qkvsearch.attention.masks import padding_mask
from qkvsearch.attention.scores import AdditiveScore
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


def assert_layer_gradients(layer, *inputs, **options):
    """Of every input and every weight, from a random direction in the output."""
    for name, weight in state(layer).items():
        weight += 0.3 * random(*weight.shape, seed=len(name))  # no bias of zeros, no norm of ones
    output, pull = vjp(layer, *inputs, **options)
    np.testing.assert_allclose(output, layer(*inputs, **options), rtol=1e-13, atol=1e-13)
    direction = random(*output.shape, seed=9)
    by_inputs, by_weights = pull(direction)
    floats = [x for x in inputs if x.dtype.kind == "f"]
    found = {str(i): by_input for i, by_input in enumerate(by_inputs)} | by_weights
    arrays = {str(i): x for i, x in enumerate(floats)} | state(layer)
    assert_gradients(lambda: float((layer(*inputs, **options) * direction).sum()), found, arrays)


# --- functions ---


@pytest.mark.parametrize(
    "function",
    [
        softmax_vjp,
        lambda x: softmax_vjp(x, temperature=0.7),
        lambda x: cap_vjp(x, 1.5),
        lambda x: cap_vjp(x, 0),
        lambda x: standardize_vjp(x, 1e-3),
    ],
    ids=["softmax", "temperature", "cap", "no cap", "standardize"],
)
def test_the_pull_of_a_function_is_its_gradient(function):
    x = 2 * random(2, 3, 5)
    output, pull = function(x)
    direction = random(*output.shape, seed=1)
    assert_gradients(
        lambda: float((function(x)[0] * direction).sum()), {"x": pull(direction)}, {"x": x}
    )


ADDITIVE = AdditiveScore(w_query=random(4, 3), w_key=random(4, 3, seed=1), w=random(3))
PADDED = padding_mask([3, 5], size=5)[:, None, None, :]

ATTENTIONS = {
    "plain": {},
    "scale": {"scale": 0.9},
    "mask": {"mask": PADDED},
    "causal": {"is_causal": True},
    "causal, with two keys before": {"is_causal": True, "causal_offset": 2},
    "window": {"window": (1, 1)},
    "causal window": {"window": (1, 3), "is_causal": True},
    "softcap": {"softcap": 1.0},
    "relu": {"normalize": "relu"},
    "none": {"normalize": "none", "mask": PADDED},
    "cosine": {"score": "cosine", "scale": 3.0},
    "additive": {"score": ADDITIVE, "scale": 1.7},
    "additive, capped, masked": {"score": ADDITIVE, "softcap": 0.8, "mask": PADDED},
    "cosine, relu, causal": {"score": "cosine", "normalize": "relu", "is_causal": True},
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
@pytest.mark.parametrize("score", ["dot", "cosine", ADDITIVE], ids=["dot", "cosine", "additive"])
def test_what_is_shared_by_broadcasting_gets_the_sum(dense, shapes, score):
    names = ("query", "key", "value", "bias")
    assert_attention_gradients(
        dense,
        {name: random(*s, seed=i) for i, (name, s) in enumerate(zip(names, shapes, strict=True))},
        score=score,
    )


def assert_attention_gradients(dense, arrays, **options):
    """Those of the definition, which is no code of ours, by central differences."""
    output, pull = attention_vjp(**arrays, **options)
    np.testing.assert_array_equal(output, attention(**arrays, **options))
    direction = random(*output.shape, seed=7)
    found = pull(direction)._asdict()
    of_score = found.pop("score")
    score = options.get("score")
    weights = state(score) if isinstance(score, AdditiveScore) else {}
    assert_gradients(
        lambda: float((dense(**arrays, **options) * direction).sum()),
        found | of_score,
        arrays | weights,
    )


def test_a_bias_that_hides_gets_no_gradient_and_spoils_none():
    bias = np.array([0.5, -np.inf, 0.1])
    _, pull = attention_vjp(random(2, 4), random(3, 4), random(3, 2), bias=bias)
    found = pull(np.ones((2, 2)))
    assert found.bias[1] == 0
    assert not found.key[1].any()
    assert np.isfinite(found.query).all()


def test_a_zero_vector_has_no_direction_to_turn():
    _, pull = attention_vjp(np.zeros((1, 2)), random(3, 2), random(3, 2), score="cosine")
    assert not pull(np.ones((1, 2))).query.any()


def test_a_score_of_unknown_gradient_is_refused():
    with pytest.raises(TypeError, match="no gradient is known for the score"):
        attention_vjp(random(1, 2), random(3, 2), random(3, 2), score=lambda q, k, scale: q @ k.T)


# --- losses ---


def test_cross_entropy_gives_its_gradient():
    logits, targets = random(2, 3, 4), np.array([[0, 2, 3], [2, 1, 0]])
    _, gradient = cross_entropy(logits, targets)
    assert_gradients(
        lambda: cross_entropy(logits, targets)[0],
        {"logits": gradient},
        {"logits": logits},
    )


def test_mean_squared_error_gives_its_gradient():
    output, targets = random(2, 3), random(2, 3, seed=1)
    _, gradient = mean_squared_error(output, targets)
    assert_gradients(
        lambda: mean_squared_error(output, targets)[0], {"output": gradient}, {"output": output}
    )


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


# --- layers ---

HOW = {"rng": 0, "dtype": np.float64}


@pytest.mark.parametrize(
    ("layer", "inputs", "options"),
    [
        (Linear.create(3, 4, **HOW), [random(2, 5, 3)], {}),
        (Linear.create(3, 4, bias=False, **HOW), [random(3)], {}),
        (LayerNorm.create(4, dtype=np.float64), [random(2, 3, 4)], {}),
        *(
            (FeedForward.create(3, 5, activation=name, **HOW), [random(2, 3)], {})
            for name in ("relu", "gelu", "gelu_tanh")
        ),
        (Embedding.create(4, 3, **HOW), [np.array([[0, 2, 2], [3, 0, 2]])], {}),
        (LearnedPositions.create(6, 3, **HOW), [random(2, 5, 3)], {}),
    ],
    ids="linear,no bias,layer norm,relu,gelu,gelu_tanh,embedding,positions".split(","),
)
def test_a_layer_gives_gradients(layer, inputs, options):
    assert_layer_gradients(layer, *inputs, **options)


MASK = padding_mask([2, 3])[:, None, :]


@pytest.mark.parametrize(
    ("create", "memory", "options"),
    [
        ({}, [], {"mask": MASK}),
        ({}, [], {"is_causal": True, "window": (1, 0), "softcap": 2.0, "scale": 1.0}),
        ({}, [random(2, 4, 4, seed=3)], {}),
        ({}, [random(4, 4, seed=3)], {"bias": random(2, 3, 4)}),
        ({"n_key_heads": 1}, [], {"normalize": "relu"}),
        ({"score": "cosine"}, [], {}),
        ({"score": AdditiveScore(random(2, 3), random(2, 3, seed=1), random(3))}, [], {}),
    ],
    ids="mask,options,memory,shared memory,shared heads,cosine,additive".split(","),
)
def test_multi_head_attention_gives_gradients(create, memory, options):
    layer = MultiHeadAttention.create(4, 2, **create, **HOW)
    assert_layer_gradients(layer, random(2, 3, 4), *memory, **options)


@pytest.mark.parametrize("norm_first", [False, True], ids=["norm last", "norm first"])
@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer, Encoder, Decoder])
def test_encoders_and_decoders_give_gradients(kind, norm_first):
    n_layers = [2] if kind in (Encoder, Decoder) else []
    how = HOW | {"norm_first": norm_first, "activation": "gelu"}
    layer = kind.create(*n_layers, 4, 2, 3, **how)
    inputs, options = [random(2, 3, 4)], {"mask": MASK}
    if kind in (DecoderLayer, Decoder):
        inputs.append(random(2, 2, 4, seed=5))
        options["memory_mask"] = padding_mask([1, 2])[:, None, :]
    assert_layer_gradients(layer, *inputs, **options)


def test_a_layer_without_a_gradient_is_named():
    with pytest.raises(TypeError, match="no gradient is known for AdditiveScore"):
        vjp(ADDITIVE, random(1, 4))
