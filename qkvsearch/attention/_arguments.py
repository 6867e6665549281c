"""Make the arguments of attention fit one another: one dtype, matching shapes, blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# 2²⁴ scores are 64 MiB in float32: 4096 × 4096 at once, and a small part of any machine's memory.
MAX_SCORES = 2**24


def fitted(
    query: npt.ArrayLike,
    key: npt.ArrayLike,
    value: npt.ArrayLike,
    mask: npt.ArrayLike | None,
    bias: npt.ArrayLike | None,
) -> tuple[Array, Array, Array, Array | None, Array | None, np.dtype[Any], tuple[int, ...]]:
    """Attention's five arrays ready to compute with, the answer's dtype, the scores' shape."""
    q, k, v, dtype = as_floats(query, key, value)
    check_tokens(q, k, v)
    k, v = share_heads("key", k, q), share_heads("value", v, q)
    keep = None if mask is None else as_mask(mask)
    added = None if bias is None else as_bias(bias, q.dtype)
    return q, k, v, keep, added, dtype, score_shape(q, k, v, keep, added)


def as_floats(*arrays: npt.ArrayLike) -> tuple[Any, ...]:
    """The arrays in the dtype to compute in, at least float32, then the dtype to answer in."""
    found = [np.asarray(array) for array in arrays]
    dtype = np.result_type(*(array.dtype for array in found))
    if dtype.kind not in "biuf":
        raise TypeError(f"attention takes real numbers, got {dtype}")
    if dtype.kind != "f":
        dtype = np.dtype(np.float64)
    working = np.result_type(dtype, np.float32)
    return *(array.astype(working, copy=False) for array in found), dtype


def as_mask(mask: npt.ArrayLike) -> Array:
    """A boolean array, or a TypeError that says where other numbers go."""
    keep = np.asarray(mask)
    if keep.dtype != bool:
        raise TypeError(
            f"mask must be boolean, True = may attend, got {keep.dtype}: floats to add to the "
            "scores go to `bias`, 0/1 numbers become a mask by .astype(bool), and a mask where "
            "True = ignore by masks.keep_from_ignore()"
        )
    return keep


def as_bias(bias: npt.ArrayLike, dtype: npt.DTypeLike) -> Array:
    """An array of numbers in the scores' dtype, or a TypeError that sends booleans to `mask`."""
    added = np.asarray(bias)
    if added.dtype.kind not in "iuf":
        raise TypeError(
            f"bias must be numbers to add to the scores, got {added.dtype}: booleans that say "
            "which keys may be attended to go to `mask`"
        )
    return added.astype(dtype, copy=False)


def check_tokens(query: Array, key: Array, value: Array) -> None:
    """Every argument is a list of vectors, and every key has its value."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim < 2:
            raise ValueError(f"{name} must have axes (..., tokens, width), got shape {x.shape}")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key and value must hold the same number of tokens S, got shapes {key.shape} and "
            f"{value.shape}"
        )
    lead_shape(key=key, value=value)


def share_heads(name: str, x: Array, query: Array) -> Array:
    """Repeat the heads of a key or value until every query head has its own."""
    if min(x.ndim, query.ndim) < 3:
        return x
    heads, query_heads = x.shape[-3], query.shape[-3]
    if heads == query_heads or 1 in (heads, query_heads):
        return x
    if heads == 0 or query_heads % heads:
        raise ValueError(
            f"query's {query_heads} heads must be a multiple of {name}'s {heads}, got shapes "
            f"{query.shape} and {x.shape}"
        )
    return np.repeat(x, query_heads // heads, axis=-3)


def lead_shape(**arrays: Array) -> tuple[int, ...]:
    """The leading axes of arrays (..., tokens, width), broadcast together."""
    try:
        return np.broadcast_shapes(*(x.shape[:-2] for x in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise ValueError(f"leading axes do not broadcast together: {shapes}") from None


def score_shape(
    query: Array, key: Array, value: Array, mask: Array | None, bias: Array | None
) -> tuple[int, ...]:
    """The shape (..., L, S) of the scores, the mask's and the bias's leading axes included."""
    lead = lead_shape(query=query, key=key, value=value)
    shape = (*lead, query.shape[-2], key.shape[-2])
    for name, x in (("mask", mask), ("bias", bias)):
        if x is not None:
            try:
                wide = np.broadcast_shapes(shape, x.shape)
            except ValueError:
                wide = ()
            # Broadcasting works both ways; a mask must not turn one query or key into several.
            if wide[-2:] != shape[-2:]:
                raise ValueError(
                    f"{name} of shape {x.shape} does not broadcast to the scores (..., L, S) = "
                    f"{shape}"
                )
            shape = wide
    return shape


def row_blocks(shape: tuple[int, ...], block_size: int | str) -> list[slice]:
    """The queries to compute together; L = 0 is one empty block, so that the output has a shape."""
    *lead, n_queries, n_keys = shape
    if block_size == "auto":
        size = max(1, MAX_SCORES // max(1, math.prod(lead) * n_keys))
    elif isinstance(block_size, int | np.integer) and block_size > 0:
        size = int(block_size)
    else:
        raise ValueError(f'block_size must be "auto" or a positive integer, got {block_size!r}')
    return [
        slice(start, min(start + size, n_queries)) for start in range(0, max(1, n_queries), size)
    ]


def rows_of(x: Array | None, rows: slice) -> Array | None:
    """A mask's or bias's part for a block of queries; one row that serves all of them stays."""
    return x if x is None or x.ndim < 2 or x.shape[-2] == 1 else x[..., rows, :]


def named(argument: str, name: str, choices: Mapping[str, Any]) -> Any:
    """The choice of that name, or a ValueError that lists them."""
    if name not in choices:
        raise ValueError(f"{argument} must be one of {', '.join(choices)}, got {name!r}")
    return choices[name]
