"""The attention mechanism and its masks, on plain arrays."""

from qkvsearch.attention.functional import attention, cap, hide, softmax
from qkvsearch.attention.masks import (
    exclusion_mask,
    keep_from_ignore,
    look_ahead_mask,
    padding_mask,
    window_mask,
)
from qkvsearch.attention.scores import AdditiveScore, cosine_score, dot_score

__all__ = [
    "AdditiveScore",
    "attention",
    "cap",
    "cosine_score",
    "dot_score",
    "exclusion_mask",
    "hide",
    "keep_from_ignore",
    "look_ahead_mask",
    "padding_mask",
    "softmax",
    "window_mask",
]
