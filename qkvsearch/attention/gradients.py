"""Gradients by hand: of softmax, of attention, and of vectors brought to length 1.

`output, pull = softmax_vjp(scores)` computes softmax(scores) and a function that takes the gradient
of some loss by the output to its gradient by the scores: a vector-Jacobian product, the chain rule
one step at a time. Pulls want finite inputs. The gradients of losses are in `attention.training`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.arguments import AttentionOptions, checked
from qkvsearch.attention.array_api import Array, cast
from qkvsearch.attention.functional import attend
from qkvsearch.attention.weights import mix, softmax

Pull = Callable[[Array], Array]


def softmax_vjp(scores: Array) -> tuple[Array, Pull]:
    """Weights wᵢ, and back: ∂/∂sᵢ = wᵢ (gᵢ − Σⱼ wⱼ gⱼ), rows along the last axis.

    scores (..., S) -> weights (..., S); the pull takes and gives (..., S).
    Bridle 1990, section 4.

    >>> weights, pull = softmax_vjp(np.array([0.0, 0.0]))
    >>> pull(np.array([1.0, 0.0]))
    array([ 0.25, -0.25])
    """
    weights = softmax(scores)
    return weights, lambda gradient: pull_softmax(weights, gradient)


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


class AttentionGradients(NamedTuple):
    """Gradients in the shapes of the inputs and the output's dtype."""

    query: Array
    key: Array
    value: Array
    bias: Array | None


def attention_vjp(
    query: npt.ArrayLike,
    key: npt.ArrayLike,
    value: npt.ArrayLike,
    *,
    mask: npt.ArrayLike | None = None,
    bias: npt.ArrayLike | None = None,
    **keywords: Any,
) -> tuple[Array, Callable[[Array], AttentionGradients]]:
    """`attention`, and back: its operations in reverse order, each with its own gradient.

    Shapes, dtypes, options and errors as for `attention`, but that it never goes by blocks; the
    pull takes (..., Hq, L, dv) and sums where inputs broadcast or share heads. What a hidden token
    holds, even NaN, has no effect. Raises TypeError for other scores than dot products without a
    softcap, and for other weights than those of softmax.   Vaswani et al. 2017, section 3.2.1.

    >>> output, pull = attention_vjp([[0.0]], [[1.0], [-1.0]], [[1.0], [0.0]])
    >>> output, pull(np.array([[1.0]])).query
    (array([[0.5]]), array([[0.5]]))
    """
    inputs = checked(query, key, value, mask, bias)
    options = AttentionOptions(inputs.mask, inputs.bias, **keywords)
    if (options.score, options.normalize, options.softcap) != ("dot", "softmax", 0):
        raise TypeError("gradients are known for dot products and softmax, without a softcap, only")
    q, k, v = inputs.ready()
    scale = 1 / np.sqrt(max(q.shape[-1], 1)) if options.scale is None else float(options.scale)
    with np.errstate(all="ignore"):
        *_, masked, weights, output = attend(q, k, v, options)

    @np.errstate(all="ignore")
    def pull(gradient: Array) -> AttentionGradients:
        gradient, visible = np.asarray(gradient, inputs.working), masked != -np.inf
        by_weights = summed_to(gradient @ v.swapaxes(-1, -2), weights.shape)
        by_masked = np.where(visible, pull_softmax(weights, by_weights), 0)
        by_scores = by_masked * scale
        # A product of matrices would take 0 · NaN of what is hidden.
        by_key = summed_to(mix(by_scores.swapaxes(-1, -2), q), k.shape)
        by_value = summed_to(weights.swapaxes(-1, -2) @ gradient, v.shape)
        by_bias = None if options.bias is None else summed_to(by_masked, options.bias.shape)
        return AttentionGradients(
            cast(summed_to(mix(by_scores, k), q.shape), inputs.dtype),
            cast(_over_query_heads(by_key, inputs.key.shape), inputs.dtype),
            cast(_over_query_heads(by_value, inputs.value.shape), inputs.dtype),
            None if by_bias is None else cast(by_bias, inputs.dtype),
        )

    return cast(output, inputs.dtype), pull


def _over_query_heads(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Back through `share_heads`: a head gets the sum of its copies' gradients."""
    if gradient.shape == shape:
        return gradient
    *lead, n_heads, n_keys, width = shape
    copies = gradient.shape[-3] // n_heads
    return gradient.reshape(*lead, n_heads, copies, n_keys, width).sum(axis=-3)
