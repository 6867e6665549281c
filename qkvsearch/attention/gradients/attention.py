"""Gradients by hand, of attention: back from the output to query, key, value and bias."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qkvsearch.attention.arguments import checked
from qkvsearch.attention.arrays import cast
from qkvsearch.attention.functional import attend
from qkvsearch.attention.gradients.functions import (
    ScorePull,
    additive_score_vjp,
    cap_vjp,
    cosine_score_vjp,
    dot_score_vjp,
    pull_softmax,
    summed_to,
    weighted,
)
from qkvsearch.attention.layers.initializers import Array
from qkvsearch.attention.options import AttentionOptions
from qkvsearch.attention.scores import AdditiveScore


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


# --- the operations, backwards ---


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
