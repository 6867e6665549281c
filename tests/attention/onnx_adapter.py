"""ONNX's `Attention` operator, opsets 23 to 25, said in the words of `qkvsearch.attention`."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from qkvsearch.attention import attention, padding_mask
from qkvsearch.attention.arguments import AttentionOptions, checked
from qkvsearch.attention.array_api import Array, cast
from qkvsearch.attention.functional import attend
from qkvsearch.attention.masks import window_mask

# The step that a qk_matmul_output_mode shows, by its number.
STEPS = ("scores", "capped", "masked", "weights")


class Outputs(NamedTuple):
    """The operator's outputs, by its own names."""

    Y: Array
    present_key: Array
    present_value: Array
    qk_matmul_output: Array


def onnx_attention(
    Q,
    K,
    V,
    attn_mask=None,
    past_key=None,
    past_value=None,
    nonpad_kv_seqlen=None,
    *,
    q_num_heads=None,
    kv_num_heads=None,
    scale=None,
    softcap=0.0,
    is_causal=0,
    left_window_size=-1,
    right_window_size=-1,
    qk_matmul_output_mode=0,
    softmax_precision=None,
):
    """The operator's inputs and attributes, by its own names -> all of its outputs.

    Q (n, Hq, L, d), K (n, Hk, S, d), V (n, Hk, S, dv), or 3-D with the heads side by side.
    `softmax_precision` has no counterpart: `attention` computes in float32, or float64 for float64,
    which is within tolerance of whatever it may ask for.
    """
    query = split_heads(Q, q_num_heads)
    key = after(past_key, split_heads(K, kv_num_heads))
    value = after(past_value, split_heads(V, kv_num_heads))
    options = AttentionOptions(
        *mask_and_bias(attn_mask, size=key.shape[2]),
        is_causal=bool(is_causal),
        causal_offset=0 if past_key is None else past_key.shape[2],
        scale=scale,
        softcap=softcap,
        window=(side(left_window_size), side(right_window_size)),
    )
    if nonpad_kv_seqlen is not None:
        options = each_to_its_length(options, nonpad_kv_seqlen, query.shape[2], key.shape[2])
    output = attention(query, key, value, **vars(options))
    steps = attend(*checked(query, key, value, options.mask, options.bias).ready(), options)
    shown = cast(getattr(steps, STEPS[qk_matmul_output_mode]), Q.dtype)
    return Outputs(output if Q.ndim == 4 else join_heads(output), key, value, shown)


def split_heads(x, n_heads):
    """(n, tokens, heads · d) -> (n, heads, tokens, d); in 4-D the heads have their axis already."""
    if x.ndim == 4:
        return x
    return x.reshape(*x.shape[:2], n_heads, -1).swapaxes(1, 2)


def join_heads(x):
    """(n, heads, tokens, d) -> (n, tokens, heads · d)."""
    n, heads, tokens, d = x.shape
    return x.swapaxes(1, 2).reshape(n, tokens, heads * d)


def after(past, tokens):
    """The cached tokens, where there are any, and then the new ones."""
    return tokens if past is None else np.concatenate([past, tokens], axis=2)


def side(window_size):
    """A window's side; ONNX's −1 is without limit."""
    return None if window_size == -1 else window_size


def mask_and_bias(attn_mask, size):
    """A boolean attn_mask is a mask, any other a bias; keys beyond its end are hidden."""
    if attn_mask is None:
        return None, None
    boolean = attn_mask.dtype == bool
    beyond = [(0, 0)] * (attn_mask.ndim - 1) + [(0, size - attn_mask.shape[-1])]
    padded = np.pad(attn_mask, beyond, constant_values=False if boolean else -np.inf)
    return (padded, None) if boolean else (None, padded)


def each_to_its_length(options, lengths, L, S):
    """The options for caches of unequal length, each of which ends with its L queries.

    Every sequence has a causal offset of its own, so what it sees is a mask (n, 1, L, S).
    """
    near = np.stack([window_mask(L, S, *options.sides, offset=length - L) for length in lengths])
    mask = near[:, None] & padding_mask(lengths, S)[:, None, None]
    mask = mask if options.mask is None else mask & options.mask
    return replace(options, mask=mask, is_causal=False, window=None)
