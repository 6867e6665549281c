"""Gradients by hand, of attention: back from the output to query, key, value and bias."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.functional import attention
from qkvsearch.attention.gradients.functions import (
    ScorePull,
    additive_score_vjp,
    cap_vjp,
    cosine_score_vjp,
    dot_score_vjp,
    pull_softmax,
    summed_to,
)
from qkvsearch.attention.layers.initializers import Array
from qkvsearch.attention.masks import hide, window_mask
from qkvsearch.attention.scores import AdditiveScore


class AttentionGradients(NamedTuple):
    """Gradients in the shapes of the inputs; score: of an `AdditiveScore`'s weights, by name."""

    query: Array
    key: Array
    value: Array
    bias: Array | None
    score: dict[str, Array]


def attention_vjp(
    query: npt.ArrayLike,
    key: npt.ArrayLike,
    value: npt.ArrayLike,
    *,
    bias: npt.ArrayLike | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    score: str | AdditiveScore = "dot",
    normalize: str = "softmax",
    **options: Any,
) -> tuple[Array, Callable[[Array], AttentionGradients]]:
    """`attention`, and back: its verbs in reverse order, each by its own gradient.

    Shapes, options and errors as for `attention`; the pull takes (..., Hq, L, dv) and sums where
    inputs broadcast or share heads. Raises TypeError for a score that is a function of one's own.
    Vaswani et al. 2017, section 3.2.1.

    >>> output, pull = attention_vjp([[0.0]], [[1.0], [-1.0]], [[1.0], [0.0]])
    >>> output, pull(np.array([[1.0]])).query
    (array([[0.5]]), array([[0.5]]))
    """
    way_back = score_vjp(score)
    how: dict[str, Any] = {"scale": scale, "softcap": softcap, "normalize": normalize, **options}
    output, weights = attention(
        query, key, value, bias=bias, score=score, **how, return_weights=True
    )
    q, k, v = np.asarray(query), np.asarray(key), np.asarray(value)
    added = np.zeros(1, weights.dtype) if bias is None else np.asarray(bias)

    def pull(gradient: Array) -> AttentionGradients:
        k_shared, v_shared = _for_query_heads(k, q), _for_query_heads(v, q)
        scores, pull_score = way_back(q, k_shared, scale)
        capped, pull_cap = cap_vjp(scores, softcap)
        visible = _visible(weights.shape, added, **options)
        by_weights = summed_to(gradient @ v_shared.swapaxes(-1, -2), weights.shape)
        by_scores = _pull_weights(normalize, weights, capped + added, visible, by_weights)
        by_query, by_key, by_score = pull_score(pull_cap(summed_to(by_scores, scores.shape)))
        by_value = summed_to(weights.swapaxes(-1, -2) @ gradient, v_shared.shape)
        by_bias = None if bias is None else summed_to(by_scores, added.shape)
        by_key, by_value = _over_query_heads(by_key, k.shape), _over_query_heads(by_value, v.shape)
        return AttentionGradients(by_query, by_key, by_value, by_bias, by_score)

    return output, pull


# --- the verbs, backwards ---


def score_vjp(score: Any) -> Callable[..., tuple[Array, ScorePull]]:
    """The way back through a score, "dot", "cosine" or an `AdditiveScore`; else TypeError.

    >>> score_vjp("dot").__name__
    'dot_score_vjp'
    """
    if isinstance(score, AdditiveScore):
        return partial(additive_score_vjp, score)
    if callable(score):
        raise TypeError(f"no gradient is known for the score {score!r}")
    # An unknown name is for `attention` to refuse: it knows which there are.
    return {"cosine": cosine_score_vjp}.get(score, dot_score_vjp)


def _pull_weights(
    normalize: str, weights: Array, scores: Array, visible: Array, gradient: Array
) -> Array:
    """Back from the weights to the scores; what is hidden gets no gradient."""
    pull = NORMALIZER_PULLS[normalize]
    return np.where(visible, pull(weights, hide(scores, visible), gradient), 0)


def _pull_relu(weights: Array, scores: Array, gradient: Array) -> Array:
    """Back through max(0, s) / Σ max(0, s)."""
    total = np.maximum(scores, 0).sum(axis=-1, keepdims=True)
    back = gradient - (gradient * weights).sum(axis=-1, keepdims=True)
    return np.where(scores > 0, back / np.where(total == 0, 1, total), 0)


NORMALIZER_PULLS: Mapping[str, Callable[[Array, Array, Array], Array]] = {
    "softmax": lambda weights, scores, gradient: pull_softmax(weights, gradient),
    "relu": _pull_relu,
    "none": lambda weights, scores, gradient: gradient,
}


def _visible(
    shape: tuple[int, ...],
    bias: Array,
    mask: npt.ArrayLike | None = None,
    is_causal: bool = False,
    causal_offset: int = 0,
    window: tuple[int | None, int | None] | None = None,
    **_: Any,
) -> Array:
    """Which key each query could attend to, (..., L, S)."""
    left, right = window or (None, None)
    n_queries, n_keys = shape[-2:]
    near = window_mask(n_queries, n_keys, left, 0 if is_causal else right, causal_offset)
    visible = near & (bias != -np.inf)
    return np.broadcast_to(visible if mask is None else visible & np.asarray(mask), shape)


def _for_query_heads(x: Array, query: Array) -> Array:
    """The heads of a key or value repeated until every query head has its own."""
    if min(x.ndim, query.ndim) < 3 or x.shape[-3] in (1, query.shape[-3]) or query.shape[-3] == 1:
        return x
    return np.repeat(x, query.shape[-3] // x.shape[-3], axis=-3)


def _over_query_heads(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Back through `_for_query_heads`: a head gets the sum of its copies' gradients."""
    if gradient.shape == shape:
        return gradient
    *lead, n_heads, n_keys, width = shape
    return gradient.reshape(*lead, n_heads, -1, n_keys, width).sum(axis=-3)
