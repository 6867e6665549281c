"""Attention block by block, in NumPy and in threads: memory grows with L + S, never with L × S.

A softmax needs a row's largest score and the sum of its exponentials. Both can be kept as running
values and corrected when a larger score arrives. So keys may come block by block, in any order,
from several files or machines: the online softmax.
Milakov & Gimelshein 2018, section 3; Rabe & Staats 2021; Dao et al. 2022 (FlashAttention),
section 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from qkvsearch._utils.threads import run_in_threads
from qkvsearch.attention.arguments import AttentionOptions, Inputs, block_of
from qkvsearch.attention.array_api import Array, cast, is_numpy
from qkvsearch.attention.masks import window_span
from qkvsearch.attention.weights import EMPTY_ROWS, mix

BlockSize = int | Literal["auto"]

# Names a block of queries: the index of its batch and head, then a slice of the queries.
BlockIndex = tuple[Any, ...]

# Queries and keys of a block: enough that matrix products take most of the time, few enough that
# the block's scores, 512 KiB in float32, stay in a core's own cache.
QUERIES, KEYS = 256, 512

# With at most this many scores in all, or in each matrix, computing them at once is faster.
FEW_SCORES, SMALL_MATRIX = 2**18, 2**14


class Partial(NamedTuple):
    """What some of the keys contribute to each query's answer.

    peak (..., L), which no score so far exceeds by more than 80: compiled code moves it rarely, and
    e⁸⁰ still fits into float32. total (..., L) = Σⱼ exp(sⱼ − peak), 0 where every key was hidden
    or, under "relu", where no score is positive. mixed (..., L, dv) = Σⱼ exp(sⱼ − peak)·vⱼ.

    >>> first = Partial(np.array([0.0]), np.array([2.0]), np.array([[10.0]]))
    >>> then = Partial(np.array([0.0]), np.array([1.0]), np.array([[7.0]]))
    >>> first.merge(then).total, first.output(), first.merge(then).output().round(3)
    (array([3.]), array([[5.]]), array([[5.667]]))
    """

    peak: Array
    total: Array
    mixed: Array

    @classmethod
    def empty(cls, n_queries: int, width: int, dtype: np.dtype) -> Partial:
        """Return the contribution of no keys, for L queries and values of `width`."""
        return cls(
            # Not −∞: −∞ − (−∞) would be NaN.
            np.full(n_queries, np.finfo(dtype).min, dtype),
            np.zeros(n_queries, dtype),
            np.zeros((n_queries, width), dtype),
        )

    @np.errstate(all="ignore")
    def merge(self, other: Partial) -> Partial:
        """Return the contribution of the keys of both."""
        if (self.peak == other.peak).all():
            return Partial(self.peak, self.total + other.total, self.mixed + other.mixed)
        peak = np.maximum(self.peak, other.peak)
        mine, theirs = np.exp(self.peak - peak), np.exp(other.peak - peak)
        total = self.total * mine + other.total * theirs
        return Partial(peak, total, _times(self.mixed, mine) + _times(other.mixed, theirs))

    def output(self) -> Array:
        """Return the mixed values (..., L, dv) of these keys alone; zeros where none is visible."""
        total = self.total[..., None]
        return self.mixed / np.where(total == 0, 1, total)


# --- terms: what each key adds to its row, computed in place of the scores (L, S). Each function
# returns the rows' peaks (L,) and totals (L,) ---


def softmax_terms(scores: Array) -> tuple[Array, Array]:
    """Compute exp(s − peak)."""
    # Never −∞: −∞ − (−∞) would be NaN.
    peak = np.maximum(scores.max(axis=-1), np.finfo(scores.dtype).min)
    scores -= peak[:, None]
    np.exp(scores, out=scores)
    return peak, scores.sum(axis=-1)


def relu_terms(scores: Array) -> tuple[Array, Array]:
    """Compute max(0, s)."""
    scores[scores <= 0] = 0
    return np.zeros(len(scores), scores.dtype), scores.sum(axis=-1)


def plain_terms(scores: Array) -> tuple[Array, Array]:
    """Keep s. The total is the number of visible keys; nothing is divided by it."""
    hidden = scores == -np.inf
    scores[hidden] = 0
    return np.zeros(len(scores), scores.dtype), (~hidden).sum(axis=-1, dtype=scores.dtype)


# For each normalizer; weights.NORMALIZERS has the same names.
TERMS: Mapping[str, Callable[[Array], tuple[Array, Array]]] = {
    "softmax": softmax_terms,
    "relu": relu_terms,
    "none": plain_terms,
}


def _times(mixed: Array, factor: Array) -> Array:
    """Compute mixed · factor with ∞ · 0 = 0: a weight that has shrunk to 0 takes nothing."""
    scaled = mixed * factor[..., None]
    return scaled if np.isfinite(scaled).all() else np.where(factor[..., None] == 0, 0, scaled)


# --- blocks ---


def check_size(block_size: BlockSize) -> None:
    """Raise ValueError unless `block_size` is "auto" or a positive integer."""
    is_whole = isinstance(block_size, int | np.integer) and not isinstance(block_size, bool)
    if block_size != "auto" and not (is_whole and block_size > 0):
        raise ValueError(f'block_size must be "auto" or a positive integer, got {block_size!r}')


def worthwhile(inputs: Inputs, block_size: BlockSize) -> bool:
    """Return whether to use blocks: on request, for many scores, and for files."""
    if not is_numpy(inputs.query):
        return False
    if block_size != "auto" or any(isinstance(x, np.memmap) for x in inputs):
        return True
    return math.prod(inputs.shape) > FEW_SCORES and math.prod(inputs.shape[-2:]) > SMALL_MATRIX


def attend(inputs: Inputs, options: AttentionOptions, block_size: BlockSize) -> Array:
    """Compute attention's output (..., Hq, L, dv), in the dtype of the result."""
    output = np.empty((*inputs.shape[:-1], inputs.value.shape[-1]), inputs.dtype)

    def store(block_index: BlockIndex, partial: Partial) -> None:
        output[block_index] = partial.mixed if options.normalize == "none" else partial.output()
        empty = partial.total == 0
        if empty.any() and options.empty_rows != "zero":
            value = _at(inputs.value, block_index[:-1], inputs.shape[:-2])
            weight = EMPTY_ROWS[options.empty_rows](len(value))
            # A sum over no keys is 0, whatever the weights would be.
            mean = weight * value.sum(axis=0, dtype=inputs.working) if len(value) else 0
            output[block_index][empty] = mean

    _for_each_block(inputs, options, block_size, store)
    return output


def _for_each_block(
    inputs: Inputs,
    options: AttentionOptions,
    block_size: BlockSize,
    store: Callable[[BlockIndex, Partial], None],
) -> None:
    """Call store(block_index, partial) for each block of queries, after attention over all its
    keys. It is called from several threads, with blocks in any order.
    """
    *lead, n_queries, n_keys = inputs.shape
    most = (QUERIES, KEYS) if block_size == "auto" else (block_size, block_size)
    block_shape = min(most[0], max(n_queries, 1)), min(most[1], max(n_keys, 1))
    is_compiled = _is_plain(inputs, options)
    if is_compiled:
        inputs = inputs._replace(key=_row_by_row(inputs.key), value=_row_by_row(inputs.value))

    def worker() -> Callable[[BlockIndex], None]:
        return _Worker(inputs, options, block_shape, is_compiled, store).attend

    # Compiled code takes up to four blocks of queries at a time, to return to Python less often, as
    # long as at least eight tasks are left for the threads to share.
    n_blocks = 1
    if is_compiled:
        n_blocks = min(4, max(1, math.prod(inputs.shape[:-1]) // block_shape[0] // 8))
    # The last queries first: under a look-ahead mask they take longest, and a long task that starts
    # last would leave the other threads idle.
    tasks = reversed(_slices(0, n_queries, block_shape[0] * n_blocks))
    run_in_threads(worker, [(*index, rows) for rows in tasks for index in np.ndindex(*lead)])


class _Worker:
    """Attention of one block of queries after another, in one thread.

    block_shape: the most queries and keys at a time. is_compiled: whether `_is_plain`.
    """

    def __init__(
        self,
        inputs: Inputs,
        options: AttentionOptions,
        block_shape: tuple[int, int],
        is_compiled: bool,
        store: Callable[[BlockIndex, Partial], None],
    ) -> None:
        self.inputs, self.options = inputs, options
        self.is_compiled = is_compiled
        self.store = store
        # One array for all blocks: allocating one for each would cost as much as the exponentials.
        self.scratch = np.empty(block_shape, inputs.working)

    @np.errstate(all="ignore")
    def attend(self, block_index: BlockIndex) -> None:
        """Attend to all keys, and store the result in one block or several smaller ones."""
        *index, rows = block_index
        lead = self.inputs.shape[:-2]
        *head, mask, bias = (_at(x, index, lead) for x in self.inputs[:5])
        options = replace(self.options, mask=mask, bias=bias)
        if self.is_compiled:
            partial = _in_compiled_code(head, options, rows, self.scratch)
            if _is_sound(partial):
                self.store(block_index, partial)
                return
        for block in _slices(rows.start, rows.stop, len(self.scratch)):
            partial = _in_numpy(head, options, block, self.scratch, np.matmul)
            if _is_sound(partial):
                self.store((*index, block), partial)
            else:
                self._attend_with_infinities(head, options, index, block)

    def _attend_with_infinities(
        self, head: Sequence[Array], options: AttentionOptions, index: Sequence[int], rows: slice
    ) -> None:
        """Attend where a value is infinite or NaN: over all keys at once.

        Only beside the largest score of all is it known which weights are 0, and take nothing from
        an infinite value.
        """
        product = mix if options.normalize == "none" else _mix_shares
        n_keys = self.inputs.shape[-1]
        # As many queries as keep the scores no larger than those of other blocks.
        n_queries = max(1, self.scratch.size // n_keys)
        for block in _slices(rows.start, rows.stop, n_queries):
            scores = np.empty((block.stop - block.start, n_keys), self.inputs.working)
            partial = _in_numpy(head, options, block, scores, product)
            self.store((*index, block), partial)


def _is_sound(partial: Partial) -> bool:
    """Return False if an infinite or NaN value, visible or hidden, reached the result."""
    return bool(np.isfinite(partial.mixed.sum()) and np.isfinite(partial.total.sum()))


def _mix_shares(terms: Array, value: Array) -> Array:
    """Compute terms @ value; a value with a share of 0 in its row's terms adds nothing."""
    total = terms.sum(axis=-1, keepdims=True)
    return mix(terms / np.where(total == 0, 1, total), value) * total


def _is_plain(inputs: Inputs, options: AttentionOptions) -> bool:
    """Return whether the compiled loop can compute this: softmax over float32 dot products, with
    or without a window."""
    return (
        (options.score, options.normalize, options.softcap) == ("dot", "softmax", 0)
        and options.mask is None
        and options.bias is None
        and min(inputs.query.shape[-1], inputs.value.shape[-1]) > 0
        and all(x.dtype == np.float32 for x in inputs[:3])
        # Other layouts are copied, which a file may be too large for.
        and all(_is_row_by_row(x) or not isinstance(x, np.memmap) for x in inputs[1:3])
    )


def _row_by_row(x: Array) -> Array:
    return x if _is_row_by_row(x) else np.ascontiguousarray(x)


def _is_row_by_row(x: Array) -> bool:
    """Return whether matrices are in memory row by row; the heads of a layer are not."""
    return x.strides[-2:] == (x.itemsize * x.shape[-1], x.itemsize)


def _in_compiled_code(
    head: Sequence[Array], options: AttentionOptions, rows: slice, scratch: Array
) -> Partial:
    """Compute attention of some queries of a head over all keys, if `_is_plain`."""
    # Imported when used: the compiler takes longer to import than everything else here.
    from qkvsearch.attention.kernels import attend_rows

    query, key, value = head
    scale = query.shape[-1] ** -0.5 if options.scale is None else options.scale
    scaled = np.ascontiguousarray(query[rows]) * np.float32(scale)
    partial = Partial.empty(len(scaled), value.shape[-1], scaled.dtype)
    # A memory-mapped file is an array underneath.
    keys, values = key.view(np.ndarray), value.view(np.ndarray)
    seen = window_span(len(scaled), len(keys), *options.sides, options.causal_offset + rows.start)
    attend_rows(scaled, keys, values, *seen, scratch, *partial)
    return partial


def _in_numpy(
    head: Sequence[Array],
    options: AttentionOptions,
    rows: slice,
    scratch: Array,
    product: Callable[[Array, Array], Array],
) -> Partial:
    """Compute attention of some queries of a head, by the steps of `functional.attend`."""
    query, key, value = head
    q = cast(query[rows], scratch.dtype)
    partial = Partial.empty(len(q), value.shape[-1], q.dtype)
    first, stop = window_span(len(q), len(key), *options.sides, options.causal_offset + rows.start)
    for keys in _slices(first.min(), stop.max(), scratch.shape[1]):
        if options.mask is not None and not block_of(options.mask, rows, keys).any():
            continue
        k, v = cast(key[keys], q.dtype), cast(value[keys], q.dtype)
        scores = scratch[: len(q), : len(k)]
        # A copy: a score of the caller's own may return an array that it keeps.
        scores[...] = options.visible(options.capped(options.scores(q, k)), rows, keys)
        peak, total = TERMS[options.normalize](scores)  # in place: scores are terms now
        partial = partial.merge(Partial(peak, total, product(scores, v)))
    return partial


def _at(x: Array | None, index: Sequence[int], lead: Sequence[int]) -> Any:
    """Return the matrix of one batch and head; if x has fewer heads, several share one.

    index: the place among the leading axes, whose lengths are `lead`. Head 3 of 4 is head 1 of 2:

    >>> _at(np.array([[[1.0]], [[2.0]]]), index=[3], lead=[4])
    array([[2.]])
    """
    if x is None:
        return None
    n_lead = max(x.ndim - 2, 0)
    own_index = []
    # The last axes belong together: x may have fewer leading axes than there are.
    for axis in range(n_lead):
        from_end = axis - n_lead
        own_index.append(index[from_end] * x.shape[axis] // lead[from_end])
    return x[tuple(own_index)]


def _slices(start: int, stop: int, size: int) -> list[slice]:
    return [slice(i, min(i + size, stop)) for i in range(start, stop, size)]
