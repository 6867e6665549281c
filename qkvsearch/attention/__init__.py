"""The attention mechanism and its masks, on plain arrays."""

from qkvsearch.attention.blocks import Partial, partial_attention
from qkvsearch.attention.functional import attention
from qkvsearch.attention.masks import (
    exclusion_mask,
    hide,
    keep_from_ignore,
    look_ahead_mask,
    padding_mask,
    window_mask,
)
from qkvsearch.attention.scores import AdditiveScore, cap, cosine_score, dot_score
from qkvsearch.attention.weights import softmax

__all__ = [
    "AdditiveScore",
    "Partial",
    "attention",
    "cap",
    "cosine_score",
    "dot_score",
    "exclusion_mask",
    "hide",
    "keep_from_ignore",
    "look_ahead_mask",
    "padding_mask",
    "partial_attention",
    "softmax",
    "window_mask",
]
