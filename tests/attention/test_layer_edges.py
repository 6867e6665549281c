"""Layers and gradients at their edges: nothing to read, hidden garbage, whole numbers."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest

from qkvsearch.attention.gradients import additive_score_vjp, attention_vjp, pull_softmax, vjp
from qkvsearch.attention.layers.basic import (
    Embedding,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    Linear,
)
from qkvsearch.attention.layers.state_dict import load, state
from qkvsearch.attention.layers.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    MultiHeadAttention,
)
from qkvsearch.attention.scores import AdditiveScore
from qkvsearch.attention.training import Adam, cross_entropy, fit, mean_squared_error
from tests.attention.numbers import random


def additive(d=4):
    return AdditiveScore(random(d, 3), random(d, 3, seed=1), random(3, seed=2))


# --- nothing to read ---

EMPTY = {
    "multi head": (MultiHeadAttention.create(8, 2, rng=0), [(0, 5, 8)]),
    "no tokens": (MultiHeadAttention.create(8, 2, rng=0), [(3, 0, 8)]),
    "shared heads": (MultiHeadAttention.create(8, 4, rng=0, n_key_heads=2), [(0, 5, 8)]),
    "shared heads, no tokens": (MultiHeadAttention.create(8, 4, rng=0, n_key_heads=2), [(0, 8)]),
    "additive": (MultiHeadAttention.create(8, 2, rng=0, score=additive()), [(3, 0, 8)]),
    "encoder": (Encoder.create(2, 8, 2, 16, rng=0), [(0, 5, 8)]),
    "encoder, no tokens": (Encoder.create(2, 8, 2, 16, rng=0, norm_first=True), [(0, 8)]),
    "decoder": (Decoder.create(2, 8, 2, 16, rng=0), [(0, 5, 8), (0, 3, 8)]),
    "decoder, no memory": (Decoder.create(2, 8, 2, 16, rng=0), [(2, 5, 8), (2, 0, 8)]),
    "decoder, no tokens": (Decoder.create(2, 8, 2, 16, rng=0), [(2, 0, 8), (2, 3, 8)]),
    "linear, no inputs": (Linear(np.zeros((8, 0)), np.zeros(8)), [(2, 0)]),
    "feed forward": (FeedForward.create(8, 16, rng=0), [(0, 8)]),
    "norm": (LayerNorm.create(8), [(0, 5, 8)]),
    "positions": (LearnedPositions.create(5, 8, rng=0), [(2, 0, 8)]),
}


@pytest.mark.parametrize(("layer", "shapes"), EMPTY.values(), ids=EMPTY)
@pytest.mark.filterwarnings("error")
def test_nothing_in_is_nothing_out_and_nothing_back(layer, shapes):
    inputs = [np.ones(shape, np.float32) for shape in shapes]
    output, pull = vjp(layer, *inputs)
    np.testing.assert_array_equal(output, layer(*inputs))
    assert output.shape == (*shapes[0][:-1], 8)
    by_inputs, by_weights = pull(np.ones_like(output))
    assert [x.shape for x in by_inputs] == shapes
    for name, weight in state(layer).items():
        assert by_weights[name].shape == weight.shape
        assert np.isfinite(by_weights[name]).all()


@pytest.mark.parametrize("ids", [[], [[], []], np.zeros((0, 3), int)])
def test_no_words_have_no_vectors_and_give_none_back(ids):
    layer = Embedding.create(4, 8, rng=0)
    output, pull = vjp(layer, ids)
    assert output.shape == layer(ids).shape == (*np.shape(ids), 8)
    found = pull(output)[1]["weight"]
    assert found.shape == (4, 8)
    assert not found.any()


# --- whole numbers, half precision ---


def test_losses_of_whole_numbers_are_those_of_floats():
    logits, output, targets = np.array([[1, 2, 3]]), np.array([1, 2]), [1.5, 2.5]
    loss, gradient = cross_entropy(logits, [0])
    expected, by_logits = cross_entropy(logits.astype(float), [0])
    assert loss == expected
    np.testing.assert_array_equal(gradient, by_logits)
    loss, gradient = mean_squared_error(output, targets)
    assert loss == 0.25
    assert gradient.tolist() == [-0.5, -0.5]


def test_losses_of_half_precision_do_not_overflow():
    loss, gradient = mean_squared_error(np.array([300.0, 0.0], np.float16), [0.0, 0.0])
    assert loss == 45000
    assert gradient.tolist() == [300, 0]
    assert gradient.dtype == np.float16
    _, gradient = cross_entropy(np.zeros((1, 70_000), np.float16), [0])
    assert gradient.dtype == np.float16


def test_an_additive_score_of_whole_numbers_has_the_gradients_of_floats():
    arrays = [np.array(x) for x in ([[1, 0]], [[1, 1], [0, 1]], np.eye(2, dtype=int), [1, 2])]
    found, expected = (
        additive_score_vjp(AdditiveScore(eye, eye, w), query, key)
        for query, key, eye, w in (arrays, [x.astype(float) for x in arrays])
    )
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_equal(found[1](np.ones((1, 2))), expected[1](np.ones((1, 2))))


def test_a_linear_layer_of_whole_numbers_keeps_its_biass_fractions():
    assert Linear(np.array([[2]]), np.array([0.5]))(np.array([3])).tolist() == [6.5]


@pytest.mark.parametrize("score", ["dot", "cosine", additive()], ids=["dot", "cosine", "additive"])
def test_half_precision_gradients_are_computed_in_float32(score):
    halves = [random(*shape, dtype=np.float16) for shape in [(3, 4), (600, 4), (600, 2), (600,)]]
    names = ("query", "key", "value", "bias")
    results = []
    for dtype in (np.float16, np.float64):
        arrays = dict(zip(names, (x.astype(dtype) for x in halves), strict=True))
        output, pull = attention_vjp(**arrays, score=score)
        back = pull(np.ones((3, 2), dtype))._asdict()
        results.append({"output": output, **back.pop("score"), **back})
    half, full = results
    for name, array in half.items():
        assert array.dtype == np.float16
        # Half precision's own rounding, and that of numbers near 0.
        np.testing.assert_allclose(array, full[name], rtol=2e-3, atol=2e-6, err_msg=name)


# --- what is hidden ---

GARBAGE = [np.nan, np.inf, -np.inf]
HIDING = {
    "mask": {"mask": np.array([True, True, False])},
    "bias": {"bias": np.array([0.0, 0.0, -np.inf])},
    "window": {"is_causal": True},
    "capped": {"mask": np.array([True, True, False]), "softcap": 2.0},
    "cosine": {"mask": np.array([True, True, False]), "score": "cosine"},
    "additive": {"mask": np.array([True, True, False]), "score": additive()},
    "relu": {"mask": np.array([True, True, False]), "normalize": "relu"},
    "none": {"mask": np.array([True, True, False]), "normalize": "none"},
}


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("options", HIDING.values(), ids=HIDING)
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


@pytest.mark.filterwarnings("error")
def test_hidden_tokens_of_a_memory_leak_into_no_weight():
    layer = DecoderLayer.create(8, 2, 16, rng=0, dtype=np.float64)
    x, memory, kept = random(2, 5, 8), random(2, 3, 8), np.array([True, True, False])
    gradients = []
    for garbage in (0.0, np.nan):
        memory[:, 2] = garbage
        output, pull = vjp(layer, x, memory, memory_mask=kept)
        gradients.append(pull(output))
    np.testing.assert_equal(gradients[1], gradients[0])


# --- what does not fit ---


@pytest.mark.parametrize("act", [lambda layer, x: layer(x), vjp], ids=["call", "vjp"])
@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (LayerNorm.create(4), r"\(4,\) does not fit x \(2, 1\)"),
        (LearnedPositions.create(5, 4, rng=0), r"\(5, 4\) does not fit x \(2, 1\)"),
    ],
    ids=["norm", "positions"],
)
def test_a_width_that_is_not_the_layers_is_refused(act, layer, message):
    with pytest.raises(ValueError, match=message):
        act(layer, np.ones((2, 1)))


# --- stacks ---


@pytest.mark.parametrize("kind", [DecoderLayer, Decoder])
def test_a_decoder_looks_ahead_where_it_is_told_to(kind):
    sizes = ([1] if kind is Decoder else []) + [8, 2, 16]
    layer, x, memory = kind.create(*sizes, rng=0), random(5, 8), random(3, 8)
    output, pull = vjp(layer, x, memory, is_causal=False)
    np.testing.assert_array_equal(output, layer(x, memory, is_causal=False))
    first = np.zeros_like(output)
    first[0] = random(8)
    assert np.abs(pull(first)[0][0][-1]).max() > 1e-4  # the last token tells the first something


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer, Encoder, Decoder])
def test_a_stack_may_share_key_heads_and_have_another_score(kind):
    sizes = ([2] if kind in (Encoder, Decoder) else []) + [8, 4, 16]
    stack = kind.create(*sizes, rng=0, n_key_heads=2, score=additive(2), bias=False)
    for layer in getattr(stack, "layers", [stack]):
        for attention in (layer.attention, getattr(layer, "memory_attention", layer.attention)):
            assert attention.n_key_heads == 2
            assert isinstance(attention.score, AdditiveScore)
            assert attention.query.bias is None
    arrays = state(stack).values()
    assert len({id(array) for array in arrays}) == len(arrays)


# --- weights by name ---


@dataclass
class Nested:
    layers: list[list[Linear]]
    sizes: tuple[int, ...] = (1, 2)


def test_layers_in_nested_lists_are_saved_and_loaded():
    layer = Linear(np.ones((1, 1)))
    model = Nested([[layer], [layer, layer]])
    names = [f"layers.{place}.weight" for place in ("0.0", "1.0", "1.1")]
    assert list(state(model)) == names
    loaded = load(model, {name: [[i]] for i, name in enumerate(names)})
    assert [x.tolist() for x in state(loaded).values()] == [[[0]], [[1]], [[2]]]
    assert loaded.sizes == (1, 2)


@pytest.mark.parametrize("other", [5, [Linear(np.eye(2))], Linear])
def test_only_a_layer_has_weights(other):
    with pytest.raises(TypeError, match="an instance of a dataclass"):
        state(other)


# --- training what was loaded ---


def loss(layer, batch):
    return 1.0, {name: np.ones_like(weight) for name, weight in state(layer).items()}


def test_a_read_only_weight_is_refused_before_any_change_and_a_copy_learns():
    weights = {"weight": np.ones((1, 1)), "bias": np.ones(1)}
    weights["bias"].flags.writeable = False
    layer = load(Linear.create(1, 1, rng=0), weights)
    with pytest.raises(ValueError, match=r"bias is read-only: train a copy .* copy\.deepcopy"):
        fit(layer, loss, [None], optimizer=Adam(0.1), epochs=1)
    assert weights["weight"] == 1
    learner = copy.deepcopy(layer)
    fit(learner, loss, [None], optimizer=Adam(0.1), epochs=1)
    assert (learner.weight < 1, learner.bias < 1, weights["bias"]) == (True, True, 1)


def test_weights_of_whole_numbers_are_refused_before_any_change():
    weights = {"a": np.ones(1), "b": np.ones(1, int)}
    with pytest.raises(TypeError, match="b must be floats"):
        Adam().step(weights, {"a": np.ones(1), "b": np.ones(1)})
    assert weights["a"] == 1
