"""The packed forward gives what the plain encoder gives, whatever the layers' options."""

from itertools import product

import numpy as np
import pytest

from qkvsearch.attention.kernels import add_gelu
from qkvsearch.attention.layers import Encoder
from qkvsearch.attention.layers import fast_encoder as module
from qkvsearch.attention.layers.basic import gelu, gelu_in_place
from qkvsearch.attention.layers.fast_encoder import chunks_of, encode_one, encode_packed

LENGTHS = np.array([3, 0, 7, 3, 1, 12, 7, 7])
D = 12


def encoder_of(norm_first, activation, bias=True, **options):
    """Three random layers whose norms and biases are random too."""
    options |= {"norm_first": norm_first, "activation": activation, "bias": bias}
    encoder = Encoder.create(3, D, 3, 20, rng=0, **options)
    rng = np.random.default_rng(1)
    norms = [encoder.norm] if encoder.norm else []
    for layer in encoder.layers:
        norms += [layer.attention_norm, layer.feed_forward_norm]
        for linear in (layer.attention.query, layer.attention.output, layer.feed_forward.hidden):
            if bias:
                linear.bias[:] = rng.normal(size=linear.bias.shape)
    for norm in norms:
        norm.weight[:], norm.bias[:] = rng.normal(size=(2, D))
    return encoder


def sequences():
    rng = np.random.default_rng(2)
    return [rng.normal(size=(n, D)).astype(np.float32) for n in LENGTHS]


def packed(encoder, inputs, **options):
    found = {}
    encode_packed(
        encoder,
        np.array([len(x) for x in inputs]),
        lambda chunk: np.concatenate([inputs[i] for i in chunk.members]),
        lambda chunk, x: found.update((i, part.copy()) for i, part in chunk.sequences(x)),
        **options,
    )
    return found


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize(
    ("norm_first", "activation", "bias"),
    [*product((True, False), ("relu", "gelu", "gelu_tanh"), (True,)), (False, "gelu", False)],
)
def test_many_are_as_one_by_one_under_every_option(
    norm_first, activation, bias, is_causal, compiled, monkeypatch
):
    monkeypatch.setattr(module, "CHUNK_TOKENS", 10)
    encoder, inputs = encoder_of(norm_first, activation, bias), sequences()
    found = packed(encoder, inputs, is_causal=is_causal, compiled=compiled)
    assert sorted(found) == np.flatnonzero(LENGTHS).tolist()
    for i, states in found.items():
        expected = encoder(inputs[i], is_causal=is_causal)
        np.testing.assert_allclose(states, expected, atol=5e-6)
        one = encode_one(encoder, inputs[i], is_causal=is_causal)
        np.testing.assert_allclose(one, expected, atol=5e-6)
        assert one.dtype == np.float32


def test_gelu_in_place_is_gelu_and_what_is_compiled():
    x = np.linspace(-12, 12, 100_001).astype(np.float32).reshape(-1, 1)
    expected = gelu(x.astype(np.float64))
    made, compiled = x.copy(), x.copy()
    gelu_in_place(made)
    add_gelu(compiled, np.zeros(1, np.float32))
    error = np.abs(made - expected) / np.maximum(1, np.abs(x))
    assert error.max() < 3e-7
    np.testing.assert_allclose(made, compiled, rtol=3e-7, atol=2e-6)
    huge = np.array([-np.finfo("f4").max, np.finfo("f4").max], np.float32)
    gelu_in_place(huge)
    assert huge.tolist() == [0, np.finfo("f4").max]


@pytest.mark.parametrize("is_causal", [True, False])
def test_scores_that_do_not_fit_the_room_are_taken_some_at_a_time(monkeypatch, is_causal):
    monkeypatch.setattr(module, "SCORES", 60)
    encoder, inputs = encoder_of(False, "gelu"), sequences()
    for i, states in packed(encoder, inputs, is_causal=is_causal).items():
        expected = encoder(inputs[i], is_causal=is_causal)
        np.testing.assert_allclose(states, expected, atol=5e-6)


def test_the_inputs_of_one_stay_as_they_are():
    x = sequences()[2]
    before = x.copy()
    encode_one(encoder_of(True, "relu"), x)
    np.testing.assert_array_equal(x, before)
    assert encode_one(encoder_of(True, "relu"), x[:0]).shape == (0, D)


def test_places_count_from_0_in_each_sequence():
    (chunk,) = chunks_of(LENGTHS)
    for (_, places), n in zip(chunk.sequences(chunk.positions), sorted(LENGTHS)[1:], strict=True):
        assert places.ravel().tolist() == list(range(n))


def test_what_is_not_packed_is_refused():
    with pytest.raises(ValueError, match="a key head for each head"):
        encode_one(encoder_of(False, "relu", n_key_heads=1), sequences()[0])


def test_an_error_while_chunks_are_taken_comes_through(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_TOKENS", 4)

    def fail(chunk, x):
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        encode_packed(
            encoder_of(False, "gelu"),
            LENGTHS,
            lambda chunk: np.ones((chunk.n_tokens, D), np.float32),
            fail,
        )
