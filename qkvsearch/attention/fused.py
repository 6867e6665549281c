"""PyTorch's fused kernel, for its tensors, where it means the same as the formula."""

from __future__ import annotations

import math
import sys

import numpy as np

from qkvsearch.attention.arguments import AttentionOptions, Inputs
from qkvsearch.attention.array_api import Array, cast, namespace


def agrees(given: Inputs, options: AttentionOptions) -> bool:
    """Whether the kernel computes this: softmax over dot products of PyTorch's finite tensors.

    It knows no cap and no other score, gives an empty row zeros at best, and lets a NaN leak from
    a hidden key.
    """
    torch = sys.modules.get("torch")  # not imported, then no tensors either
    return (
        torch is not None
        and isinstance(given.query, torch.Tensor)
        and (options.score, options.normalize, options.softcap) == ("dot", "softmax", 0)
        and options.empty_rows == "zero"
        and min(given.shape) > 0
        and all(bool(torch.isfinite(x).all()) for x in (given.query, given.key, given.value))
    )


def attend(given: Inputs, options: AttentionOptions) -> Array:
    """`torch.nn.functional.scaled_dot_product_attention`: (..., Hq, L, dv), on the same device."""
    from torch.nn.functional import scaled_dot_product_attention as kernel

    xp = namespace(given.query)
    *lead, _, _ = given.shape
    q, k, v = (xp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in given.ready())
    is_plain = options.mask is options.bias is None
    is_causal = is_plain and options.sides == (None, 0) and options.causal_offset == 0
    if is_causal or (is_plain and options.sides == (None, None)):
        output = kernel(q, k, v, is_causal=is_causal, scale=options.scale)
    else:
        # One for all batches and heads that share their mask and bias.
        leads = [x.shape[:-2] for x in (options.mask, options.bias) if x is not None]
        shape = (*np.broadcast_shapes(*leads), *given.shape[-2:])
        zeros = xp.zeros(shape, dtype=given.working, device=q.device)
        shown = options.visible(zeros)
        empty = xp.all(shown == -math.inf, axis=-1, keepdims=True)
        # A row of −∞ alone is NaN in some versions of the kernel, and has a NaN gradient in others.
        mixed = kernel(q, k, v, attn_mask=xp.where(empty, zeros, shown), scale=options.scale)
        output = xp.where(empty, xp.zeros_like(mixed), mixed)
    return cast(output, given.dtype)
