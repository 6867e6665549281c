"""Backward passes, derived by hand: each gives its output and a function from the output's gradient
to those of its inputs and weights (a vector-Jacobian product)."""

from qkvsearch.attention.gradients.attention import (
    AttentionGradients,
    additive_score_vjp,
    attention_vjp,
    cap_vjp,
    cosine_score_vjp,
    dot_score_vjp,
    softmax_vjp,
)
from qkvsearch.attention.gradients.layer_gradients import (
    gelu_tanh_vjp,
    gelu_vjp,
    relu_vjp,
    standardize_vjp,
    vjp,
)
from qkvsearch.attention.training import cross_entropy, mean_squared_error

__all__ = [
    "AttentionGradients",
    "additive_score_vjp",
    "attention_vjp",
    "cap_vjp",
    "cosine_score_vjp",
    "cross_entropy",
    "dot_score_vjp",
    "gelu_tanh_vjp",
    "gelu_vjp",
    "mean_squared_error",
    "relu_vjp",
    "softmax_vjp",
    "standardize_vjp",
    "vjp",
]
