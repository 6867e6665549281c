"""Gradients by hand, of attention: back from the output to query, key, value and bias.

`output, pull = softmax_vjp(scores)` computes softmax(scores) and a function that takes the gradient
of some loss by the output to its gradient by the scores: a vector-Jacobian product, the chain rule
one step at a time. Pulls want finite inputs. First the operations, then `attention`, which is made
of them; `layers.py` has the gradients of layers, `attention.training` those of losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.arguments import AttentionOptions, checked
from qkvsearch.attention.array_api import answer_dtype, cast
from qkvsearch.attention.functional import attend
from qkvsearch.attention.layers.basic import as_rows
from qkvsearch.attention.layers.initializers import Array
from qkvsearch.attention.scores import AdditiveScore, cap, cosine_score, dot_score
from qkvsearch.attention.weights import softmax

Pull = Callable[[Array], Array]
# Of scores: gradients by query, by key, and by the weights that the score itself has.
ScorePull = Callable[[Array], tuple[Array, Array, dict[str, Array]]]


def softmax_vjp(scores: Array, temperature: float = 1.0) -> tuple[Array, Pull]:
    """Weights wᵢ, and back: ∂/∂sᵢ = wᵢ (gᵢ − Σⱼ wⱼ gⱼ) / temperature, rows along the last axis.

    scores (..., S) -> weights (..., S); the pull takes and gives (..., S).
    Bridle 1990, section 4.

    >>> weights, pull = softmax_vjp(np.array([0.0, 0.0]))
    >>> pull(np.array([1.0, 0.0]))
    array([ 0.25, -0.25])
    """
    weights = softmax(scores, temperature)
    return weights, lambda gradient: pull_softmax(weights, gradient) / float(temperature)


def pull_softmax(weights: Array, gradient: Array) -> Array:
    """The gradient by the scores, from the gradient by the weights that their softmax gave.

    weights, gradient (..., S) -> (..., S).

    >>> pull_softmax(np.array([0.5, 0.5]), np.array([1.0, 0.0]))
    array([ 0.25, -0.25])
    """
    back = weighted(weights, gradient)
    return back - weights * back.sum(axis=-1, keepdims=True)


def weighted(weights: Array, gradient: Array) -> Array:
    """weights · gradient with 0 · ∞ = 0 · NaN = 0: a key of weight 0 gets no gradient.

    Any shape.

    >>> weighted(np.array([0.5, 0.0]), np.array([1.0, np.nan]))
    array([0.5, 0. ])
    """
    return np.where(weights == 0, 0, weights * gradient)


def cap_vjp(scores: Array, softcap: float) -> tuple[Array, Pull]:
    """softcap · tanh(scores / softcap), and back: tanh' = 1 − tanh²; 0 is off.

    Any shape.

    >>> capped, pull = cap_vjp(np.array([0.0, 100.0]), softcap=10)
    >>> pull(np.ones(2)).round(3)
    array([1., 0.])
    """
    capped = cap(scores, softcap)
    if not softcap:
        return capped, lambda gradient: gradient
    return capped, lambda gradient: gradient * (1 - np.square(capped / float(softcap)))


# --- scores ---


def dot_score_vjp(query: Array, key: Array, scale: float | None = None) -> tuple[Array, ScorePull]:
    """scale · QKᵀ, and back: scale · gK for the queries, scale · gᵀQ for the keys.

    query (..., L, d), key (..., S, d) -> (..., L, S).

    >>> scores, pull = dot_score_vjp(np.array([[3.0]]), np.array([[5.0]]), scale=2)
    >>> pull(np.array([[1.0]]))
    (array([[10.]]), array([[6.]]), {})
    """
    factor = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else float(scale)

    def pull(gradient: Array) -> tuple[Array, Array, dict[str, Array]]:
        scaled = gradient * factor
        by_query, by_key = scaled @ key, scaled.swapaxes(-1, -2) @ query
        return summed_to(by_query, query.shape), summed_to(by_key, key.shape), {}

    return dot_score(query, key, scale), pull


def cosine_score_vjp(
    query: Array, key: Array, scale: float | None = None
) -> tuple[Array, ScorePull]:
    """Cosines times scale, and back; to a zero vector, which has no direction, goes nothing.

    query (..., L, d), key (..., S, d) -> (..., L, S).

    >>> scores, pull = cosine_score_vjp(np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]]))
    >>> pull(np.array([[1.0]]))
    (array([[0., 1.]]), array([[0.5, 0. ]]), {})
    """
    (q, pull_query), (k, pull_key) = unit_vjp(query), unit_vjp(key)
    _, pull_dot = dot_score_vjp(q, k, 1 if scale is None else scale)

    def pull(gradient: Array) -> tuple[Array, Array, dict[str, Array]]:
        by_query, by_key, weights = pull_dot(gradient)
        return pull_query(by_query), pull_key(by_key), weights

    return cosine_score(query, key, scale), pull


def unit_vjp(x: Array) -> tuple[Array, Pull]:
    """Vectors u at length 1, and back: (g − u (u·g)) / length; to a zero vector, 0.

    x (..., d) -> (..., d).

    >>> unit_vjp(np.array([0.0, 2.0]))[1](np.array([1.0, 1.0]))
    array([0.5, 0. ])
    """
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    inverse = np.where(length == 0, 0, 1 / np.where(length == 0, 1, length))
    u = x * inverse
    return u, lambda gradient: (gradient - u * (u * gradient).sum(axis=-1, keepdims=True)) * inverse


def additive_score_vjp(
    score: AdditiveScore, query: Array, key: Array, scale: float | None = None
) -> tuple[Array, ScorePull]:
    """Σₕ wₕ · tanh(q·W_query + k·W_key)ₕ, and back, to w_query, w_key and w too.

    query (..., L, d), key (..., S, d_k) -> (..., L, S); the score's weights count in the dtype of
    query and key, as in the score itself.

    >>> score = AdditiveScore(w_query=np.eye(1), w_key=np.eye(1), w=np.array([2.0]))
    >>> scores, pull = additive_score_vjp(score, np.zeros((1, 1)), np.zeros((1, 1)))
    >>> pull(np.ones((1, 1)))[:2]
    (array([[2.]]), array([[2.]]))
    """
    dtype = answer_dtype(np, query, key)
    query, key, w_query, w_key, w = (
        cast(np.asarray(x), dtype) for x in (query, key, score.w_query, score.w_key, score.w)
    )
    factor = 1.0 if scale is None else float(scale)

    def pull(gradient: Array) -> tuple[Array, Array, dict[str, Array]]:
        q, k = query @ w_query, key @ w_key
        by_q, by_k, by_w = np.empty_like(q), np.empty_like(k), np.empty_like(w)
        scaled = gradient * factor
        # One hidden unit at a time, as in the score: all h at once would take h times the memory.
        for h in range(len(w)):
            tanh = np.tanh(q[..., :, None, h] + k[..., None, :, h])
            by_w[h] = np.vdot(scaled, tanh)
            back = scaled * (1 - tanh * tanh) * w[h]
            by_q[..., h] = summed_to(back.sum(axis=-1), q.shape[:-1])
            by_k[..., h] = summed_to(back.sum(axis=-2), k.shape[:-1])
        by_w_query = as_rows(query).T @ as_rows(by_q)
        by_w_key = as_rows(key).T @ as_rows(by_k)
        weights = {"w_query": by_w_query, "w_key": by_w_key, "w": by_w}
        return by_q @ w_query.T, by_k @ w_key.T, weights

    return score(query, key, scale), pull


def summed_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Back through broadcasting: what was used several times gets the sum of its gradients.

    Any shape that broadcasts to the gradient's -> that shape.

    >>> summed_to(np.ones((5, 2, 3)), (2, 1))
    array([[15.],
           [15.]])
    """
    more = gradient.ndim - len(shape)
    widened = [more + i for i, n in enumerate(shape) if n == 1 != gradient.shape[more + i]]
    axes = (*range(more), *widened)
    return gradient.sum(axis=axes).reshape(shape) if axes else gradient


# --- all of attention ---


class AttentionGradients(NamedTuple):
    """Gradients in the shapes of the inputs and the output's dtype; score: of an `AdditiveScore`'s
    weights, by name."""

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
    mask: npt.ArrayLike | None = None,
    bias: npt.ArrayLike | None = None,
    score: str | AdditiveScore = "dot",
    block_size: Any = None,
    **keywords: Any,
) -> tuple[Array, Callable[[Array], AttentionGradients]]:
    """`attention`, and back: its operations in reverse order, each with its own gradient.

    Shapes, dtypes, options and errors as for `attention`, but that it never goes by blocks; the
    pull takes (..., Hq, L, dv) and sums where inputs broadcast or share heads. What a hidden token
    holds, even NaN, has no effect. Raises TypeError for a score that is a function of one's own.
    Vaswani et al. 2017, section 3.2.1.

    >>> output, pull = attention_vjp([[0.0]], [[1.0], [-1.0]], [[1.0], [0.0]])
    >>> output, pull(np.array([[1.0]])).query
    (array([[0.5]]), array([[0.5]]))
    """
    way_back = score_vjp(score)
    given = checked(query, key, value, mask, bias)
    options = AttentionOptions(given.mask, given.bias, score=score, **keywords)
    q, k, v = given.ready()
    with np.errstate(all="ignore"):
        *_, masked, weights, output = attend(q, k, v, options)

    @np.errstate(all="ignore")
    def pull(gradient: Array) -> AttentionGradients:
        gradient, visible = np.asarray(gradient, given.working), masked != -np.inf
        scores, pull_score = way_back(q, _seen(k, visible), options.scale)
        _, pull_cap = cap_vjp(scores, options.softcap)
        by_weights = summed_to(gradient @ v.swapaxes(-1, -2), weights.shape)
        pull_weights = NORMALIZER_PULLS[options.normalize]
        by_masked = np.where(visible, pull_weights(weights, masked, by_weights), 0)
        by_query, by_key, by_score = pull_score(pull_cap(summed_to(by_masked, scores.shape)))
        by_value = summed_to(weights.swapaxes(-1, -2) @ gradient, v.shape)
        return AttentionGradients(
            cast(by_query, given.dtype),
            cast(_over_query_heads(by_key, given.key.shape), given.dtype),
            cast(_over_query_heads(by_value, given.value.shape), given.dtype),
            None
            if options.bias is None
            else cast(summed_to(by_masked, options.bias.shape), given.dtype),
            {name: cast(array, given.dtype) for name, array in by_score.items()},
        )

    return cast(output, given.dtype), pull


def score_vjp(score: Any) -> Callable[..., tuple[Array, ScorePull]]:
    """The way back through a score, "dot", "cosine" or an `AdditiveScore`; else TypeError.

    >>> score_vjp("dot").__name__
    'dot_score_vjp'
    """
    if isinstance(score, AdditiveScore):
        return partial(additive_score_vjp, score)
    if callable(score):
        raise TypeError(f"no gradient is known for the score {score!r}")
    # `AttentionOptions` refuses unknown names.
    return {"cosine": cosine_score_vjp}.get(score, dot_score_vjp)


def _seen(key: Array, visible: Array) -> Array:
    """The keys, and 0 in place of those that no query may attend to."""
    anywhere = np.expand_dims(visible.any(axis=-2), -1)
    return np.where(summed_to(anywhere, (*key.shape[:-1], 1)), key, 0)


def _pull_relu(weights: Array, scores: Array, gradient: Array) -> Array:
    """Back through max(0, s) / Σ max(0, s)."""
    total = np.maximum(scores, 0).sum(axis=-1, keepdims=True)
    back = gradient - weighted(weights, gradient).sum(axis=-1, keepdims=True)
    return np.where(scores > 0, back / np.where(total == 0, 1, total), 0)


NORMALIZER_PULLS: Mapping[str, Callable[[Array, Array, Array], Array]] = {
    "softmax": lambda weights, scores, gradient: pull_softmax(weights, gradient),
    "relu": _pull_relu,
    "none": lambda weights, scores, gradient: gradient,
}


def _over_query_heads(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Back through `share_heads`: a head gets the sum of its copies' gradients."""
    if gradient.shape == shape:
        return gradient
    *lead, n_heads, n_keys, width = shape
    copies = gradient.shape[-3] // n_heads
    return gradient.reshape(*lead, n_heads, copies, n_keys, width).sum(axis=-3)
