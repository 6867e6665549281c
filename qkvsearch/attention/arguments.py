"""Attention's arguments and options, checked.

Arrays are of one library, one dtype and shapes that fit one another; options say which score, what
is hidden, how scores become weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from qkvsearch.attention.array_api import (
    Array,
    answer_dtype,
    as_arrays,
    beside,
    cast,
    namespace,
    working_dtype,
)
from qkvsearch.attention.masks import add, as_mask, check_window, hide, hide_far
from qkvsearch.attention.scores import (
    SCORES,
    Score,
    cap,
    check_factor,
    check_softcap,
    check_widths,
)
from qkvsearch.attention.weights import EMPTY_ROWS, NORMALIZERS, named

ALL = slice(0, None)


class Inputs(NamedTuple):
    """Attention's arrays, checked but not yet converted: a key file may exceed the memory.

    query (..., Hq, L, d), key (..., Hk, S, d), value (..., Hk, S, dv), mask and bias or None;
    shape, the scores' (..., Hq, L, S); working, the dtype to compute in; dtype, the answer's.
    """

    query: Array
    key: Array
    value: Array
    mask: Array | None
    bias: Array | None
    shape: tuple[int, ...]
    working: Any
    dtype: Any

    def ready(self) -> tuple[Array, Array, Array]:
        """Return query, key and value in the dtype to compute in, a key head for each query."""
        return (
            cast(self.query, self.working),
            share_heads(cast(self.key, self.working), self.query),
            share_heads(cast(self.value, self.working), self.query),
        )

    def batches(self, n_scores: int) -> Iterator[tuple[Any, Inputs]]:
        """Yield these inputs in batches of about `n_scores` scores, with their index in the output.

        They are split along the longest leading axis that no heads share, if there is one.
        """
        all_scores = math.prod(self.shape)
        splittable = self._splittable_axes()
        if not splittable or all_scores <= n_scores:
            yield ..., self
            return
        axis = max(splittable, key=lambda axis: self.shape[axis])
        length = self.shape[axis]
        size = max(1, length * n_scores // all_scores)
        for start in range(0, length, size):
            block = slice(start, min(start + size, length))
            batch = self._replace(
                query=_along(self.query, axis, block),
                key=_along(self.key, axis, block),
                value=_along(self.value, axis, block),
                mask=_along(self.mask, axis, block),
                bias=_along(self.bias, axis, block),
                shape=(*self.shape[:axis], block.stop - start, *self.shape[axis + 1 :]),
            )
            yield _index_along(axis, block), batch

    def _splittable_axes(self) -> list[int]:
        """Return the leading axes, counted from the end, along which each array has either the
        scores' length or one entry for all.
        """
        arrays = (self.query, self.key, self.value, self.mask, self.bias)
        leading = range(-len(self.shape), -2)
        return [
            axis
            for axis in leading
            if all(_length(x, axis) in (1, self.shape[axis]) for x in arrays)
        ]


def _length(x: Array | None, axis: int) -> int:
    """Return the length of an axis, counted from the end; 1 if x is None or has no such axis."""
    return 1 if x is None or x.ndim < -axis else x.shape[axis]


def _along(x: Any, axis: int, block: slice) -> Any:
    """Return a block of x along an axis; an axis of length 1 is the same for all blocks."""
    return x if _length(x, axis) == 1 else x[_index_along(axis, block)]


def _index_along(axis: int, block: slice) -> tuple[Any, ...]:
    """Return the index of a block along an axis, counted from the end, and of all other axes."""
    later_axes = [slice(None)] * (-axis - 1)
    return (..., block, *later_axes)


def checked(query: Any, key: Any, value: Any, mask: Any, bias: Any) -> Inputs:
    """Return the five arguments as arrays of one library. Raises TypeError or ValueError if they do
    not fit: see `attention`."""
    xp, (q, k, v) = as_arrays(query, key, value)
    dtype = answer_dtype(xp, q, k, v)
    check_tokens(q, k, v)
    visible = None if mask is None else as_mask(beside(q, mask))
    added = None if bias is None else as_bias(beside(q, bias))
    return Inputs(
        query=q,
        key=k,
        value=v,
        mask=visible,
        bias=added,
        shape=score_shape(q, k, v, visible, added),
        working=working_dtype(xp, dtype),
        dtype=dtype,
    )


def as_bias(added: Array) -> Array:
    """Return a bias. Raise TypeError for booleans, which belong to `mask`."""
    xp = namespace(added)
    if added.dtype == xp.bool:
        raise TypeError(
            f"bias must be numbers to add to the scores, got {added.dtype}: booleans that say "
            "which keys may be attended to go to `mask`"
        )
    answer_dtype(xp, added)
    return added


def check_tokens(query: Array, key: Array, value: Array) -> None:
    """Raise ValueError unless all arguments are lists of vectors, with a value for each key."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim < 2:
            raise ValueError(
                f"{name} must have axes (..., tokens, width), got shape {tuple(x.shape)}"
            )
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            "key and value must hold the same number of tokens S, got shapes "
            f"{tuple(key.shape)} and {tuple(value.shape)}"
        )
    _broadcast(tuple(key.shape[:-2]), tuple(value.shape[:-2]), key=key, value=value)


def score_shape(
    query: Array, key: Array, value: Array, mask: Array | None, bias: Array | None
) -> tuple[int, ...]:
    """Return the shape (..., Hq, L, S) of the scores, with leading axes of mask and bias."""
    lead = tuple(query.shape[:-2])
    for name, x in (("key", key), ("value", value)):
        lead = _broadcast(lead, shared_lead(name, x, query), query=query, key=key, value=value)
    shape = (*lead, query.shape[-2], key.shape[-2])
    for name, x in (("mask", mask), ("bias", bias)):
        if x is not None:
            try:
                wide = np.broadcast_shapes(shape, tuple(x.shape))
            except ValueError:
                wide = ()
            # Broadcasting works both ways; a mask must not turn one query or key into several.
            if wide[-2:] != shape[-2:]:
                raise ValueError(
                    f"{name} of shape {tuple(x.shape)} does not broadcast to the scores "
                    f"(..., L, S) = {shape}"
                )
            shape = wide
    return shape


def shared_lead(name: str, x: Array, query: Array) -> tuple[int, ...]:
    """Return the leading axes of a key or value after repeating its heads for the query's."""
    lead = tuple(x.shape[:-2])
    if min(x.ndim, query.ndim) < 3:
        return lead
    heads, query_heads = x.shape[-3], query.shape[-3]
    if heads == query_heads or 1 in (heads, query_heads):
        return lead
    if heads == 0 or query_heads % heads:
        raise ValueError(
            f"query's {query_heads} heads must be a multiple of {name}'s {heads}, got shapes "
            f"{tuple(query.shape)} and {tuple(x.shape)}"
        )
    return (*lead[:-1], query_heads)


def share_heads(x: Array, query: Array) -> Array:
    """Repeat the heads of a key or value until every query head has its own."""
    if min(x.ndim, query.ndim) < 3 or x.shape[-3] in (1, query.shape[-3]) or query.shape[-3] == 1:
        return x
    return namespace(x).repeat(x, query.shape[-3] // x.shape[-3], axis=-3)


def _broadcast(a: tuple[int, ...], b: tuple[int, ...], **arrays: Array) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in arrays.items())
        raise ValueError(f"leading axes do not broadcast together: {shapes}") from None


# --- options ---


@dataclass(frozen=True, eq=False)
class AttentionOptions:
    """The options of `attention`; its docstring explains each of them.

    Methods work on all tokens or on a block: slices `rows` of the queries and `keys` of the keys.
    """

    mask: Array | None = None
    bias: Array | None = None
    is_causal: bool = False
    causal_offset: int = 0
    scale: float | None = None
    softcap: float = 0.0
    window: tuple[int | None, int | None] | None = None
    score: str | Score = "dot"
    normalize: str = "softmax"
    empty_rows: str = "zero"

    def __post_init__(self) -> None:
        named("empty_rows", self.empty_rows, EMPTY_ROWS)
        named("normalize", self.normalize, NORMALIZERS)
        if not callable(self.score):
            named("score", self.score, SCORES)
        is_pair = isinstance(self.window, Sequence) and len(self.window) == 2
        if self.window is not None and not is_pair:
            raise ValueError(f"window must be a pair (left, right), got {self.window!r}")
        if not isinstance(self.is_causal, bool | np.bool_):
            raise TypeError(f"is_causal must be True or False, got {self.is_causal!r}")
        check_factor("scale", self.scale)
        check_softcap(self.softcap)
        check_window(*self.sides, self.causal_offset)

    def check_widths(self, query: Array, key: Array) -> None:
        """Raise ValueError where this score cannot compare such vectors."""
        if not callable(self.score):
            check_widths(query, key)

    @property
    def sides(self) -> tuple[int | None, int | None]:
        """How many keys a query may attend to at its left and right; None for no limit."""
        left, right = self.window or (None, None)
        if self.is_causal:
            right = 0 if right is None else min(right, 0)
        return left, right

    def scores(self, query: Array, key: Array) -> Array:
        """Compute how well each key answers each query, times the scale: (..., L, S)."""
        score = self.score if callable(self.score) else SCORES[self.score]
        return score(query, key, self.scale)

    def capped(self, scores: Array) -> Array:
        """Keep scores within ±softcap."""
        return cap(scores, self.softcap)

    def visible(self, scores: Array, rows: slice = ALL, keys: slice = ALL) -> Array:
        """Add the bias, and set scores to −∞ where a query may not attend to a key."""
        if self.bias is not None:
            scores = add(scores, block_of(self.bias, rows, keys))
        if self.mask is not None:
            scores = hide(scores, block_of(self.mask, rows, keys))
        offset = self.causal_offset + rows.start - keys.start
        return hide_far(scores, *self.sides, offset)

    @property
    def weights(self) -> Callable[..., Array]:
        """The normalizer: scores to weights."""
        return NORMALIZERS[self.normalize]


def block_of(x: Array, rows: slice, keys: slice) -> Array:
    """Return the block of a mask or bias; an axis of length 1 stays, since it serves all blocks."""
    if x.shape[-1:] not in ((), (1,)):
        x = x[..., keys]
    if x.ndim > 1 and x.shape[-2] != 1:
        x = x[..., rows, :]
    return x
