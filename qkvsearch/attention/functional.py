"""Scaled dot-product attention, softmax(QKᵀ/√d + M)·V: the formula, and the ways to compute it.

`attend` is the formula, one line a step. Each step's operations have a file of their own: `scores`
(how well a key answers a query), `masks` (which keys a query may attend to), `weights` (how much
each key counts). `attention` picks the fastest way to the same result: `blockwise` where
there are many scores, PyTorch's fused kernel for its tensors.

A weight of exactly 0 takes nothing from its value, even from an infinite or NaN one. Nor do hidden
tokens have an effect on gradients. A query that sees a NaN gets no gradient and adds none to
keys and values.
float16 and bfloat16 are computed in float32; the result has the inputs' dtype, float64 for whole
numbers.
"""

import math
import sys
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from qkvsearch.attention import blockwise
from qkvsearch.attention.arguments import AttentionOptions, Inputs, checked
from qkvsearch.attention.array_api import Array, cast, is_numpy, namespace
from qkvsearch.attention.scores import Score
from qkvsearch.attention.weights import mix

# The formula computes many small matrices in batches of at most this many scores: 4 MiB in float32.
MANY_SCORES = 2**20


class Steps(NamedTuple):
    """All that attention computes, in order: scores, capped, masked and weights (..., L, S), then
    output (..., L, dv). Where a step had nothing to do, it is the same array as the one before."""

    scores: Array
    capped: Array
    masked: Array
    weights: Array
    output: Array


def attend(query: Array, key: Array, value: Array, options: AttentionOptions) -> Steps:
    """Compute softmax(QKᵀ/√d + M)·V with these options, one line for each step.

    >>> options = AttentionOptions(scale=1)
    >>> steps = attend(np.array([[4.0, 0.0]]), np.eye(2), np.array([[1.0], [0.0]]), options)
    >>> steps.scores, steps.weights.round(3), steps.output.round(3)
    (array([[4., 0.]]), array([[0.982, 0.018]]), array([[0.982]]))
    """
    scores = options.scores(query, key)
    capped = options.capped(scores)
    masked = options.visible(capped)
    weights = options.weights(masked, empty_rows=options.empty_rows)
    return Steps(scores, capped, masked, weights, mix(weights, value))


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

    query (..., Hq, L, d), key (..., Hk, S, d), value (..., Hk, S, dv) -> (..., Hq, L, dv); with
    `return_weights`, (output, weights (..., Hq, L, S)). Leading axes broadcast and may be absent;
    where Hq is a multiple of Hk, query head h meets key head h // (Hq // Hk).

    mask: bool, broadcast to (..., L, S), True = may attend; a hidden key's score becomes −∞.
    bias: float, broadcast likewise, added to the scores after `softcap`; −∞ hides like the mask.
    is_causal: key j is visible to query i where j ≤ p = i + causal_offset.
    window: (left, right): visible where p − left ≤ j ≤ p + right; None is unlimited.
    scale: a factor on the scores; None is 1/√d for "dot" and 1 for the other scores.
    softcap: scores become softcap · tanh(scores / softcap), before mask and bias; 0 is off.
    score: "dot", "cosine", or a function of (query, key, scale) such as an `AdditiveScore`.
    normalize: "softmax", "relu" (max(0, s) over its row's sum), "none" (the scores; hidden: 0).
    empty_rows: weights of a query with nothing to attend to: "zero", "uniform", "nan", "raise".
    block_size: queries and keys at a time (NumPy); "auto": blocks where there are many scores.

    Raises TypeError for a mask that is not boolean or what is not numbers, ValueError for what does
    not fit or is unknown.   Vaswani et al. 2017, section 3.2.1; shared heads: Ainslie et al. 2023.

    >>> attention([[4., 0.]], [[4., 0.], [0., 4.]], [[1.], [0.]]).round(4)
    array([[1.]])
    """
    inputs = checked(query, key, value, mask, bias)
    how = is_causal, causal_offset, scale, softcap, window, score, normalize, empty_rows
    options = AttentionOptions(inputs.mask, inputs.bias, *how)
    options.check_widths(inputs.query, inputs.key)
    blockwise.check_size(block_size)
    return (_with_weights if return_weights else _output)(inputs, options, block_size)


def _with_weights(
    inputs: Inputs, options: AttentionOptions, block_size: blockwise.BlockSize
) -> tuple[Array, Array]:
    """Compute the output and all weights (..., Hq, L, S), whatever the block size."""
    is_finite_tensor = _is_tensor(inputs.query) and _are_finite(inputs)
    output, weights = _by_the_formula(inputs, options, is_finite_tensor)
    weights = namespace(weights).broadcast_to(weights, inputs.shape)
    return cast(output, inputs.dtype), cast(weights, inputs.dtype)


def _output(inputs: Inputs, options: AttentionOptions, block_size: blockwise.BlockSize) -> Array:
    """Compute the output by the fastest path that gives the formula's numbers."""
    # Looked up once, since it reads all inputs.
    is_finite_tensor = _is_tensor(inputs.query) and _are_finite(inputs)
    if is_finite_tensor and _fused_kernel_agrees(inputs, options):
        return _fused(inputs, options)
    if blockwise.worthwhile(inputs, block_size):
        return blockwise.attend(inputs, options, block_size)
    if not is_numpy(inputs.query):
        output, _ = _by_the_formula(inputs, options, is_finite_tensor)
        return cast(output, inputs.dtype)
    output = np.empty((*inputs.shape[:-1], inputs.value.shape[-1]), inputs.dtype)
    for index, batch in inputs.batches(MANY_SCORES):
        batch_options = replace(options, mask=batch.mask, bias=batch.bias)
        output[index] = attend(*batch.ready(), batch_options).output
    return output


def _by_the_formula(
    inputs: Inputs, options: AttentionOptions, is_finite_tensor: bool
) -> tuple[Array, Array]:
    """Compute the output and the weights by `attend`, with gradients where there are any."""
    may_lose_rows = options.empty_rows == "nan" or not is_finite_tensor
    if _is_tensor(inputs.query) and may_lose_rows:
        return _beside_broken_tokens(inputs, options)
    steps = attend(*inputs.ready(), options)
    return steps.output, steps.weights


def _beside_broken_tokens(inputs: Inputs, options: AttentionOptions) -> tuple[Array, Array]:
    """Compute the output and the weights of tensors of which some hold infinite numbers or NaNs,
    or whose empty rows become NaN.

    What a hidden token holds counts for nothing, but the gradient of a product of matrices has
    0 · NaN of it. So the numbers are computed once without gradients. The first pass finds the rows
    whose output is not finite, and the tokens that no other row uses. Then both are replaced by
    zeros, and the formula gives the other rows again, with their gradients. A row that is not
    finite gets no gradient.
    """
    import torch

    q, k, v = inputs.ready()
    with torch.no_grad():
        steps = attend(q, k, v, options)
        lost = ~torch.isfinite(steps.output).all(dim=-1, keepdim=True)
        lost |= ~torch.isfinite(steps.weights).all(dim=-1, keepdim=True)
        visible = steps.masked != -math.inf
        is_scored = visible & ~lost
        is_mixed = (steps.weights != 0) & ~lost
    q = torch.where(is_scored.any(dim=-1)[..., None], q, 0)
    k = torch.where(is_scored.any(dim=-2)[..., None], k, 0)
    v = torch.where(is_mixed.any(dim=-2)[..., None], v, 0)
    # A zero would be visible where a score of −∞ had hidden its key.
    options = replace(options, mask=visible)
    if options.empty_rows == "nan":  # these rows are lost, and their NaNs would reach the others
        options = replace(options, empty_rows="zero")
    again = attend(q, k, v, options)
    output = torch.where(lost, steps.output, again.output)
    return output, torch.where(lost, steps.weights, again.weights)


def _is_tensor(x: Array) -> bool:
    """Return whether x is PyTorch's; if that is not imported, there are no tensors either."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _are_finite(inputs: Inputs) -> bool:
    xp = namespace(inputs.query)
    return all(bool(xp.all(xp.isfinite(x))) for x in (inputs.query, inputs.key, inputs.value))


def _fused_kernel_agrees(inputs: Inputs, options: AttentionOptions) -> bool:
    """Return whether PyTorch's fused kernel computes this for finite tensors: softmax over dots.

    The kernel has no cap and no other score, gives an empty row zeros at best, and lets a NaN of a
    hidden key reach the output.
    """
    return (
        (options.score, options.normalize, options.softcap) == ("dot", "softmax", 0)
        and options.empty_rows == "zero"
        and min(inputs.shape) > 0
    )


def _fused(inputs: Inputs, options: AttentionOptions) -> Array:
    """Compute `torch.nn.functional.scaled_dot_product_attention`: (..., Hq, L, dv), same device."""
    from torch.nn.functional import scaled_dot_product_attention as kernel

    xp = namespace(inputs.query)
    *lead, _, _ = inputs.shape
    q, k, v = (xp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in inputs.ready())
    is_plain = options.mask is options.bias is None
    is_causal = is_plain and options.sides == (None, 0) and options.causal_offset == 0
    if is_causal or (is_plain and options.sides == (None, None)):
        output = kernel(q, k, v, is_causal=is_causal, scale=options.scale)
    else:
        # One for all batches and heads that share their mask and bias.
        leads = [x.shape[:-2] for x in (options.mask, options.bias) if x is not None]
        shape = (*np.broadcast_shapes(*leads), *inputs.shape[-2:])
        zeros = xp.zeros(shape, dtype=inputs.working, device=q.device)
        masked = options.visible(zeros)
        empty = xp.all(masked == -math.inf, axis=-1, keepdims=True)
        # A row of −∞ alone is NaN in some versions of the kernel, and has a NaN gradient in others.
        mixed = kernel(q, k, v, attn_mask=xp.where(empty, zeros, masked), scale=options.scale)
        output = xp.where(empty, xp.zeros_like(mixed), mixed)
    return cast(output, inputs.dtype)
