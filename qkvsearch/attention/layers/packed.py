"""Sequences through an encoder at once: their vectors end to end in one matrix, no padding.

What `transformer.Encoder` computes, for answering: every linear layer is one product for all
vectors of a chunk; attention runs over groups of sequences of equal length. What lies between the
products happens in place, compiled where there are many sequences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from qkvsearch._utils.threads import available_cores, idle_cores, one_blas_thread, run_in_threads
from qkvsearch.attention.layers.basic import ACTIVATIONS, Array, LayerNorm, Linear, gelu_in_place
from qkvsearch.attention.layers.transformer import (
    Encoder,
    EncoderLayer,
    MultiHeadAttention,
    split_heads,
)
from qkvsearch.attention.masks import look_ahead_mask

# A vector between the feed-forward layers is the widest, 6 kB in MiniLM: this many of them fit the
# cache beside the weights.
CHUNK_TOKENS = 1024
# Scores of attention that stay in the cache from the product to the softmax.
SCORES = 1 << 18
# BLAS multiplies so many vectors at once; with one to three more, a product takes a sixth longer.
ROWS = 4
# So many multiplications take longer than to find out whether other cores are idle.
LARGE = 1 << 25


@dataclass(frozen=True)
class Chunk:
    """Sequences that go through the layers together.

    members: which, shortest first. groups: (first vector, number of sequences, their length).
    n_tokens: the vectors of all of them.
    """

    members: Array
    groups: list[tuple[int, int, int]]
    n_tokens: int

    @cached_property
    def places(self) -> Array:
        """Where in its sequence each vector stands, int64 (n_tokens,)."""
        return np.concatenate([np.tile(np.arange(n), count) for _, count, n in self.groups])

    def squares(self, x: Array) -> Iterator[Array]:
        """Vectors (n_tokens, d) of each group as (number of sequences, their length, d)."""
        for start, count, length in self.groups:
            yield x[start : start + count * length].reshape(count, length, -1)

    def each(self, x: Array) -> Iterator[tuple[int, Array]]:
        """Which sequence, and its vectors (length, d), of all vectors (n_tokens, d)."""
        vectors = (one for group in self.squares(x) for one in group)
        return zip(self.members.tolist(), vectors, strict=True)


def chunks_of(lengths: Array) -> Iterator[Chunk]:
    """Sequences by length, in chunks of about `CHUNK_TOKENS`; empty ones are left out.

    >>> [(chunk.members.tolist(), chunk.groups) for chunk in chunks_of(np.array([3, 0, 2, 3]))]
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


def encode_one(encoder: Encoder, x: Array, *, is_causal: bool = False) -> Array:
    """`encoder(x)` of one sequence (L, d), float32: without compiled code, whose libraries take
    longer to import than a text to encode.

    >>> encoder, x = Encoder.create(2, 8, 2, 16, rng=0), np.ones((5, 8), np.float32)
    >>> np.allclose(encode_one(encoder, x), encoder(x), atol=1e-6)
    True
    """
    n = len(x)
    padded = np.zeros((_whole_rows(n), x.shape[1]), np.float32)
    padded[:n] = x
    run = _through(encoder, len(padded), n, PLAIN, is_causal)
    is_large = n * sum(map(_n_weights, encoder.layers)) >= LARGE
    with one_blas_thread(), idle_cores() if is_large else nullcontext():
        for chunk in chunks_of(np.array([n])):
            padded = run(chunk, padded)
    return padded[:n]


def _whole_rows(n: int) -> int:
    """n or the next multiple of `ROWS`."""
    return -(-n // ROWS) * ROWS


def encode_packed(
    encoder: Encoder,
    lengths: Array,
    embed: Callable[[Chunk], Array],
    take: Callable[[Chunk, Array], None],
    *,
    is_causal: bool = False,
    compiled: bool = True,
) -> None:
    """What `encoder` makes of many sequences, a chunk of them at a time, in several threads.

    lengths: int (n,), of each sequence. embed: called with a chunk, gives what the first layer
    reads, float32 (n_tokens, d), an array of its own. take: called with a chunk and its final
    vectors (n_tokens, d), from any thread and in no certain order. is_causal: as for `attention`.

    Raises ValueError for layers that are not packed: another score than "dot", or fewer key heads.
    """
    chunks = list(chunks_of(lengths))
    n_tokens = max((chunk.n_tokens for chunk in chunks), default=0)
    longest = int(np.max(lengths, initial=0))
    passes: Any = PLAIN
    if compiled:
        from qkvsearch.attention import kernels as passes

    def worker() -> Callable[[Chunk], None]:
        run = _through(encoder, n_tokens, longest, passes, is_causal)
        return lambda chunk: take(chunk, run(chunk, embed(chunk)))

    # BLAS may have been given one thread; a chunk to each core is still the faster way.
    run_in_threads(worker, chunks, available_cores())


def _through(
    encoder: Encoder, n_tokens: int, longest: int, passes: Any, is_causal: bool
) -> Callable[[Chunk, Array], Array]:
    """What takes a chunk's vectors through the layers, in place, with room of its own for
    intermediate results.
    """
    for layer in encoder.layers:
        if layer.attention.score != "dot" or layer.attention.n_key_heads != layer.attention.n_heads:
            raise ValueError('packed layers have the score "dot" and a key head for each head')
    rooms = Buffers(encoder, n_tokens, longest)

    def run(chunk: Chunk, x: Array) -> Array:
        for layer in encoder.layers:
            _run_layer(layer, x, chunk, rooms, passes, is_causal)
        return x if encoder.norm is None else encoder.norm(x)

    return run


def _n_weights(layer: EncoderLayer) -> int:
    """Of its products."""
    attention, forward = layer.attention, layer.feed_forward
    linear = (attention.query, attention.key, attention.value, attention.output)
    return sum(each.weight.size for each in (*linear, forward.hidden, forward.output))


class Buffers:
    """Room for one chunk's intermediate results, used again for the next."""

    def __init__(self, encoder: Encoder, n_tokens: int, longest: int) -> None:
        def width(of: Callable[[EncoderLayer], Linear]) -> int:
            return max((len(of(layer).weight) for layer in encoder.layers), default=0)

        d, d_hidden = width(lambda x: x.attention.output), width(lambda x: x.feed_forward.hidden)
        self.query, self.key, self.value, self.added = (
            np.empty((n_tokens, d), np.float32) for _ in range(4)
        )
        # Vectors of no sequence stay 0 in it: what is left in memory may not be a number.
        self.mixed = np.zeros((n_tokens, d), np.float32)
        self.hidden = np.empty((n_tokens, d_hidden), np.float32)
        self.scores = np.empty(max(SCORES, longest**2) if encoder.layers else 0, np.float32)


def _run_layer(
    layer: EncoderLayer, x: Array, chunk: Chunk, buffers: Buffers, passes: Any, is_causal: bool
) -> None:
    """One layer on the packed vectors x (n_tokens, d), in place."""
    added, hidden = buffers.added[: len(x)], buffers.hidden[: len(x)]

    def add(linear: Linear, inputs: Array, norm: LayerNorm) -> None:
        np.matmul(inputs, linear.weight.T, out=added)
        bias = np.zeros(len(linear.weight), np.float32) if linear.bias is None else linear.bias
        if layer.norm_first:
            np.add(added, bias, out=added)
            np.add(x, added, out=x)
        else:
            passes.add_norm(x, added, bias, norm.weight, norm.bias, np.float32(norm.epsilon))

    read = layer.attention_norm(x) if layer.norm_first else x
    mixed = _attend(layer.attention, read, chunk, buffers, passes, is_causal)
    add(layer.attention.output, mixed, layer.attention_norm)

    forward = layer.feed_forward
    read = layer.feed_forward_norm(x) if layer.norm_first else x
    if forward.activation == "gelu" and forward.hidden.bias is not None:
        np.matmul(read, forward.hidden.weight.T, out=hidden)
        passes.add_gelu(hidden, forward.hidden.bias)
    else:
        hidden[:] = ACTIVATIONS[forward.activation](_project(forward.hidden, read, hidden))
    add(forward.output, hidden, layer.feed_forward_norm)


def _attend(
    layer: MultiHeadAttention,
    x: Array,
    chunk: Chunk,
    buffers: Buffers,
    passes: Any,
    is_causal: bool,
) -> Array:
    """softmax(QKᵀ/√d)·V of each sequence: `attention`, to rounding, which a test compares."""
    mixed, n_heads = buffers.mixed[: len(x)], layer.n_heads
    rooms = (layer.query, buffers.query), (layer.key, buffers.key), (layer.value, buffers.value)
    parts = [_project(linear, x, room[: len(x)]) for linear, room in rooms]
    scale = np.float32(1 / math.sqrt(len(layer.query.weight) // n_heads))
    for groups in zip(*map(chunk.squares, (*parts, mixed)), strict=True):
        q, k, v, out = (split_heads(group, n_heads) for group in groups)
        keys, (count, _, length, _) = k.swapaxes(-1, -2), q.shape
        n_some = max(1, SCORES // (n_heads * length * length))
        n_heads_some = min(n_heads, max(1, SCORES // (length * length)))
        for first, head in product(range(0, count, n_some), range(0, n_heads, n_heads_some)):
            some = slice(first, first + n_some), slice(head, head + n_heads_some)
            shape = (*q[some].shape[:3], length)
            scores = buffers.scores[: math.prod(shape)].reshape(shape)
            np.matmul(q[some], keys[some], out=scores)
            passes.softmax_rows(scores.reshape(-1, length), scale, is_causal)
            np.matmul(scores, v[some], out=out[some])
    return mixed


def _project(linear: Linear, x: Array, room: Array) -> Array:
    np.matmul(x, linear.weight.T, out=room)
    if linear.bias is not None:
        room += linear.bias
    return room


# --- what lies between the products, in NumPy: as `kernels`, which are compiled ---


def _add_gelu(x: Array, bias: Array) -> None:
    x += bias
    gelu_in_place(x)


def _softmax_rows(scores: Array, scale: np.float32, is_causal: bool) -> None:
    scores *= scale
    if is_causal:
        squares = scores.reshape(-1, scores.shape[1], scores.shape[1])
        squares[:, ~look_ahead_mask(scores.shape[1])] = -np.inf
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)


def _add_norm(
    x: Array, added: Array, bias: Array, weight: Array, shift: Array, epsilon: np.float32
) -> None:
    x += added
    x += bias
    x -= x.mean(axis=1, keepdims=True)
    squares = np.einsum("nd,nd->n", x, x)[:, None]
    x /= np.sqrt(squares / np.float32(x.shape[1]) + epsilon)
    x *= weight
    x += shift


PLAIN: Any = SimpleNamespace(add_gelu=_add_gelu, softmax_rows=_softmax_rows, add_norm=_add_norm)
