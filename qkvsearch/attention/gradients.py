"""Gradients by hand: of scores, of attention, and of layers back to their weights.

`output, pull = softmax_vjp(scores)` computes softmax(scores) and a function that takes the gradient
of some loss by the output to its gradient by the scores: a vector-Jacobian product, the chain rule
one step at a time. Pulls want finite inputs.

`output, pull = vjp(layer, x)` computes layer(x). `pull(gradient)` returns a tuple of the gradients
by the inputs, `(by_x,)` or `(by_x, by_memory)`, and a dict of those by the weights, under the names
of `state(layer)`. A model of your own joins in by `@vjp.register`. The gradients of losses are in
`attention.training`.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial, singledispatch
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import ndtr

from qkvsearch.attention.arguments import AttentionOptions, checked
from qkvsearch.attention.array_api import answer_dtype, cast
from qkvsearch.attention.functional import attend
from qkvsearch.attention.layers.basic import (
    ACTIVATIONS,
    Array,
    Embedding,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    Linear,
    as_rows,
    standardize,
)
from qkvsearch.attention.layers.state_dict import prefixed
from qkvsearch.attention.layers.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    MultiHeadAttention,
    join_heads,
    split_heads,
)
from qkvsearch.attention.scores import AdditiveScore, cap, cosine_score, dot_score
from qkvsearch.attention.weights import mix, softmax

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
    inputs = checked(query, key, value, mask, bias)
    options = AttentionOptions(inputs.mask, inputs.bias, score=score, **keywords)
    q, k, v = inputs.ready()
    with np.errstate(all="ignore"):
        *_, masked, weights, output = attend(q, k, v, options)

    @np.errstate(all="ignore")
    def pull(gradient: Array) -> AttentionGradients:
        gradient, visible = np.asarray(gradient, inputs.working), masked != -np.inf
        scores, pull_score = way_back(q, _seen(k, visible), options.scale)
        _, pull_cap = cap_vjp(scores, options.softcap)
        by_weights = summed_to(gradient @ v.swapaxes(-1, -2), weights.shape)
        pull_weights = NORMALIZER_PULLS[options.normalize]
        by_masked = np.where(visible, pull_weights(weights, masked, by_weights), 0)
        by_query, by_key, by_score = pull_score(pull_cap(summed_to(by_masked, scores.shape)))
        by_value = summed_to(weights.swapaxes(-1, -2) @ gradient, v.shape)
        return AttentionGradients(
            cast(by_query, inputs.dtype),
            cast(_over_query_heads(by_key, inputs.key.shape), inputs.dtype),
            cast(_over_query_heads(by_value, inputs.value.shape), inputs.dtype),
            None
            if options.bias is None
            else cast(summed_to(by_masked, options.bias.shape), inputs.dtype),
            {name: cast(array, inputs.dtype) for name, array in by_score.items()},
        )

    return cast(output, inputs.dtype), pull


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


Weights = dict[str, Array]
LayerPull = Callable[[Array], tuple[tuple[Array, ...], Weights]]


# --- functions ---


def relu_slope(x: Array) -> Array:
    """The derivative of max(0, x): 1 where x is positive. Any shape.

    >>> relu_slope(np.array([-1.0, 2.0])).astype(int)
    array([0, 1])
    """
    return x > 0


def gelu_slope(x: Array) -> Array:
    """The derivative of x · Φ(x): Φ(x) + x φ(x), φ the normal density. Any shape.

    >>> gelu_slope(np.array([0.0]))
    array([0.5])
    """
    return ndtr(x) + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def gelu_tanh_slope(x: Array) -> Array:
    """The derivative of ½ x (1 + tanh u(x)): ½ (1 + tanh u) + ½ x (1 − tanh² u) u'. Any shape.

    >>> gelu_tanh_slope(np.array([0.0]))
    array([0.5])
    """
    factor = math.sqrt(2 / math.pi)
    t = np.tanh(factor * (x + 0.044715 * x * x * x))
    return 0.5 * (1 + t + x * (1 - t * t) * factor * (1 + 3 * 0.044715 * x * x))


SLOPES: Mapping[str, Callable[[Array], Array]] = {
    "relu": relu_slope, "gelu": gelu_slope, "gelu_tanh": gelu_tanh_slope
}  # fmt: skip


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


# --- layers ---


@singledispatch
def vjp(layer: Any, *inputs: Any, **options: Any) -> tuple[Array, LayerPull]:
    """layer(*inputs, **options), and the way back to its inputs and weights.

    Shapes, options and errors as for the layer's call. Raises TypeError for a layer without one.
    Every case is the chain rule over the layer's parts; Rumelhart et al. 1986.

    >>> output, pull = vjp(Linear(weight=np.array([[3.0, 4.0]])), np.array([1.0, 2.0]))
    >>> pull(np.array([1.0]))
    ((array([3., 4.]),), {'weight': array([[1., 2.]])})

    With a memory there are two inputs:

    >>> x, memory = np.ones((5, 4)), np.ones((7, 4))
    >>> output, pull = vjp(Decoder.create(1, 4, 2, 8, rng=0), x, memory)
    >>> (by_x, by_memory), by_weights = pull(output)
    >>> by_memory.shape, by_weights["layers.0.memory_attention.key.weight"].shape
    ((7, 4), (4, 4))
    """
    name = type(layer).__name__
    raise TypeError(f"no gradient is known for {name}: give it one by @vjp.register")


@vjp.register
def linear_vjp(layer: Linear, x: Array) -> tuple[Array, LayerPull]:
    """x·Wᵀ + b, and back: g·W for x, gᵀ·x for W, Σ g for b; none to W from a row without any g."""

    @np.errstate(invalid="ignore")
    def pull(gradient: Array) -> tuple[tuple[Array, ...], Weights]:
        rows = as_rows(gradient)
        weights = {"weight": mix(rows.T, as_rows(x))}
        if layer.bias is not None:
            weights["bias"] = rows.sum(axis=0)
        return ((rows @ layer.weight).reshape(x.shape),), weights

    return layer(x), pull


@vjp.register
def layer_norm_vjp(layer: LayerNorm, x: Array) -> tuple[Array, LayerPull]:
    """y · w + b with y = standardize(x), and back: Σ g · y for w, Σ g for b."""
    y, pull_y = standardize_vjp(x, layer.epsilon)

    def pull(gradient: Array) -> tuple[tuple[Array, ...], Weights]:
        by_weight = summed_to(gradient * y, layer.weight.shape)
        by_bias = summed_to(gradient, layer.bias.shape)
        return (pull_y(gradient * layer.weight),), {"weight": by_weight, "bias": by_bias}

    return layer.stretch(y), pull


@vjp.register
def feed_forward_vjp(layer: FeedForward, x: Array) -> tuple[Array, LayerPull]:
    """The hidden layer, the activation, the output layer, and back through them."""
    hidden, pull_hidden = vjp(layer.hidden, x)
    output, pull_output = vjp(layer.output, ACTIVATIONS[layer.activation](hidden))

    def pull(gradient: Array) -> tuple[tuple[Array, ...], Weights]:
        (by_active,), of_output = pull_output(gradient)
        inputs, of_hidden = pull_hidden(by_active * SLOPES[layer.activation](hidden))
        return inputs, prefixed("hidden", of_hidden) | prefixed("output", of_output)

    return output, pull


@vjp.register
def embedding_vjp(layer: Embedding, ids: npt.ArrayLike) -> tuple[Array, LayerPull]:
    """The rows of ids, and back: each row of the table gets the sum over where it was used.

    >>> _, pull = vjp(Embedding(np.eye(2)), [1, 1])  # ids have no gradient
    >>> pull(np.ones((2, 2)))
    ((), {'weight': array([[0., 0.], [2., 2.]])})
    """
    rows = layer.rows(ids)

    def pull(gradient: Array) -> tuple[tuple[Array, ...], Weights]:
        # A lookup is a product with a one-hot matrix, and its way back one with the transpose.
        ones, ends = np.ones(rows.size, gradient.dtype), np.arange(rows.size + 1)
        one_hot = csr_array((ones, rows.ravel(), ends), shape=(rows.size, len(layer.weight)))
        return (), {"weight": one_hot.T @ as_rows(gradient)}

    return layer.weight[rows], pull


@vjp.register
def positions_vjp(layer: LearnedPositions, x: Array) -> tuple[Array, LayerPull]:
    """x + the first L rows of the table, and back: the gradient itself, to both."""

    def pull(gradient: Array) -> tuple[tuple[Array, ...], Weights]:
        by_weight = np.zeros_like(layer.weight)
        length = x.shape[-2]
        by_weight[:length] = summed_to(gradient, (length, x.shape[-1]))
        return (gradient,), {"weight": by_weight}

    return layer(x), pull


@vjp.register
def multi_head_attention_vjp(
    layer: MultiHeadAttention, x: Array, memory: Array | None = None, **options: Any
) -> tuple[Array, LayerPull]:
    """Projections, attention head by head, the output layer, and back through them.

    A bias counts as a constant; `attention_vjp` has the gradient by it.

    >>> layer, x = MultiHeadAttention.create(8, n_heads=2, rng=0), np.ones((5, 8))
    >>> output, pull = vjp(layer, x, is_causal=True)
    >>> [by_x.shape for by_x in pull(output)[0]]
    [(5, 8)]
    """
    source = x if memory is None else memory
    q, pull_query = vjp(layer.query, x)
    k, pull_key = vjp(layer.key, source)
    v, pull_value = vjp(layer.value, source)
    heads = (
        split_heads(q, layer.n_heads),
        split_heads(k, layer.n_key_heads),
        split_heads(v, layer.n_key_heads),
    )
    mixed, pull_mixed = attention_vjp(*heads, **layer.attention_options(heads, **options))
    output, pull_output = vjp(layer.output, join_heads(mixed))

    def pull(gradient: Array) -> tuple[tuple[Array, ...], Weights]:
        (by_joined,), of_output = pull_output(gradient)
        back = pull_mixed(split_heads(by_joined, layer.n_heads))
        (by_x,), of_query = pull_query(join_heads(back.query))
        (by_k,), of_key = pull_key(join_heads(back.key))
        (by_v,), of_value = pull_value(join_heads(back.value))
        weights = prefixed("query", of_query) | prefixed("key", of_key)
        weights |= prefixed("value", of_value) | prefixed("output", of_output)
        weights |= prefixed("score", back.score)
        return (by_x + by_k + by_v,) if memory is None else (by_x, by_k + by_v), weights

    return output, pull


@vjp.register
def encoder_layer_vjp(layer: EncoderLayer, x: Array, **options: Any) -> tuple[Array, LayerPull]:
    """Self-attention, feed forward, and back through them."""
    x, pull_attention = _residual_vjp(layer, "attention", "attention_norm", x, **options)
    x, pull_feed_forward = _residual_vjp(layer, "feed_forward", "feed_forward_norm", x)

    def pull(gradient: Array) -> tuple[tuple[Array, ...], Weights]:
        (by_x,), of_feed_forward = pull_feed_forward(gradient)
        inputs, of_attention = pull_attention(by_x)
        return inputs, of_attention | of_feed_forward

    return x, pull


@vjp.register
def decoder_layer_vjp(
    layer: DecoderLayer,
    x: Array,
    memory: Array,
    *,
    memory_mask: npt.ArrayLike | None = None,
    is_causal: bool = True,
    **options: Any,
) -> tuple[Array, LayerPull]:
    """Self-attention, attention to the memory, feed forward, and back through them."""
    own: dict[str, Any] = {"is_causal": is_causal, **options}
    recall: dict[str, Any] = {"memory": memory, "mask": memory_mask}
    x, pull_attention = _residual_vjp(layer, "attention", "attention_norm", x, **own)
    x, pull_memory = _residual_vjp(layer, "memory_attention", "memory_norm", x, **recall)
    x, pull_feed_forward = _residual_vjp(layer, "feed_forward", "feed_forward_norm", x)

    def pull(gradient: Array) -> tuple[tuple[Array, ...], Weights]:
        (by_x,), of_feed_forward = pull_feed_forward(gradient)
        (by_x, by_memory), of_memory = pull_memory(by_x)
        (by_x,), of_attention = pull_attention(by_x)
        return (by_x, by_memory), of_attention | of_memory | of_feed_forward

    return x, pull


@vjp.register(Encoder)
@vjp.register(Decoder)
def stack_vjp(
    stack: Encoder | Decoder, x: Array, *memory: Array, **options: Any
) -> tuple[Array, LayerPull]:
    """Layer after layer, and back; the memory gets the sum of the layers' gradients."""
    pulls = []
    for layer in stack.layers:
        x, pull_layer = vjp(layer, x, *memory, **options)
        pulls.append(pull_layer)
    if stack.norm is not None:
        x, pull_norm = vjp(stack.norm, x)

    def pull(gradient: Array) -> tuple[tuple[Array, ...], Weights]:
        weights: Weights = {}
        by_memory = [np.zeros_like(m) for m in memory]
        if stack.norm is not None:
            (gradient,), of_norm = pull_norm(gradient)
            weights |= prefixed("norm", of_norm)
        for i, pull_layer in reversed(list(enumerate(pulls))):
            (gradient, *more), of_layer = pull_layer(gradient)
            by_memory = [total + extra for total, extra in zip(by_memory, more, strict=True)]
            weights |= prefixed(f"layers.{i}", of_layer)
        return (gradient, *by_memory), weights

    return x, pull


def _residual_vjp(
    layer: EncoderLayer | DecoderLayer, name: str, norm_name: str, x: Array, **options: Any
) -> tuple[Array, LayerPull]:
    """`residual` of a layer's sublayer and its norm, and back: the gradient flows both through the
    sublayer and past it.   He et al. 2016, section 3.2."""
    sublayer, norm = getattr(layer, name), getattr(layer, norm_name)
    if layer.norm_first:
        normed, pull_norm = vjp(norm, x)
        added, pull_sublayer = vjp(sublayer, normed, **options)
        output = x + added
    else:
        added, pull_sublayer = vjp(sublayer, x, **options)
        output, pull_norm = vjp(norm, x + added)

    def pull(gradient: Array) -> tuple[tuple[Array, ...], Weights]:
        if layer.norm_first:
            (by_normed, *more), of_sublayer = pull_sublayer(gradient)
            (by_x,), of_norm = pull_norm(by_normed)
        else:
            (gradient,), of_norm = pull_norm(gradient)
            (by_x, *more), of_sublayer = pull_sublayer(gradient)
        weights = prefixed(name, of_sublayer) | prefixed(norm_name, of_norm)
        return (gradient + by_x, *more), weights

    return output, pull
