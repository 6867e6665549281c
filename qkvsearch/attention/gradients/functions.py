"""Gradients by hand, of functions: each forward pass comes with the way back through it.

`output, pull = softmax_vjp(scores)` computes softmax(scores) and a function that takes the gradient
of some loss by the output to its gradient by the scores: a vector-Jacobian product, the chain rule
one step at a time. Pulls want finite inputs. `attention.py` has the gradients of `attention`,
`layers.py` those of layers, `losses.py` those of losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import ndtr

from qkvsearch.attention.arrays import answer_dtype, cast
from qkvsearch.attention.layers.basic import as_rows, gelu, gelu_tanh, relu, standardize
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


# --- activations ---


def relu_vjp(x: Array) -> tuple[Array, Pull]:
    """max(0, x), and back: 1 where x is positive. Any shape.

    >>> relu_vjp(np.array([-1.0, 2.0]))[1](np.ones(2))
    array([0., 1.])
    """
    return relu(x), lambda gradient: gradient * (x > 0)


def gelu_vjp(x: Array) -> tuple[Array, Pull]:
    """x · Φ(x), and back: Φ(x) + x φ(x), φ the normal density. Any shape.

    >>> gelu_vjp(np.array([0.0]))[1](np.ones(1))
    array([0.5])
    """

    def pull(gradient: Array) -> Array:
        density = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return gradient * (ndtr(x) + x * density)

    return gelu(x), pull


def gelu_tanh_vjp(x: Array) -> tuple[Array, Pull]:
    """½ x (1 + tanh u(x)), and back: ½ (1 + tanh u) + ½ x (1 − tanh² u) u'. Any shape.

    >>> gelu_tanh_vjp(np.array([0.0]))[1](np.ones(1))
    array([0.5])
    """

    def pull(gradient: Array) -> Array:
        factor = math.sqrt(2 / math.pi)
        t = np.tanh(factor * (x + 0.044715 * x * x * x))
        slope = factor * (1 + 3 * 0.044715 * x * x)
        return gradient * 0.5 * (1 + t + x * (1 - t * t) * slope)

    return gelu_tanh(x), pull


ACTIVATION_VJPS: Mapping[str, Callable[[Array], tuple[Array, Pull]]] = {
    "relu": relu_vjp,
    "gelu": gelu_vjp,
    "gelu_tanh": gelu_tanh_vjp,
}


def standardize_vjp(x: Array, epsilon: float) -> tuple[Array, Pull]:
    """Vectors y at mean 0 and variance 1, and back: (g − mean(g) − y · mean(g · y)) / deviation.

    x (..., d) -> (..., d).   Ba et al. 2016, section 3.

    >>> y, pull = standardize_vjp(np.array([10.0, 30.0, 40.0]), epsilon=0.0)
    >>> back = pull(np.array([1.0, 0.0, 0.0]))
    >>> round(abs(float(back.sum())), 9)  # moving all alike changes nothing
    0.0
    """
    y, deviation = standardize(x, epsilon)

    def pull(gradient: Array) -> Array:
        back = gradient - gradient.mean(axis=-1, keepdims=True)
        back -= y * (gradient * y).mean(axis=-1, keepdims=True)
        back /= deviation
        return back

    return y, pull


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
