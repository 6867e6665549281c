"""Layers: what they compute, what they refuse, and their weights by name."""

import numpy as np
import pytest

from qkvsearch.attention.functional import attention
from qkvsearch.attention.layers.basic import Embedding, FeedForward, Linear
from qkvsearch.attention.layers.state_dict import load, state
from qkvsearch.attention.layers.transformer import (
    Decoder,
    Encoder,
    EncoderLayer,
    MultiHeadAttention,
)
from qkvsearch.attention.masks import padding_mask
from tests.attention.numbers import made, random

STACKS = [Encoder, Decoder]


def inputs_of(kind, d=8, dtype=np.float64):
    x, memory = random(2, 5, d, dtype=dtype), random(2, 3, d, seed=1, dtype=dtype)
    return [x, memory] if kind is Decoder else [x]


# --- what a layer computes ---


def test_one_head_with_identity_projections_is_attention_itself():
    same, x = Linear(np.eye(4)), random(2, 5, 4)
    layer = MultiHeadAttention(same, same, same, same, n_heads=1)
    np.testing.assert_allclose(layer(x), attention(x, x, x), rtol=1e-12)


def test_a_layer_mixes_tokens_then_works_on_each_and_a_text_may_be_its_own_memory():
    layer, x = made(EncoderLayer, 8, 2, 16), random(5, 8)
    mixed = layer.attention_norm(x + layer.attention(x))
    np.testing.assert_array_equal(
        layer(x), layer.feed_forward_norm(mixed + layer.feed_forward(mixed))
    )
    np.testing.assert_array_equal(layer.attention(x, x), layer.attention(x))
    assert np.abs(layer.attention(x, random(4, 8)) - layer.attention(x)).min() > 1e-4


@pytest.mark.parametrize(
    ("mask", "same_as"),
    [
        (random(5) > -1, lambda m: np.broadcast_to(m, (2, 4, 5, 5))),
        (random(5, 5) > -1, lambda m: np.broadcast_to(m, (2, 4, 5, 5))),
        (random(2, 1, 5) > -1, lambda m: np.broadcast_to(m[:, None], (2, 4, 5, 5))),
        (random(2, 4, 5, 5) > -1, lambda m: m),
    ],
    ids=["row", "matrix", "batch", "own heads"],
)
def test_a_mask_serves_every_head_unless_it_has_heads(mask, same_as):
    layer, x = made(MultiHeadAttention, 8, 4), random(2, 5, 8)
    _, weights = layer(x, mask=mask, return_weights=True)
    np.testing.assert_array_equal(weights > 0, same_as(mask))


def test_a_single_text_takes_a_mask_with_heads():
    mask = random(4, 5, 5) > -1
    _, weights = made(MultiHeadAttention, 8, 4)(random(5, 8), mask=mask, return_weights=True)
    np.testing.assert_array_equal(weights > 0, mask)


@pytest.mark.parametrize("kind", STACKS)
def test_padding_changes_nothing_for_the_tokens_before_it(kind):
    stack, (x, *memory) = made(kind, 2, 8, 2, 16), inputs_of(kind)
    kept = padding_mask([3, 3], size=5)[:, None, :]
    padded = stack(x, *memory, mask=kept)[:, :3]
    np.testing.assert_allclose(padded, stack(x[:, :3], *memory), atol=1e-12)


def test_a_decoder_sees_no_padding_of_its_memory():
    decoder, (x, memory) = made(Decoder, 2, 8, 2, 16), inputs_of(Decoder)
    kept = padding_mask([2, 2], size=3)[:, None, :]
    hidden = decoder(x, memory, memory_mask=kept)
    np.testing.assert_allclose(hidden, decoder(x, memory[:, :2]), atol=1e-12)


def test_a_decoder_does_not_look_ahead():
    decoder, (x, memory) = made(Decoder, 2, 8, 2, 16), inputs_of(Decoder)
    np.testing.assert_allclose(decoder(x, memory)[:, :2], decoder(x[:, :2], memory), atol=1e-12)


@pytest.mark.parametrize("kind", STACKS)
def test_a_stack_shows_what_every_layer_gave(kind):
    stack, (x, *memory) = made(kind, 3, 8, 2, 16, norm_first=True), inputs_of(kind)
    output, layers = stack(x, *memory, return_layers=True)
    np.testing.assert_allclose(output, stack(x, *memory), rtol=1e-12)
    np.testing.assert_array_equal(stack.norm(layers[-1].hidden), output)
    for layer, seen in zip(stack.layers, layers, strict=True):
        x, *weights = layer(x, *memory, return_weights=True)
        np.testing.assert_array_equal(seen.hidden, x)
        assert [w.shape for w in weights] == [(2, 2, 5, 5), (2, 2, 5, 3)][: len(weights)]
        np.testing.assert_array_equal(seen.weights, weights[0])


@pytest.mark.parametrize("kind", STACKS)
def test_float32_stays_float32(kind):
    stack = kind.create(2, 8, 2, 16, rng=0, activation="gelu", norm_first=True)
    assert stack(*inputs_of(kind, dtype=np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: Linear(np.eye(3))(np.ones(4)), ValueError, r"\(3, 3\) does not fit x \(4,\)"),
        (lambda: FeedForward.create(2, 2, 0, activation="tanh"), ValueError, "one of relu, gelu"),
        (lambda: MultiHeadAttention.create(8, 3, rng=0), ValueError, "do not divide into 3 heads"),
        (lambda: MultiHeadAttention.create(8, 0, rng=0), ValueError, "do not divide into 0 heads"),
        (
            lambda: MultiHeadAttention.create(8, 4, rng=0, n_key_heads=3),
            ValueError,
            r"widths \(8, 6, 6\) do not divide into 4 heads",
        ),
        (lambda: Embedding(np.eye(3))([1.0]), TypeError, "ids must be whole numbers"),
        (lambda: Embedding(np.eye(3))([3]), ValueError, "0 … 2, got 3 to 3"),
        (lambda: Embedding(np.eye(3))([-1]), ValueError, "0 … 2, got -1"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(act, error, message):
    with pytest.raises(error, match=message):
        act()


@pytest.mark.parametrize("kind", STACKS)
def test_a_seed_makes_the_same_layer_again(kind):
    one, two, other = (state(kind.create(1, 4, 2, 8, rng=seed)) for seed in (3, 3, 4))
    np.testing.assert_equal(one, two)
    name = "layers.0.attention.key.weight"
    assert not np.array_equal(one[name], other[name])


# --- weights by name ---


@pytest.mark.parametrize("kind", STACKS)
def test_loaded_weights_make_the_same_layer(kind):
    source, target = made(kind, 2, 8, 2, 16), kind.create(2, 8, 2, 16, rng=1)
    inputs = inputs_of(kind)
    before = target(*inputs)
    np.testing.assert_array_equal(load(target, state(source))(*inputs), source(*inputs))
    np.testing.assert_array_equal(target(*inputs), before)


def test_weights_come_back_from_a_safetensors_file(tmp_path):
    files = pytest.importorskip("safetensors.numpy", reason="needs safetensors")
    source, x = made(Encoder, 2, 8, 2, 16, epsilon=1e-12), inputs_of(Encoder)[0]
    files.save_file(state(source), tmp_path / "encoder.safetensors")
    empty = Encoder.create(2, 8, 2, 16, rng=1, epsilon=1e-12)
    layer = load(empty, files.load_file(tmp_path / "encoder.safetensors"))
    np.testing.assert_array_equal(layer(x), source(x))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bias": None}, "missing: bias"),
        ({"scale": np.ones(2)}, "unknown: scale"),
        ({"bias": np.ones(3)}, r"of another shape: bias \(3,\), not \(2,\)"),
        ({"bias": None, "beta": np.ones(2)}, "missing: bias; unknown: beta"),
    ],
)
def test_weights_that_are_not_the_layers_are_refused_by_name(change, message):
    weights = state(Linear.create(4, 2, rng=0)) | change
    with pytest.raises(ValueError, match=message):
        load(Linear.create(4, 2, rng=0), {k: w for k, w in weights.items() if w is not None})
