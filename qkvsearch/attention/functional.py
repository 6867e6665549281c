"""Scaled dot-product attention, softmax(QKᵀ/√d + M)·V: the formula, then each of its verbs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from qkvsearch.attention import _arguments as arguments
from qkvsearch.attention._arguments import Array
from qkvsearch.attention.masks import window_mask
from qkvsearch.attention.scores import SCORES, Score


# Infinities are ordinary here (hidden scores, an overflow on the way to a weight of 0 or 1), and
# what a hidden key holds must not even warn; a visible NaN still shows in the result.
@np.errstate(all="ignore")
def attention(
    query: npt.ArrayLike,
    key: npt.ArrayLike,
    value: npt.ArrayLike,
    *,
    mask: npt.ArrayLike | None = None,
    bias: npt.ArrayLike | None = None,
    is_causal: bool = False,
    causal_offset: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    window: tuple[int | None, int | None] | None = None,
    score: str | Score = "dot",
    normalize: str = "softmax",
    return_weights: bool = False,
    empty_rows: str = "zero",
    block_size: int | Literal["auto"] = "auto",
) -> Any:  # an array, or two on request: a union would make every caller say which
    """Mix the values by how well their keys answer each query.

    query (..., Hq, L, d), key (..., Hk, S, d), value (..., Hk, S, dv) -> (..., Hq, L, dv), or
    (output, weights (..., Hq, L, S)) with `return_weights`. Leading axes broadcast and may be
    absent; where Hq is a multiple of Hk, query head h uses key head h // (Hq // Hk).

    mask: bool, broadcast to (..., L, S), True = may attend; a hidden key's score becomes −∞.
    bias: float, broadcast likewise, added to the scores after `softcap`; −∞ hides like the mask.
    is_causal, causal_offset: key j is visible to query i where j ≤ i + causal_offset.
    window: (left, right): p − left ≤ j ≤ p + right, p = i + causal_offset; None is unlimited.
    scale: a factor on the scores; None is 1/√d for "dot" and 1 for the other scores.
    softcap: scores become softcap · tanh(scores / softcap), before mask and bias; 0 is off.
    score: "dot", "cosine", or a function of (query, key, scale) such as an `AdditiveScore`.
    normalize: "softmax", "relu" (max(0, s) over its row's sum), "none" (the scores; hidden: 0).
    empty_rows: the weights of a query with nothing to attend to: "zero", "uniform" (over all
        keys, the hidden too), "nan", or "raise". With S = 0 no weights exist; the output is 0.
    block_size: queries computed at a time; "auto" is all, unless that makes over 2²⁴ scores.
        With `return_weights`, always all.

    A weight of exactly 0 takes nothing from its value, even from an infinite or NaN one. float16
    is computed in float32; the result has the inputs' dtype, float64 for integers.
    Raises TypeError for a mask that is not boolean, a boolean bias, or inputs that are not numbers;
    ValueError for shapes that do not fit, an unknown name, or an empty row under "raise".
    Vaswani et al. 2017, section 3.2.1; heads that share keys: Ainslie et al. 2023, section 2.2.

    >>> attention([[4., 0.]], [[4., 0.], [0., 4.]], [[1.], [0.]]).round(4)
    array([[1.]])
    """
    q, k, v, mask, bias, dtype, shape = arguments.fitted(query, key, value, mask, bias)
    score_of = score if callable(score) else arguments.named("score", score, SCORES)
    weights_of = arguments.named("normalize", normalize, NORMALIZERS)
    left, right = window or (None, None)

    def weigh(rows: slice) -> Array:
        scores = cap(score_of(q[..., rows, :], k, scale), softcap)
        scores = hide(add(scores, arguments.rows_of(bias, rows)), arguments.rows_of(mask, rows))
        scores = hide_far(scores, left, 0 if is_causal else right, rows.start + causal_offset)
        return weights_of(scores, empty_rows=empty_rows)

    if return_weights:
        weights = weigh(slice(0, shape[-2]))
        return mix(weights, v).astype(dtype), weights.astype(dtype)
    outputs = [mix(weigh(rows), v) for rows in arguments.row_blocks(shape, block_size)]
    return np.concatenate(outputs, axis=-2).astype(dtype, copy=False)


def cap(scores: Array, softcap: float) -> Array:
    """Keep scores within ±softcap, smoothly: softcap · tanh(scores / softcap); 0 leaves them be.

    Any shape -> the same shape. Raises ValueError where softcap is negative.
    Gemma Team 2024 (Gemma 2), section 2.

    >>> cap(np.array([0.0, 1.0, 1000.0]), softcap=10).round(3)
    array([ 0.   ,  0.997, 10.   ])
    """
    if softcap < 0:
        raise ValueError(f"softcap must be positive, or 0 for none, got {softcap}")
    return float(softcap) * np.tanh(scores / float(softcap)) if softcap else scores


# --- hiding: what may be attended to ---


def hide(scores: npt.ArrayLike, mask: npt.ArrayLike | None) -> Array:
    """Replace scores by −∞ where the mask is False, whatever they were; None hides nothing.

    scores (..., L, S), mask bool, broadcast to them, True = may attend -> (..., L, S).
    Raises TypeError where the mask is not boolean.   Vaswani et al. 2017, section 3.2.3.

    >>> hide([1.0, 2.0, np.nan], [True, False, False])
    array([  1., -inf, -inf])
    """
    if mask is None:
        return np.asarray(scores)
    return np.where(arguments.as_mask(mask), scores, -np.inf)


def add(scores: Array, bias: Array | None) -> Array:
    """Add the bias; where it is −∞ it hides the key, even one whose score is +∞ or NaN.

    scores (..., L, S), bias broadcast to them -> (..., L, S).

    >>> add(np.array([1.0, np.nan]), np.array([0.5, -np.inf]))
    array([ 1.5, -inf])
    """
    return scores if bias is None else hide(scores + bias, bias != -np.inf)


def hide_far(scores: Array, left: int | None, right: int | None, offset: int) -> Array:
    """Hide keys beyond a side of each query; the first query stands at key number `offset`.

    scores (..., L, S), sides as for `window_mask` -> (..., L, S).

    >>> hide_far(np.zeros((2, 3)), left=None, right=0, offset=1)
    array([[  0.,   0., -inf],
           [  0.,   0.,   0.]])
    """
    if left is None and right is None:
        return scores
    n_queries, n_keys = scores.shape[-2:]
    return hide(scores, window_mask(n_queries, n_keys, left, right, offset))


# --- weights: how much each key counts; a row is one query's keys ---


@np.errstate(all="ignore")
def softmax(
    scores: npt.ArrayLike, temperature: float = 1.0, axis: int = -1, empty_rows: str = "zero"
) -> Array:
    """Weights of 0 to 1 that sum to 1 in every row; a score of −∞ gets exactly 0.

    Any shape, rows along `axis` -> the same shape, in float32 or better. The nearer temperature
    is to 0, the more the largest score takes all. A row of only −∞ becomes 0 ("zero"), 1/S
    ("uniform"), NaN ("nan") or a ValueError ("raise"). Raises ValueError, too, where temperature
    is not positive and finite.
    Vaswani et al. 2017, section 3.2.1; temperature: Hinton et al. 2015, section 2.

    >>> softmax([[2.0, 2.0, -np.inf], [-np.inf, -np.inf, -np.inf]])
    array([[0.5, 0.5, 0. ],
           [0. , 0. , 0. ]])
    """
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature must be positive and finite, got {temperature}")
    rows, _ = arguments.as_floats(scores)
    peak = rows.max(axis=axis, keepdims=True, initial=-np.inf)
    empty = peak == -np.inf
    # Downwards from the peak nothing overflows, however large the score or low the temperature.
    divisor = max(float(temperature), float(np.finfo(rows.dtype).tiny))
    weights = np.exp((rows - np.where(empty, 0, peak)) / divisor)
    weights /= np.where(empty, 1, weights.sum(axis=axis, keepdims=True))
    return _fill(weights, empty, empty_rows, axis)


def relu(scores: Array, empty_rows: str = "zero") -> Array:
    """max(0, s) over its row's sum; a row without a positive score counts as empty.

    scores (..., L, S) -> weights (..., L, S); `empty_rows` as for `softmax`.

    >>> relu(np.array([3.0, -2.0, 1.0, -np.inf]))
    array([0.75, 0.  , 0.25, 0.  ])
    """
    positive = np.maximum(scores, 0)
    total = positive.sum(axis=-1, keepdims=True)
    return _fill(positive / np.where(total == 0, 1, total), total == 0, empty_rows)


def unnormalized(scores: Array, empty_rows: str = "zero") -> Array:
    """The scores themselves, and 0 where they are hidden.

    scores (..., L, S) -> weights (..., L, S); `empty_rows` as for `softmax`.

    >>> unnormalized(np.array([3.0, -2.0, -np.inf]))
    array([ 3., -2.,  0.])
    """
    hidden = scores == -np.inf
    empty = hidden.all(axis=-1, keepdims=True)
    return _fill(np.where(hidden, 0, scores), empty, empty_rows)


NORMALIZERS: Mapping[str, Callable[..., Array]] = {
    "softmax": softmax,
    "relu": relu,
    "none": unnormalized,
}


def _refuse(n_keys: int) -> float:
    raise ValueError(
        f"a query has nothing to attend to among its {n_keys} keys; "
        'empty_rows="zero", "uniform" or "nan" gives it weights'
    )


EMPTY_ROWS: Mapping[str, Callable[[int], float]] = {
    "zero": lambda n_keys: 0.0,
    "uniform": lambda n_keys: 1 / max(n_keys, 1),
    "nan": lambda n_keys: math.nan,
    "raise": _refuse,
}


def _fill(weights: Array, empty: Array, empty_rows: str, axis: int = -1) -> Array:
    """Give rows that have nothing to attend to the weights asked for."""
    fill = arguments.named("empty_rows", empty_rows, EMPTY_ROWS)
    return np.where(empty, fill(weights.shape[axis]), weights) if empty.any() else weights


# --- the answer ---


def mix(weights: Array, value: Array) -> Array:
    """weights @ value with 0 · ∞ = 0 · NaN = 0: nothing leaks from values nobody attends to.

    weights (..., L, S), value (..., S, dv) -> (..., L, dv).

    >>> mix(np.array([[0.5, 0.5, 0.0]]), np.array([[1.0], [3.0], [np.nan]]))
    array([[2.]])
    """
    broken: Array = np.any(~np.isfinite(value), axis=(*range(value.ndim - 2), -1))
    if not broken.any():
        return weights @ value
    output = weights @ np.where(broken[:, None], 0, value)
    for j in np.flatnonzero(broken):
        weight = weights[..., j, None]
        output = output + np.where(weight == 0, 0, weight * value[..., j, None, :])
    return output
