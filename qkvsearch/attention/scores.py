"""Scores, how well a key answers a query: scaled dot product, cosine, additive; and their cap."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real

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

Score = Callable[[Array, Array, float | None], Array]


def dot_score(query: Array, key: Array, scale: float | None = None) -> Array:
    """Compute scaled dot products, scale · QKᵀ. None is 1/√d: the same spread for any d.

    query (..., L, d), key (..., S, d) -> (..., L, S), in float32 or better. Raises ValueError where
    d differs.
    Vaswani et al. 2017, section 3.2.1.

    >>> dot_score(np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [1.0, 1.0]]), scale=1)
    array([[3., 7.]])
    """
    query, key = _in_working_dtype(query, key)
    check_widths(query, key)
    d = query.shape[-1]
    check_factor("scale", scale)
    factor = 1 / math.sqrt(max(d, 1)) if scale is None else float(scale)
    scaled = query if factor == 1 else query * factor
    return scaled @ key.mT


def cosine_score(query: Array, key: Array, scale: float | None = None) -> Array:
    """Compute cosines between queries and keys, times scale (None is 1); 0 for a zero vector.

    query (..., L, d), key (..., S, d) -> (..., L, S), in float32 or better. Raises ValueError where
    d differs.
    Graves et al. 2014 (Neural Turing Machines), section 3.3.1.

    >>> cosine_score(np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [6.0, 8.0]])).round(4)
    array([[0.6, 1. ]])
    """
    query, key = _in_working_dtype(query, key)
    return dot_score(unit(query), unit(key), 1 if scale is None else scale)


@dataclass(frozen=True, eq=False)
class AdditiveScore:
    """Additive scores, Σₕ wₕ · tanh(q·W_query + k·W_key)ₕ, times scale (None is 1).

    w_query (d, h), w_key (d_k, h), w (h,). Called with query (..., L, d), key (..., S, d_k) it
    gives (..., L, S); queries and keys need not be equally wide. Raises ValueError where shapes
    do not fit.
    Bahdanau et al. 2015, section 3.1 and appendix A.1.2.

    >>> score = AdditiveScore(w_query=np.eye(2), w_key=np.eye(2), w=np.ones(2))
    >>> score(np.array([[1.0, 0.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])).round(4)
    array([[0.7616, 1.7256]])
    """

    w_query: np.typing.ArrayLike
    w_key: np.typing.ArrayLike
    w: np.typing.ArrayLike

    def __post_init__(self) -> None:
        _, weights = as_arrays(self.w_query, self.w_key, self.w)
        shapes = [tuple(x.shape) for x in weights]
        h = math.prod(shapes[2])
        if h == 0 or [len(s) for s in shapes] != [2, 2, 1] or {s[-1] for s in shapes} != {h}:
            raise ValueError(f"w_query (d, h), w_key (d_k, h), w (h,) must share h, got {shapes}")

    def __call__(self, query: Array, key: Array, scale: float | None = None) -> Array:
        query, key = _in_working_dtype(query, key)  # whole numbers must not round the weights
        dtype = query.dtype
        query, key, w_query, w_key, w = (
            cast(beside(query, x), dtype) for x in (query, key, self.w_query, self.w_key, self.w)
        )
        for name, x, matrix in (("query", query, w_query), ("key", key, w_key)):
            if x.shape[-1] != matrix.shape[0]:
                raise ValueError(
                    f"w_{name} takes a {name} of width {matrix.shape[0]}, got {tuple(x.shape)}"
                )
        check_factor("scale", scale)
        xp = namespace(query)
        queries, keys = query @ w_query, key @ w_key
        factors = w if scale is None else w * float(scale)
        # One hidden unit at a time: the tanh of all h would take h times the scores' memory.
        return sum(
            factors[h] * xp.tanh(queries[..., :, None, h] + keys[..., None, :, h])
            for h in range(w.shape[0])
        )


def check_factor(name: str, number: float | None) -> None:
    """Raise TypeError for what is no number, such as a tensor, whose gradient would be lost, and
    ValueError for a number that is not finite. None is allowed.
    """
    if number is None:
        return
    if not isinstance(number, Real):
        raise TypeError(f"{name} must be a number, got {type(number).__name__}")
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")


def check_widths(query: Array, key: Array) -> None:
    """Raise ValueError where the widths differ, which a product of vectors needs to be equal."""
    for name, x in (("query", query), ("key", key)):
        if x.ndim < 2:
            raise ValueError(f"{name} must have axes (..., tokens, width), got {tuple(x.shape)}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query and key must have the same width d, got shapes {tuple(query.shape)} and "
            f"{tuple(key.shape)}"
        )


def _in_working_dtype(query: Array, key: Array) -> tuple[Array, Array]:
    """Return both in the dtype to compute in: sums in 8 or 16 bits would overflow."""
    xp, (q, k) = as_arrays(query, key)
    if object in (q.dtype, k.dtype):  # symbols, as `trace` writes them
        return q, k
    dtype = working_dtype(xp, answer_dtype(xp, q, k))
    return cast(q, dtype), cast(k, dtype)


SCORES: Mapping[str, Score] = {"dot": dot_score, "cosine": cosine_score}


def check_softcap(softcap: float) -> None:
    """Raise TypeError for what is no number, and ValueError for one that is negative."""
    if not isinstance(softcap, Real):
        raise TypeError(f"softcap must be a number, got {type(softcap).__name__}")
    if not softcap >= 0:
        raise ValueError(f"softcap must be positive, or 0 for none, got {softcap}")


def cap(scores: Array, softcap: float) -> Array:
    """Keep scores within ±softcap, smoothly: softcap · tanh(scores / softcap); 0 is off.

    Any shape -> the same shape. Raises ValueError where softcap is negative.
    Gemma Team 2024 (Gemma 2), section 2.

    >>> cap(np.array([0.0, 1.0, 1000.0]), softcap=10).round(3)
    array([ 0.   ,  0.997, 10.   ])
    """
    check_softcap(softcap)
    if softcap in (0, math.inf):
        return scores
    limit = float(softcap)
    return limit * namespace(scores).tanh(scores / limit)


def unit(x: Array) -> Array:
    """Scale vectors to length 1, after division by their largest entry, so no square overflows.

    x (..., d) -> (..., d); a zero vector stays, and its gradient is 0.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    if x.shape[-1] == 0:
        return x
    xp = namespace(x)
    largest = xp.max(xp.abs(x), axis=-1, keepdims=True)
    scaled = x / _or_one(largest)
    # 1 before the root and not behind it, where the root's gradient at 0 would be infinite already.
    length = xp.sqrt(_or_one(xp.sum(scaled * scaled, axis=-1, keepdims=True)))
    return xp.where(largest == 0, xp.zeros_like(x), scaled / length)


def _or_one(divisor: Array) -> Array:
    """Return the divisor, or 1 where it is 0, since the vector is then all zeros."""
    xp = namespace(divisor)
    return xp.where(divisor == 0, xp.ones_like(divisor), divisor)
