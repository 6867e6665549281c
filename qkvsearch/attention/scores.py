"""Scores, how well a key answers a query: scaled dot product, cosine, additive."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qkvsearch.attention._arguments import Array

Score = Callable[[Array, Array, float | None], Array]


def dot_score(query: Array, key: Array, scale: float | None = None) -> Array:
    """Scaled dot products, scale · QKᵀ; None is 1/√d, which keeps their spread the same for any d.

    query (..., L, d), key (..., S, d) -> (..., L, S). Raises ValueError where d differs.
    Vaswani et al. 2017, section 3.2.1.

    >>> dot_score(np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [1.0, 1.0]]), scale=1)
    array([[3., 7.]])
    """
    d = query.shape[-1]
    if key.shape[-1] != d:
        raise ValueError(
            f"query and key must have the same width d, got shapes {query.shape} and {key.shape}"
        )
    factor = 1 / math.sqrt(max(d, 1)) if scale is None else float(scale)
    return (query * factor) @ np.swapaxes(key, -1, -2)


def cosine_score(query: Array, key: Array, scale: float | None = None) -> Array:
    """Cosines between queries and keys, times scale (None is 1); with a zero vector, 0.

    query (..., L, d), key (..., S, d) -> (..., L, S). Raises ValueError where d differs.
    Graves et al. 2014 (Neural Turing Machines), section 3.3.1.

    >>> cosine_score(np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [6.0, 8.0]])).round(4)
    array([[0.6, 1. ]])
    """
    return dot_score(_unit(query), _unit(key), 1 if scale is None else scale)


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

    w_query: npt.ArrayLike
    w_key: npt.ArrayLike
    w: npt.ArrayLike

    def __post_init__(self) -> None:
        shapes = [np.shape(self.w_query), np.shape(self.w_key), np.shape(self.w)]
        h = np.size(self.w)
        if h == 0 or [len(s) for s in shapes] != [2, 2, 1] or {s[-1] for s in shapes} != {h}:
            raise ValueError(f"w_query (d, h), w_key (d_k, h), w (h,) must share h, got {shapes}")

    def __call__(self, query: Array, key: Array, scale: float | None = None) -> Array:
        dtype = np.result_type(query, np.float32)
        w_query, w_key, w = (np.asarray(x, dtype) for x in (self.w_query, self.w_key, self.w))
        for name, x, matrix in (("query", query, w_query), ("key", key, w_key)):
            if x.shape[-1] != len(matrix):
                raise ValueError(f"w_{name} takes a {name} of width {len(matrix)}, got {x.shape}")
        queries, keys = np.moveaxis(query @ w_query, -1, 0), np.moveaxis(key @ w_key, -1, 0)
        factors = w if scale is None else w * float(scale)
        # Unit by unit, because the tanh of all h at once would take h times the scores' memory.
        return sum(
            factor * np.tanh(q[..., :, None] + k[..., None, :])
            for factor, q, k in zip(factors, queries, keys, strict=True)
        )


SCORES: Mapping[str, Score] = {"dot": dot_score, "cosine": cosine_score}


def _unit(x: Array) -> Array:
    """The vectors at length 1; first by their largest entry, so that no square overflows."""
    x = x / _or_one(np.abs(x).max(axis=-1, keepdims=True, initial=0))
    return x / _or_one(np.linalg.norm(x, axis=-1, keepdims=True))


def _or_one(divisor: Array) -> Array:
    """The divisor, or 1 where it is 0: the vector it would divide is all zeros."""
    return np.where(divisor == 0, 1, divisor)
