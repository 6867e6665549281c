"""Points 13 and 16 to 20: what self-attention is, by its numbers."""

from __future__ import annotations

import numpy as np
import pytest

from qkvsearch.attention import attention
from qkvsearch.attention.layers.basic import Linear
from qkvsearch.attention.layers.multi_head import MultiHeadAttention
from qkvsearch.attention.layers.transformer import DecoderLayer, Encoder
from qkvsearch.attention.trace import trace, trace_self_attention

# Self-attention in eight steps: three inputs through 4 × 3 projections.
X = np.array([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]], dtype=float)
W_KEY = np.array([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]], dtype=float)
W_QUERY = np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]], dtype=float)
W_VALUE = np.array([[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]], dtype=float)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


@pytest.mark.point(13)
def test_source_equal_to_target_turns_encoder_decoder_attention_into_self_attention():
    layer = MultiHeadAttention.create(8, n_heads=2, rng=0, dtype=np.float64)
    x = random(3, 8)
    np.testing.assert_array_equal(layer(x, x) - layer(x), np.zeros((3, 8)))
    assert np.abs(layer(x, random(4, 8)) - layer(x)).min() > 1e-4


@pytest.mark.point(13)
def test_the_query_comes_from_the_decoder_keys_and_values_from_the_encoder():
    written, source = random(3, 8), random(4, 8, seed=1)
    layer = DecoderLayer.create(8, n_heads=2, d_feedforward=16, rng=0, dtype=np.float64)
    found = layer(written, source, return_weights=True)
    assert found.weights.shape == (2, 3, 3)
    assert found.memory_weights.shape == (2, 3, 4)  # a row for each word written, T4
    np.testing.assert_allclose(found.memory_weights.sum(axis=-1), np.ones((2, 3)))

    words, signs = ["When", "the", "tide"], ["潮", "水", "退", "了"]
    steps = trace(written, source, np.eye(4), query_labels=words, key_labels=signs)
    assert (steps["weights"].rows, steps["weights"].columns) == (tuple(words), tuple(signs))
    assert str(steps["scores"].symbols[2, 0]) == "tide_Q·潮_K"
    # Values that are one-hot vectors show that the encoder's tokens are what is mixed.
    np.testing.assert_array_equal(steps["outputs"].array, steps["weights"].array)
    changed = trace(written + [[0.0], [0.0], [1.0]] * random(8), source, np.eye(4))
    moved = np.abs(changed["weights"].array - steps["weights"].array).max(axis=1)
    np.testing.assert_array_equal(moved > 1e-3, [False, False, True])


@pytest.mark.point(16)
def test_softmax_of_x_xᵀ_over_the_root_of_d_times_x():
    steps = trace(X, X, X)
    np.testing.assert_array_equal(steps["scores"].array, [[2, 0, 2], [0, 8, 4], [2, 4, 4]])
    np.testing.assert_array_equal(steps["scaled"].array, [[1, 0, 1], [0, 4, 2], [1, 2, 2]])
    weights = [0.4223187982515182, 0.15536240349696362, 0.4223187982515182]
    np.testing.assert_allclose(steps["weights"].array[0], weights, rtol=1e-14)
    output = [0.8446375965, 0.7330436052, 0.8446375965, 0.7330436052]
    np.testing.assert_allclose(attention(X, X, X)[0], output, atol=1e-10)


@pytest.mark.point(16)
def test_projections_that_are_the_identity_change_nothing():
    with_them = trace_self_attention(X, np.eye(4), np.eye(4), np.eye(4))
    np.testing.assert_array_equal(with_them["outputs"].array, attention(X, X, X))
    layer = MultiHeadAttention(*(Linear(np.eye(4)) for _ in range(4)), n_heads=1)
    np.testing.assert_array_equal(layer(X), attention(X, X, X))


@pytest.mark.point(16)
def test_the_eight_steps_scaled():
    steps = trace_self_attention(X, W_QUERY, W_KEY, W_VALUE)
    np.testing.assert_allclose(steps["outputs"].array[0], [1.86387, 6.31937, 1.70419], atol=5e-6)


@pytest.mark.point(17)
def test_three_linear_layers_make_queries_keys_and_values_of_the_same_x():
    layers = [Linear(w.T) for w in (W_QUERY, W_KEY, W_VALUE)]
    queries, keys, values = (layer(X) for layer in layers)
    assert queries.shape == keys.shape == values.shape == (3, 3)
    np.testing.assert_array_equal(queries, [[1, 0, 2], [2, 2, 2], [2, 1, 3]])
    np.testing.assert_array_equal(keys, [[0, 1, 1], [4, 4, 0], [2, 3, 1]])
    np.testing.assert_array_equal(values, [[1, 2, 3], [2, 8, 0], [2, 6, 3]])


@pytest.mark.point(17)
def test_what_comes_out_is_still_x_in_its_shape():
    layer = MultiHeadAttention.create(8, n_heads=2, rng=0)
    for shape in [(5, 8), (2, 5, 8), (1, 8)]:
        assert layer(random(*shape)).shape == shape
        assert [head.shape for head in layer.heads(*[random(*shape)] * 2)] == [
            (*shape[:-2], 2, shape[-2], 4)
        ] * 3


@pytest.mark.point(18)
def test_each_layer_of_a_window_brings_influence_from_one_token_further():
    x = random(5, 8)
    changed = x + random(8, seed=1) * [[1.0], [0], [0], [0], [0]]
    for n_layers in (1, 2, 3):
        encoder = Encoder.create(n_layers, 8, 2, 16, rng=0, dtype=np.float64)
        before, after = (encoder(tokens, window=(1, 1)) for tokens in (x, changed))
        moved = np.abs(after - before).max(axis=-1)
        reached = np.arange(5) <= n_layers  # two layers: the context of the context
        np.testing.assert_array_equal(moved > 1e-6, reached)
        np.testing.assert_array_equal(moved[~reached], np.zeros(4 - n_layers))


@pytest.mark.point(19)
def test_patches_of_an_image_and_frames_of_sound_are_sequences_too():
    image = np.repeat([[1.0, 1.0, 0.0, 0.0]], 4, axis=0)
    patches = image.reshape(2, 2, 2, 2).swapaxes(1, 2).reshape(4, 4)
    steps = trace(patches, patches, patches)
    light, dark = 0.4403985389889412, 0.0596014610110588
    np.testing.assert_allclose(steps["weights"].array[0], [light, dark, light, dark])
    np.testing.assert_allclose(steps["outputs"].array[:, 0], [2 * light, 0.5, 2 * light, 0.5])

    sound = np.sin(np.arange(30) * 2 * np.pi / 10)
    frames = sound.reshape(6, 5)  # half a wave each: up, down, up, down, ...
    weights = attention(frames, frames, frames, return_weights=True)[1]
    np.testing.assert_allclose(weights[0, ::2], weights[0, 0])
    assert weights[0, 0] > weights[0, 1]
    layer = MultiHeadAttention.create(4, n_heads=2, rng=0)
    assert layer(patches).shape == (4, 4)
    assert layer(frames[:, :4]).shape == (6, 4)


@pytest.mark.point(20)
def test_a_single_vector_has_weight_1_for_itself():
    output, weights = attention([[3.0, -2.0]], [[-7.0, 1.0]], [[5.0, 6.0]], return_weights=True)
    np.testing.assert_array_equal(weights, [[1.0]])
    np.testing.assert_array_equal(output, [[5.0, 6.0]])
    steps = trace_self_attention(X[:1], W_QUERY, W_KEY, W_VALUE)
    assert str(steps["outputs"].symbols[0]) == "a_V"
    np.testing.assert_array_equal(steps["outputs"].array, [[1, 2, 3]])


@pytest.mark.point(20)
def test_as_many_vectors_come_out_as_go_in():
    for n in (1, 2, 7, 40):
        x = random(n, 3)
        assert attention(x, x, x).shape == (n, 3)
