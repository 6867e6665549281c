"""Few bits: sums and squares of float16 and int8 are computed in float32 or better."""

import numpy as np
import pytest

from qkvsearch.attention import cosine_score, dot_score, look_ahead_mask, softmax
from qkvsearch.attention.layers import EncoderLayer, LayerNorm
from qkvsearch.attention.layers.basic import ACTIVATIONS
from qkvsearch.attention.training import Adam


@pytest.mark.parametrize("weight", [np.float16, np.float32])
@pytest.mark.parametrize("size", [1, 300, 2000, 15_000])
def test_layer_norm_of_float16_has_the_variance_of_float64(size, weight):
    x = (np.random.default_rng(0).uniform(-1, 1, (4, 64)) * size).astype(np.float16)
    expected = LayerNorm.create(64, dtype=np.float64)(x.astype(np.float64))
    found = LayerNorm.create(64, dtype=weight)(x)
    assert found.dtype == weight
    assert np.abs(found - expected).max() < 0.01


def test_layer_norm_of_large_float32_is_that_of_float64():
    x = np.float32([1e20, 2e20, 3e20, -1e20])
    expected = LayerNorm.create(4, dtype=np.float64)(x.astype(np.float64))
    found = LayerNorm.create(4)(x)
    assert found.dtype == np.float32
    assert np.allclose(found, expected)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_layers_of_float16_stay_float16(activation):
    sizes = {"d_model": 8, "n_heads": 2, "d_feedforward": 16}
    create = sizes | {"rng": 0, "activation": activation}
    x = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float16)
    found = EncoderLayer.create(**create, dtype=np.float16)(x)
    assert found.dtype == np.float16
    exact = EncoderLayer.create(**create, dtype=np.float64)(x.astype(np.float64))
    assert np.abs(found - exact).max() < 0.02


def test_adam_takes_steps_in_float16():
    weights, optimizer = {"w": np.ones(3, np.float16)}, Adam(0.1)
    for _ in range(3):
        optimizer.step(weights, {"w": np.float16([0, 1e-4, 2])})
    assert weights["w"].dtype == np.float16
    assert np.allclose(weights["w"], [1, 0.7, 0.7], atol=0.01)


def test_scores_of_few_bits_do_not_wrap():
    q = np.array([[100, -128]], np.int8)
    assert dot_score(q, q, scale=1) == 100**2 + 128**2
    assert np.allclose(cosine_score(q, q), 1)
    large = np.full((1, 64), 300, np.float16)
    assert dot_score(large, large, scale=1) == 64 * 300**2


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda: softmax(5.0), ValueError),
        (lambda: softmax([1.0], axis=3), ValueError),
        (lambda: softmax([1.0], temperature="hot"), TypeError),
        (lambda: dot_score(np.ones(3), np.ones(3)), ValueError),
        (lambda: dot_score(np.eye(2), np.eye(2), scale=np.nan), ValueError),
        (lambda: look_ahead_mask(-1), ValueError),
        (lambda: look_ahead_mask(2.5), TypeError),
    ],
)
def test_wrong_shapes_and_numbers_are_named(use, error):
    with pytest.raises(error, match=r"axis|axes|temperature|scale|token"):
        use()
