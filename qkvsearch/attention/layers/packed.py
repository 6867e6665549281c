"""Many texts through an encoder at once: their tokens end to end in one matrix, no padding.

Every linear layer is one product for all tokens of a chunk; attention runs over groups of texts of
equal length. What lies between the products is compiled: a pass each, in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from queue import SimpleQueue
from typing import Any

import numpy as np

from qkvsearch.attention.compiled_exp import exp_row
from qkvsearch.attention.layers.basic import ACTIVATIONS, LayerNorm, Linear
from qkvsearch.attention.layers.multi_head import MultiHeadAttention, split_heads
from qkvsearch.attention.layers.transformer import Encoder, EncoderLayer
from qkvsearch.compiled import compiled
from qkvsearch.threads import available_cores, thread_pool

Array = np.ndarray[Any, Any]
# A token's hidden vector is the widest, 6 kB in MiniLM: so many fit the cache beside the weights.
CHUNK_TOKENS = 1024
# Scores of attention that stay in the cache from the product to the softmax.
SCORES = 1 << 18

ZERO, ONE, HALF, CLIP = (np.float32(x) for x in (0, 1, 0.5, 4))
ROOT_HALF = np.float32(0.7071067811865476)
# erf(x) ≈ x · P(x²) / Q(x²) for |x| ≤ 4, to 3e-7: the coefficients of Eigen's `perf`, lowest first.
P0, P1, P2, P3, P4, P5, P6 = np.array(
    [-1.60960333262415e-02, -2.95459980854025e-03, -7.34990630326855e-04, -5.69250639462346e-05,
     -2.10102402082508e-06, 2.77068142495902e-08, -2.72614225801306e-10], np.float32,
)  # fmt: skip
Q0, Q1, Q2, Q3, Q4 = np.array(
    [-1.42647390514189e-02, -7.37332916720468e-03, -1.68282697438203e-03, -2.13374055278905e-04,
     -1.45660718464996e-05], np.float32,
)  # fmt: skip


@compiled
def add_gelu(x: Array, bias: Array) -> None:
    """x (n, d) = gelu(x + bias), in place."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            value = x[i, j] + bias[j]
            t = min(max(value * ROOT_HALF, -CLIP), CLIP)
            s = t * t
            p = P0 + s * (P1 + s * (P2 + s * (P3 + s * (P4 + s * (P5 + s * P6)))))
            q = Q0 + s * (Q1 + s * (Q2 + s * (Q3 + s * Q4)))
            x[i, j] = HALF * value * (ONE + t * (p / q))


@compiled
def softmax_rows(scores: Array, scale: np.float32) -> None:
    """scores (n, m) = softmax(scale · scores) of each row, in place."""
    for i in range(scores.shape[0]):
        row = scores[i]
        top = row[0]
        for j in range(row.shape[0]):
            top = max(top, row[j])
        for j in range(row.shape[0]):
            row[j] = (row[j] - top) * scale
        factor = ONE / exp_row(row, ZERO)
        for j in range(row.shape[0]):
            row[j] *= factor


@compiled
def add_norm(
    x: Array, added: Array, bias: Array, weight: Array, shift: Array, epsilon: np.float32
) -> None:
    """x (n, d) = the layer norm of x + added + bias, in place."""
    n, d = x.shape
    width = np.float32(d)
    for i in range(n):
        row, other = x[i], added[i]
        total = np.float32(0)
        for j in range(d):
            row[j] += other[j] + bias[j]
            total += row[j]
        mean = total / width
        squares = np.float32(0)
        for j in range(d):
            row[j] -= mean
            squares += row[j] * row[j]
        factor = ONE / np.sqrt(squares / width + epsilon)
        for j in range(d):
            row[j] = row[j] * factor * weight[j] + shift[j]


@dataclass(frozen=True)
class Chunk:
    """texts: which, shortest first. groups: (first token, number of texts, their length)."""

    texts: Array
    groups: list[tuple[int, int, int]]
    n_tokens: int


def chunks_of(lengths: Array) -> Iterator[Chunk]:
    """Texts by length, in chunks of about `CHUNK_TOKENS`; texts without a token are left out.

    >>> [(chunk.texts.tolist(), chunk.groups) for chunk in chunks_of(np.array([3, 0, 2, 3]))]
    [([2, 0, 3], [(0, 1, 2), (2, 2, 3)])]
    """
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    ends = np.cumsum(lengths[order])
    first = 0
    while first < len(order):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + CHUNK_TOKENS, "right")))
        found, counts = np.unique(lengths[order[first:last]], return_counts=True)
        starts = np.cumsum(found * counts) - found * counts
        groups = list(zip(starts.tolist(), counts.tolist(), found.tolist(), strict=True))
        yield Chunk(order[first:last], groups, int(ends[last - 1] - before))
        first = last


class Buffers:
    """Room for one chunk's intermediate results, used again for the next."""

    def __init__(self, n_tokens: int, d: int, d_hidden: int, n_scores: int) -> None:
        self.query, self.key, self.value, self.mixed, self.added = (
            np.empty((n_tokens, d), np.float32) for _ in range(5)
        )
        self.hidden = np.empty((n_tokens, d_hidden), np.float32)
        self.scores = np.empty(n_scores, np.float32)


def encode_packed(
    embedding: Any,
    encoder: Encoder,
    ids: Sequence[Array],
    progress: Callable[[int], None] | None = None,
) -> Array:
    """The mean of each text's final token vectors, at length 1; zeros for a text without tokens.

    embedding: `words`, `positions`, `kind` and `norm`, as in `_bert.TokenEmbedding`. ids: the token
    numbers of each text. `progress` is told how many texts more are done. -> float32 (n, d).
    """
    lengths = np.array([len(row) for row in ids], dtype=np.int64)
    means = np.zeros((len(ids), len(embedding.kind)), np.float32)
    chunks = list(chunks_of(lengths))
    if not chunks:
        return means
    n_threads = min(available_cores(), len(chunks))
    d_hidden = max((len(layer.feed_forward.hidden.weight) for layer in encoder.layers), default=0)
    longest = max(chunk.n_tokens for chunk in chunks)
    n_scores = max(SCORES, int(lengths.max()) ** 2)
    idle: SimpleQueue[Buffers] = SimpleQueue()
    for _ in range(n_threads):
        idle.put(Buffers(longest, means.shape[1], d_hidden, n_scores))

    def run(chunk: Chunk) -> Array:
        buffers = idle.get()
        try:
            x = embed(embedding, chunk, ids, buffers.added)
            for layer in encoder.layers:
                run_layer(layer, x, chunk, buffers)
            return _pool(x, chunk)
        finally:
            idle.put(buffers)

    # A chunk to each thread, compiled passes included, beats one product shared among the threads.
    with thread_pool(n_threads) as pool:
        for chunk, pooled in zip(chunks, pool.map(run, chunks), strict=True):
            means[chunk.texts] = pooled
            if progress is not None:
                progress(len(chunk.texts))
    return means


def embed(embedding: Any, chunk: Chunk, ids: Sequence[Array], places: Array) -> Array:
    """Word, position and kind, normed; `places` is room to gather the positions in."""
    x: Array = embedding.words.weight[np.concatenate([ids[text] for text in chunk.texts])]
    for start, count, length in chunk.groups:
        span = places[start : start + count * length].reshape(count, length, -1)
        span[:] = embedding.positions.weight[:length]
    _norm(embedding.norm, x, places[: len(x)], embedding.kind)
    return x


def run_layer(layer: EncoderLayer, x: Array, chunk: Chunk, buffers: Buffers) -> None:
    """One layer on the packed tokens x (n_tokens, d), in place."""
    n = len(x)
    mixed, added, hidden = buffers.mixed[:n], buffers.added[:n], buffers.hidden[:n]
    _attend(layer.attention, x, chunk, buffers, mixed)
    output = layer.attention.output
    np.matmul(mixed, output.weight.T, out=added)
    _norm(layer.attention_norm, x, added, output.bias)

    forward = layer.feed_forward
    if forward.activation == "gelu":
        np.matmul(x, forward.hidden.weight.T, out=hidden)
        add_gelu(hidden, forward.hidden.bias)
    else:
        hidden[:] = ACTIVATIONS[forward.activation](_project(forward.hidden, x, hidden))
    np.matmul(hidden, forward.output.weight.T, out=added)
    _norm(layer.feed_forward_norm, x, added, forward.output.bias)


def _attend(
    layer: MultiHeadAttention, x: Array, chunk: Chunk, buffers: Buffers, mixed: Array
) -> None:
    """Each text attends to itself: softmax(QKᵀ/√d)·V for a batch of texts of one length.

    The same as `attention.attention`, to rounding: a test compares them.
    """
    query, key, value = (
        _project(linear, x, room[: len(x)])
        for linear, room in (
            (layer.query, buffers.query),
            (layer.key, buffers.key),
            (layer.value, buffers.value),
        )
    )
    n_heads = layer.n_heads
    scale = np.float32(1 / np.sqrt(query.shape[1] // n_heads))
    for start, count, length in chunk.groups:
        span = slice(start, start + count * length)
        q, k, v, out = (
            split_heads(part[span].reshape(count, length, -1), n_heads)
            for part in (query, key, value, mixed)
        )
        keys = k.swapaxes(-1, -2)
        n_texts = max(1, SCORES // (n_heads * length * length))
        n_some = min(n_heads, max(1, SCORES // (length * length)))
        for text, head in product(range(0, count, n_texts), range(0, n_heads, n_some)):
            some = slice(text, text + n_texts), slice(head, head + n_some)
            shape = (*q[some].shape[:3], length)
            scores = buffers.scores[: math.prod(shape)].reshape(shape)
            np.matmul(q[some], keys[some], out=scores)
            softmax_rows(scores.reshape(-1, length), scale)
            np.matmul(scores, v[some], out=out[some])


def _project(linear: Linear, x: Array, room: Array) -> Array:
    np.matmul(x, linear.weight.T, out=room)
    if linear.bias is not None:
        room += linear.bias
    return room


def _norm(norm: LayerNorm, x: Array, added: Array, bias: Any) -> None:
    add_norm(x, added, bias, norm.weight, norm.bias, np.float32(norm.epsilon))


def _pool(x: Array, chunk: Chunk) -> Array:
    """The mean of each text's tokens, at length 1."""
    means = np.concatenate(
        [
            x[start : start + count * length].reshape(count, length, -1).mean(axis=1)
            for start, count, length in chunk.groups
        ]
    )
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return means
