"""Lesson on the whole block: random texts through random blocks, with parts left out."""

from typing import Any

import numpy as np

from qkvsearch.attention.layers import Encoder, EncoderLayer, sinusoidal_positions

TEXTS = 20
TOKENS = 6
WIDTH = 16
HEADS = 2
# The order of the tokens after the first and the third are swapped.
SWAPPED = [2, 1, 0, 3, 4, 5]


def random_texts(seed: int = 0) -> np.ndarray:
    """Return the vectors of random tokens (TEXTS, TOKENS, WIDTH)."""
    return np.random.default_rng(seed).normal(size=(TEXTS, TOKENS, WIDTH))


def similarity(x: np.ndarray) -> float:
    """Return the mean cosine of all pairs of a text's tokens (…, n, d); of texts, the median."""
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    i, j = np.triu_indices(x.shape[-2], k=1)
    return float(np.median((unit[..., i, :] * unit[..., j, :]).sum(axis=-1).mean(axis=-1)))


def through(
    x: np.ndarray, n_blocks: int, residual: bool = True, norm: bool = True, forward: bool = True
) -> list[np.ndarray]:
    """Return what each block with random weights gives; some parts may be left out."""
    stack = Encoder.create(n_blocks, x.shape[-1], HEADS, 4 * x.shape[-1], rng=0, dtype=np.float64)
    outputs = []
    for block in stack.layers:
        parts: list[Any] = [(block.attention, block.attention_norm)]
        if forward:
            parts.append((block.feed_forward, block.feed_forward_norm))
        for part, norm_layer in parts:
            x = x + part(x) if residual else part(x)
            if norm:
                x = norm_layer(x)
        outputs.append(x)
    return outputs


def measure(x: np.ndarray, n_blocks: int, positions: bool = True, **parts: bool) -> list[float]:
    """Return how similar tokens become, their spread, and how far outputs move in a new order.

    An output is compared with that of the same token before; how far is in spreads, and the
    median of the texts.
    """
    P = np.zeros((TOKENS, WIDTH))
    if positions:
        P = sinusoidal_positions(TOKENS, WIDTH, dtype=np.float64)
    outputs = through(x + P, n_blocks, **parts)[-1]
    new = through(x[:, SWAPPED] + P, n_blocks, **parts)[-1]
    spread = float(outputs.std())
    moved = np.abs(new - outputs[:, SWAPPED]).max(axis=(1, 2)) / spread
    return [similarity(outputs), spread, float(np.median(moved).round(12))]


def nearest_line(inputs: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return what the best linear layer with a bias answers, by least squares."""
    with_bias = np.column_stack([inputs, np.ones(len(inputs))])
    return with_bias @ np.linalg.lstsq(with_bias, answers, rcond=None)[0]


def count_numbers(d: int) -> list[int]:
    """Return how many numbers attention, feed forward and norms of a block learn, with biases."""
    layer = EncoderLayer.create(d, HEADS, 4 * d, rng=0)
    attend = layer.attention
    forward = layer.feed_forward
    parts: list[Any] = [
        (attend.query, attend.key, attend.value, attend.output),
        (forward.hidden, forward.output),
        (layer.attention_norm, layer.feed_forward_norm),
    ]
    return [sum(x.weight.size + x.bias.size for x in part) for part in parts]
