"""Checks of attention's arguments: one array library, one dtype, shapes that fit one another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from qkvsearch.attention.arrays import (
    Array,
    answer_dtype,
    as_arrays,
    beside,
    cast,
    namespace,
    working_dtype,
)


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
        """Query, key, value in the dtype to compute in, each query head with its own key head."""
        return (
            cast(self.query, self.working),
            share_heads(cast(self.key, self.working), self.query),
            share_heads(cast(self.value, self.working), self.query),
        )

    def batches(self, n_scores: int) -> Iterator[tuple[Any, Inputs]]:
        """These inputs in parts of about `n_scores` scores, each with its index in the output.

        Split along the longest leading axis that no heads share; one part where there is none.
        """
        *lead, _, _ = self.shape
        whole = [
            axis - len(self.shape)
            for axis in range(len(lead))
            if all(_length(x, axis - len(self.shape)) in (1, lead[axis]) for x in self[:5])
        ]
        axis = max(whole, key=lambda axis: self.shape[axis], default=0)
        if not whole or math.prod(self.shape) <= n_scores:
            yield ..., self
            return
        length = self.shape[axis]
        size = max(1, length * n_scores // math.prod(self.shape))
        for start in range(0, length, size):
            part = slice(start, start + size)
            shape = (*self.shape[:axis], min(size, length - start), *self.shape[axis + 1 :])
            q, k, v, mask, bias = (_along(x, axis, part) for x in self[:5])
            place = (..., part, *[slice(None)] * (-axis - 1))
            yield place, Inputs(q, k, v, mask, bias, shape, self.working, self.dtype)


def _length(x: Array | None, axis: int) -> int:
    """The length of an axis, counted from the end; 1 where x is None or has no such axis."""
    return 1 if x is None or x.ndim < -axis else x.shape[axis]


def _along(x: Any, axis: int, part: slice) -> Any:
    """A part of x along an axis; an axis of length 1 is the same for all parts."""
    return x if _length(x, axis) == 1 else x[(..., part, *[slice(None)] * (-axis - 1))]


def checked(query: Any, key: Any, value: Any, mask: Any, bias: Any) -> Inputs:
    """The five arguments as arrays of one library. Raises TypeError or ValueError where they do
    not fit, as `attention` says."""
    xp, (q, k, v) = as_arrays(query, key, value)
    dtype = answer_dtype(xp, q, k, v)
    check_tokens(q, k, v)
    keep = None if mask is None else as_mask(beside(q, mask))
    added = None if bias is None else as_bias(beside(q, bias))
    return Inputs(
        q, k, v, keep, added, score_shape(q, k, v, keep, added), working_dtype(xp, dtype), dtype
    )


def as_mask(keep: Array) -> Array:
    """A boolean array, or a TypeError that says where other numbers go."""
    if keep.dtype != namespace(keep).bool:
        raise TypeError(
            f"mask must be boolean, True = may attend, got {keep.dtype}: floats to add to the "
            "scores go to `bias`, 0/1 numbers become a mask by .astype(bool), and a mask where "
            "True = ignore by masks.keep_from_ignore()"
        )
    return keep


def as_bias(added: Array) -> Array:
    """Numbers to add, or a TypeError that sends booleans to `mask`."""
    xp = namespace(added)
    if added.dtype == xp.bool:
        raise TypeError(
            f"bias must be numbers to add to the scores, got {added.dtype}: booleans that say "
            "which keys may be attended to go to `mask`"
        )
    answer_dtype(xp, added)
    return added


def check_tokens(query: Array, key: Array, value: Array) -> None:
    """Every argument is a list of vectors, and every key has its value."""
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
    """The shape (..., Hq, L, S) of the scores, the mask's and the bias's leading axes included."""
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
    """The leading axes of a key or value once each query head has its own."""
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


def named(argument: str, name: str, choices: Mapping[str, Any]) -> Any:
    """The choice of that name, or a ValueError that lists them."""
    if name not in choices:
        raise ValueError(f"{argument} must be one of {', '.join(choices)}, got {name!r}")
    return choices[name]
