"""Layers at their edges: nothing to read, hidden garbage, whole numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

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
from tests.attention.numbers import random

# --- nothing to read ---

EMPTY = {
    "multi head": (MultiHeadAttention.create(8, 2, rng=0), [(0, 5, 8)]),
    "no tokens": (MultiHeadAttention.create(8, 2, rng=0), [(3, 0, 8)]),
    "shared heads": (MultiHeadAttention.create(8, 4, rng=0, n_key_heads=2), [(0, 5, 8)]),
    "shared heads, no tokens": (MultiHeadAttention.create(8, 4, rng=0, n_key_heads=2), [(0, 8)]),
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
def test_nothing_in_is_nothing_out(layer, shapes):
    output = layer(*(np.ones(shape, np.float32) for shape in shapes))
    assert output.shape == (*shapes[0][:-1], 8)
    assert np.isfinite(output).all()


@pytest.mark.parametrize("ids", [[], [[], []], np.zeros((0, 3), int)])
def test_no_words_have_no_vectors(ids):
    assert Embedding.create(4, 8, rng=0)(ids).shape == (*np.shape(ids), 8)


# --- whole numbers ---


def test_a_linear_layer_of_whole_numbers_keeps_its_biass_fractions():
    assert Linear(np.array([[2]]), np.array([0.5]))(np.array([3])).tolist() == [6.5]


# --- what is hidden ---


@pytest.mark.filterwarnings("error")
def test_hidden_tokens_of_a_memory_change_nothing():
    layer = DecoderLayer.create(8, 2, 16, rng=0, dtype=np.float64)
    x, memory, kept = random(2, 5, 8), random(2, 3, 8), np.array([True, True, False])
    outputs = []
    for garbage in (0.0, np.nan):
        memory[:, 2] = garbage
        outputs.append(layer(x, memory, memory_mask=kept))
    np.testing.assert_equal(*outputs)


# --- what does not fit ---


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (LayerNorm.create(4), r"\(4,\) does not fit x \(2, 1\)"),
        (LearnedPositions.create(5, 4, rng=0), r"\(5, 4\) does not fit x \(2, 1\)"),
    ],
    ids=["norm", "positions"],
)
def test_a_width_that_is_not_the_layers_is_refused(layer, message):
    with pytest.raises(ValueError, match=message):
        layer(np.ones((2, 1)))


# --- stacks ---


@pytest.mark.parametrize("kind", [DecoderLayer, Decoder])
def test_a_decoder_looks_ahead_where_it_is_told_to(kind):
    sizes = ([1] if kind is Decoder else []) + [8, 2, 16]
    layer, x, memory = kind.create(*sizes, rng=0), random(5, 8), random(3, 8)
    before = layer(x, memory, is_causal=False)[0]
    x[-1] += 1
    assert np.abs(layer(x, memory, is_causal=False)[0] - before).max() > 1e-4


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer, Encoder, Decoder])
def test_a_stack_may_share_key_heads(kind):
    sizes = ([2] if kind in (Encoder, Decoder) else []) + [8, 4, 16]
    stack = kind.create(*sizes, rng=0, n_key_heads=2, bias=False)
    for layer in getattr(stack, "layers", [stack]):
        for attention in (layer.attention, getattr(layer, "memory_attention", layer.attention)):
            assert attention.n_key_heads == 2
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


# --- large numbers ---


@pytest.mark.parametrize("size", [1e30, 1e160, 1e200, 1e307])
def test_a_layer_norm_does_not_depend_on_the_size_of_its_input(size):
    x = np.array([[1.0, 2.0, 3.0, -1.0], [1.0, 1.0, 1.0, 1.0], [0.5, 0.0, 0.0, 0.0]])
    norm = LayerNorm.create(4, epsilon=1e-300)
    np.testing.assert_allclose(norm(x * size), norm(x), rtol=1e-12, atol=1e-12)
    beside = norm(np.concatenate([x * size, x]))
    np.testing.assert_array_equal(beside[3:], norm(x))


def test_a_layer_norm_of_what_is_not_finite_is_nan():
    for wrong in (np.inf, -np.inf, np.nan):
        y = LayerNorm.create(3)(np.array([[1.0, wrong, 2.0], [1.0, 2.0, 3.0]]))
        assert np.isnan(y[0]).all()
        assert np.isfinite(y[1]).all()


def test_a_bias_of_another_width_than_the_weight_is_refused():
    with pytest.raises(ValueError, match="bias"):
        LayerNorm(np.ones(4), np.zeros(3))
    with pytest.raises(ValueError, match="bias"):
        Linear(np.ones((4, 3)), np.zeros(3))
    with pytest.raises(ValueError, match="bias"):
        Linear(np.ones((4, 3)), np.zeros(1))
