"""Encode one sequence or many, fast: their vectors are in one matrix, without padding.

The results are those of `transformer.Encoder`. Each linear layer is one product for all vectors of
a chunk; attention runs over groups of sequences of equal length. The operations between the
products work in place, compiled if there are many sequences.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.threads import available_cores, one_blas_thread, run_in_threads
from qkvsearch.attention.layers.basic import ACTIVATIONS, Array, LayerNorm, Linear, gelu_in_place
from qkvsearch.attention.layers.transformer import (
    Encoder,
    EncoderLayer,
    MultiHeadAttention,
    split_heads,
)
from qkvsearch.attention.masks import look_ahead_mask

# The vectors between the feed-forward layers are the widest, 6 kB in MiniLM. This many fit into the
# cache beside the weights.
CHUNK_TOKENS = 1024
# Scores of attention that stay in the cache from the product to the softmax.
SCORES = 1 << 18


@dataclass(frozen=True)
class Chunk:
    """Sequences that go through the layers together.

    members: their numbers, shortest first. groups: (first vector, number of sequences, length).
    n_tokens: the number of vectors.
    """

    members: Array
    groups: list[tuple[int, int, int]]
    n_tokens: int

    @cached_property
    def positions(self) -> Array:
        """The position of each vector in its sequence, int64 (n_tokens,)."""
        return np.concatenate([np.tile(np.arange(n), count) for _, count, n in self.groups])

    def groups_of(self, x: Array) -> Iterator[Array]:
        """Yield the vectors (n_tokens, d) of each group as (number of sequences, length, d)."""
        for start, count, length in self.groups:
            yield x[start : start + count * length].reshape(count, length, -1)

    def sequences(self, x: Array) -> Iterator[tuple[int, Array]]:
        """Yield the number of each sequence, and its vectors (length, d) out of (n_tokens, d)."""
        vectors = (sequence for group in self.groups_of(x) for sequence in group)
        return zip(self.members.tolist(), vectors, strict=True)


def chunks_of(lengths: Array) -> Iterator[Chunk]:
    """Yield chunks of about `CHUNK_TOKENS`, sequences sorted by length, without empty ones.

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
        unique_lengths, counts = np.unique(lengths[order[first:last]], return_counts=True)
        starts = np.cumsum(unique_lengths * counts) - unique_lengths * counts
        groups = list(zip(starts.tolist(), counts.tolist(), unique_lengths.tolist(), strict=True))
        yield Chunk(order[first:last], groups, int(ends[last - 1] - before))
        first = last


def encode_one(encoder: Encoder, x: Array, *, is_causal: bool = False) -> Array:
    """Return `encoder(x)` of one sequence (L, d), float32, without compiled code: importing its
    libraries takes longer than encoding a text.

    >>> encoder, x = Encoder.create(2, 8, 2, 16, rng=0), np.ones((5, 8), np.float32)
    >>> np.allclose(encode_one(encoder, x), encoder(x), atol=1e-6)
    True
    """
    x = np.array(x, np.float32)
    run = _through(encoder, len(x), len(x), PLAIN, is_causal)
    with one_blas_thread():
        for chunk in chunks_of(np.array([len(x)])):
            x = run(chunk, x)
    return x


def encode_packed(
    encoder: Encoder,
    lengths: Array,
    embed: Callable[[Chunk], Array],
    take: Callable[[Chunk, Array], None],
    *,
    is_causal: bool = False,
    compiled: bool = True,
) -> None:
    """Encode many sequences, a chunk at a time, in several threads.

    lengths: int (n,), of each sequence. embed: called with a chunk, returns the input of the first
    layer, a new array, float32 (n_tokens, d). take: called with a chunk and its final vectors
    (n_tokens, d), from any thread and in any order. is_causal: as for `attention`.

    Raises ValueError for layers with fewer key heads.
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
    """Return a function with its own buffers that takes a chunk's vectors through the layers."""
    for layer in encoder.layers:
        if layer.attention.n_key_heads != layer.attention.n_heads:
            raise ValueError("packed layers have a key head for each head")
    buffers = Buffers(encoder, n_tokens, longest)

    def run(chunk: Chunk, x: Array) -> Array:
        for layer in encoder.layers:
            _run_layer(layer, x, chunk, buffers, passes, is_causal)
        return x if encoder.norm is None else encoder.norm(x)

    return run


class Buffers:
    """Arrays for a chunk's intermediate results, reused for the next chunk."""

    def __init__(self, encoder: Encoder, n_tokens: int, longest: int) -> None:
        def width(of: Callable[[EncoderLayer], Linear]) -> int:
            return max((len(of(layer).weight) for layer in encoder.layers), default=0)

        d, d_hidden = width(lambda x: x.attention.output), width(lambda x: x.feed_forward.hidden)
        self.query, self.key, self.value, self.added, self.mixed = (
            np.empty((n_tokens, d), np.float32) for _ in range(5)
        )
        self.hidden = np.empty((n_tokens, d_hidden), np.float32)
        self.scores = np.empty(max(SCORES, longest**2) if encoder.layers else 0, np.float32)


def _run_layer(
    layer: EncoderLayer, x: Array, chunk: Chunk, buffers: Buffers, passes: Any, is_causal: bool
) -> None:
    """Apply one layer to the packed vectors x (n_tokens, d), in place."""
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
    """Compute softmax(QKᵀ/√d)·V of each sequence, like `attention` up to rounding."""
    mixed, n_heads = buffers.mixed[: len(x)], layer.n_heads
    pairs = (layer.query, buffers.query), (layer.key, buffers.key), (layer.value, buffers.value)
    projected = [_project(linear, x, buffer[: len(x)]) for linear, buffer in pairs]
    scale = np.float32(1 / math.sqrt(len(layer.query.weight) // n_heads))
    for groups in zip(*map(chunk.groups_of, (*projected, mixed)), strict=True):
        q, k, v, out = (split_heads(group, n_heads) for group in groups)
        keys, (count, _, length, _) = k.swapaxes(-1, -2), q.shape
        n_sequences = max(1, SCORES // (n_heads * length * length))
        n_heads_at_once = min(n_heads, max(1, SCORES // (length * length)))
        for first, head in product(
            range(0, count, n_sequences), range(0, n_heads, n_heads_at_once)
        ):
            block = slice(first, first + n_sequences), slice(head, head + n_heads_at_once)
            shape = (*q[block].shape[:3], length)
            scores = buffers.scores[: math.prod(shape)].reshape(shape)
            np.matmul(q[block], keys[block], out=scores)
            passes.softmax_rows(scores.reshape(-1, length), scale, is_causal)
            np.matmul(scores, v[block], out=out[block])
    return mixed


def _project(linear: Linear, x: Array, buffer: Array) -> Array:
    np.matmul(x, linear.weight.T, out=buffer)
    if linear.bias is not None:
        buffer += linear.bias
    return buffer


# --- operations between the products, in NumPy; `kernels` has compiled ones ---


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
