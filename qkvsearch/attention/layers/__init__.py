"""Layers: dataclasses over arrays, each its weights and a call; their state is a flat dict."""

from qkvsearch.attention.layers.basic import (
    Embedding,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    Linear,
    sinusoidal_positions,
)
from qkvsearch.attention.layers.initializers import (
    gaussian,
    kaiming_normal,
    kaiming_uniform,
    xavier_normal,
    xavier_uniform,
)
from qkvsearch.attention.layers.multi_head import MultiHeadAttention
from qkvsearch.attention.layers.state_dict import load, state
from qkvsearch.attention.layers.transformer_layers import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    LayerOutput,
)

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Embedding",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LayerNorm",
    "LayerOutput",
    "LearnedPositions",
    "Linear",
    "MultiHeadAttention",
    "gaussian",
    "kaiming_normal",
    "kaiming_uniform",
    "load",
    "sinusoidal_positions",
    "state",
    "xavier_normal",
    "xavier_uniform",
]
