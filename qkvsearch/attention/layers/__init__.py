"""Layers: dataclasses over arrays, each its weights and a call; their state is a flat dict."""

from qkvsearch.attention.layers.basic import (
    Embedding,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    Linear,
    gaussian,
    kaiming_normal,
    sinusoidal_positions,
    xavier_normal,
    xavier_uniform,
)
from qkvsearch.attention.layers.state_dict import load, state
from qkvsearch.attention.layers.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    LayerOutput,
    MultiHeadAttention,
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
    "load",
    "sinusoidal_positions",
    "state",
    "xavier_normal",
    "xavier_uniform",
]
