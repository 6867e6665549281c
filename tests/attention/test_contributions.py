"""Contributions: sums over the tokens that are the encoder's own output, whatever its layers."""

import numpy as np
import pytest

from qkvsearch.attention.layers.contributions import contributions
from qkvsearch.attention.layers.state_dict import state
from qkvsearch.attention.layers.transformer import Encoder
from tests.attention import numbers

LENGTH, D = 6, 8


def made(n_layers=3, **options):
    return numbers.made(Encoder, n_layers, D, 4, 16, **options)


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(LENGTH, D))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"norm_first": True},
        {"activation": "gelu"},
        {"activation": "gelu_tanh", "norm_first": True},
        {"n_key_heads": 2},
        {"bias": False},
        {"n_layers": 0},
    ],
    ids=str,
)
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"window": (2, 0)}], ids=str)
def test_they_add_up_to_the_output(x, settings, options):
    encoder = made(**settings)
    parts = contributions(encoder, x, **options)
    assert parts.shape == (LENGTH, LENGTH + 1, D)
    np.testing.assert_allclose(parts.sum(axis=1), encoder(x, **options), atol=1e-12)


def test_some_outputs_alone_are_those_of_all(x):
    encoder = made(norm_first=True)
    last = contributions(encoder, x, slice(-1, None), is_causal=True)
    np.testing.assert_allclose(last, contributions(encoder, x, is_causal=True)[-1:], atol=1e-12)


def test_a_token_adds_nothing_to_what_does_not_see_it(x):
    parts = contributions(made(), x, is_causal=True)
    for output in range(LENGTH):
        assert not parts[output, output + 1 : LENGTH].any()
        assert parts[output, : output + 1].any(axis=1).all()


def test_without_biases_no_part_is_nobodys(x):
    encoder = made()
    for name, weight in state(encoder).items():
        if name.endswith("bias"):
            weight[:] = 0
    assert not contributions(encoder, x)[:, LENGTH].any()


def test_without_attention_no_token_adds_to_another(x):
    encoder = made(1)
    encoder.layers[0].attention.output.weight[:] = 0
    tokens = contributions(encoder, x)[:, :LENGTH]
    assert tokens[np.eye(LENGTH, dtype=bool)].any(axis=1).all()
    assert not tokens[~np.eye(LENGTH, dtype=bool)].any()


def test_no_tokens_no_outputs():
    assert contributions(made(norm_first=True), np.zeros((0, D))).shape == (0, 1, D)
