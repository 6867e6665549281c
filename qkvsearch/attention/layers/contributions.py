"""Contributions: what each token of the input adds to each output of an encoder."""

from typing import Any

import numpy as np

from qkvsearch.attention.layers.basic import (
    ACTIVATIONS,
    Array,
    FeedForward,
    LayerNorm,
    Linear,
    standardize,
)
from qkvsearch.attention.layers.transformer import Encoder, EncoderLayer, MultiHeadAttention

# Shares (L, n, d): vector i is the sum of n addends, the last of which no token adds.
Shares = Array
ALL_ROWS = slice(None)


def contributions(encoder: Encoder, x: Array, rows: slice = ALL_ROWS, **options: Any) -> Shares:
    """Split each output of an encoder into a sum over the tokens of its input.

    x (L, d) -> (L, L + 1, d), or fewer outputs, those of `rows`: [i, j] is what token j adds to
    output i, and [i, L] what the biases add. Over j they add up to encoder(x, **options)[i].

    Three things are held fixed at their values for this x: the attention weights, the deviation of
    each norm, and the share of its input that each activation passes on. The encoder is then a
    sum of matrix products, and a token adds what these products give for it alone. This is exact
    for this x; with another token, the fixed values would change, too.
    For attention by itself: Kobayashi et al. 2020, "Attention is not only a weight", section 3;
    with residuals and norms: Kobayashi et al. 2021.

    >>> encoder = Encoder.create(2, d_model=8, n_heads=2, d_feedforward=16, rng=0, norm_first=True)
    >>> x = np.random.default_rng(0).normal(size=(5, 8))
    >>> parts = contributions(encoder, x, is_causal=True)
    >>> parts.shape, np.allclose(parts.sum(axis=1), encoder(x, is_causal=True), atol=1e-5)
    ((5, 6, 8), True)
    """
    length = len(x)
    shares = np.zeros((length, length + 1, x.shape[-1]), dtype=x.dtype)
    shares[np.arange(length), np.arange(length)] = x
    for number, layer in enumerate(encoder.layers, 1):
        is_last = number == len(encoder.layers)
        shares = _through_layer(layer, shares, rows if is_last else ALL_ROWS, options)
    if not encoder.layers:
        shares = shares[rows]
    return shares if encoder.norm is None else _through_norm(encoder.norm, shares)


def _through_layer(
    layer: EncoderLayer, shares: Shares, rows: slice, options: dict[str, Any]
) -> Shares:
    """Return the shares of a layer's outputs in `rows` from those of its inputs."""
    if layer.norm_first:
        normed = _through_norm(layer.attention_norm, shares)
        shares = shares[rows] + _through_attention(layer.attention, normed, rows, options)
        normed = _through_norm(layer.feed_forward_norm, shares)
        return shares + _through_feed_forward(layer.feed_forward, normed)
    attended = _through_attention(layer.attention, shares, rows, options)
    shares = _through_norm(layer.attention_norm, shares[rows] + attended)
    fed = _through_feed_forward(layer.feed_forward, shares)
    return _through_norm(layer.feed_forward_norm, shares + fed)


def _through_attention(
    layer: MultiHeadAttention, shares: Shares, rows: slice, options: dict[str, Any]
) -> Shares:
    """Mix the shares of the values by the weights of each head, then apply the output layer."""
    weights = layer(shares.sum(axis=1), return_weights=True, **options)[1][:, rows]
    values = _through_linear(layer.value, shares)
    length, n, d_value = values.shape
    d_head = d_value // layer.n_key_heads
    values = values.reshape(length, n, layer.n_key_heads, d_head).transpose(2, 0, 1, 3)
    values = values.repeat(layer.n_heads // layer.n_key_heads, axis=0)
    mixed = weights @ values.reshape(layer.n_heads, length, n * d_head)
    mixed = mixed.reshape(*mixed.shape[:2], n, d_head).transpose(1, 2, 0, 3)
    return _through_linear(layer.output, mixed.reshape(len(mixed), n, layer.n_heads * d_head))


def _through_feed_forward(layer: FeedForward, shares: Shares) -> Shares:
    """Replace each activation by its factor for this input: for a ReLU 0 or 1."""
    hidden = _through_linear(layer.hidden, shares)
    total = hidden.sum(axis=1, keepdims=True)
    active = ACTIVATIONS[layer.activation](total)
    gates = np.divide(active, total, out=np.zeros_like(total), where=total != 0)
    hidden *= gates
    return _through_linear(layer.output, hidden)


def _through_norm(norm: LayerNorm, shares: Shares) -> Shares:
    """Centre and scale each addend, and divide it by the deviation of their sum."""
    _, deviation = standardize(shares.sum(axis=1, keepdims=True), norm.epsilon)
    shares = shares - shares.mean(axis=-1, keepdims=True)
    shares *= norm.weight / deviation
    shares[:, -1] += norm.bias
    return shares


def _through_linear(layer: Linear, shares: Shares) -> Shares:
    """Multiply each addend by the weight; the bias belongs to no token."""
    shares = Linear(layer.weight)(shares)
    if layer.bias is not None:
        shares[:, -1] += layer.bias
    return shares
