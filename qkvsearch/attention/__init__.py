"""The attention mechanism and its masks, on plain arrays."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# Imported on first use: a search takes its masks and the softmax from here, and no more.
_HOMES = {
    "functional": ("attention",),
    "masks": (
        "exclusion_mask",
        "hide",
        "keep_from_ignore",
        "look_ahead_mask",
        "padding_mask",
        "window_mask",
    ),
    "scores": ("AdditiveScore", "cap", "cosine_score", "dot_score"),
    "weights": ("softmax",),
}

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


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, also those that are not imported yet, for tab completion."""
    return list(__all__)
