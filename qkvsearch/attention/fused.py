"""PyTorch's fused kernel, for its tensors, where it means the same as the formula."""

from __future__ import annotations

import math
import sys

from qkvsearch.attention._arguments import Inputs
from qkvsearch.attention.arrays import Array, cast, namespace
from qkvsearch.attention.rule import Rule


def agrees(given: Inputs, rule: Rule) -> bool:
    """Whether the kernel computes this: softmax over dot products of PyTorch's finite tensors.

    It knows no cap and no other score, gives an empty row zeros at best, and lets a NaN leak from
    a hidden key.
    """
    torch = sys.modules.get("torch")  # not imported, then no tensors either
    return (
        torch is not None
        and isinstance(given.query, torch.Tensor)
        and (rule.score, rule.normalize, rule.softcap) == ("dot", "softmax", 0)
        and rule.empty_rows == "zero"
        and min(given.shape) > 0
        and all(bool(torch.isfinite(x).all()) for x in (given.query, given.key, given.value))
    )


def attend(given: Inputs, rule: Rule) -> Array:
    """`torch.nn.functional.scaled_dot_product_attention`: (..., Hq, L, dv), on the same device."""
    from torch.nn.functional import scaled_dot_product_attention as kernel

    xp = namespace(given.query)
    *lead, _, _ = given.shape
    q, k, v = (
        xp.broadcast_to(x, (*lead, *x.shape[-2:]))
        for x in (cast(x, given.dtype) for x in given.ready())
    )
    if _plainly_causal(rule):
        return kernel(q, k, v, is_causal=True, scale=rule.scale)
    if rule.mask is None and rule.bias is None and rule.sides == (None, None):
        return kernel(q, k, v, scale=rule.scale)
    zeros = xp.zeros(given.shape, dtype=given.dtype, device=q.device)
    shown = rule.visible(zeros)
    empty = xp.all(shown == -math.inf, axis=-1, keepdims=True)
    # Softmax of a row of −∞ is NaN in some versions of the kernel, and its gradient in others.
    output = kernel(q, k, v, attn_mask=xp.where(empty, zeros, shown), scale=rule.scale)
    return xp.where(empty, xp.zeros_like(output), output)


def _plainly_causal(rule: Rule) -> bool:
    bare = rule.mask is None and rule.bias is None and rule.causal_offset == 0
    return bare and rule.sides == (None, 0)
