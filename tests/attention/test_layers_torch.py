"""Layers beside PyTorch's: the same outputs, and the same gradients of every input and weight."""

import re

import numpy as np
import pytest

from qkvsearch.attention.layers.state_dict import state
from qkvsearch.attention.layers.transformer import DecoderLayer, EncoderLayer, MultiHeadAttention
from qkvsearch.attention.masks import padding_mask
from tests.attention.numbers import made, random

torch = pytest.importorskip("torch", reason="needs torch")

D, HEADS, D_FEEDFORWARD = 8, 2, 16
KEPT, MEMORY_KEPT = padding_mask([5, 3]), padding_mask([1, 3])
TORCH = {"dropout": 0, "batch_first": True, "dtype": torch.float64}
AHEAD = torch.ones(5, 5, dtype=torch.bool).triu(1)

# PyTorch's names of the parts of our layers.
RENAMED = {
    "attention": "self_attn",
    "attention_norm": "norm1",
    "memory_attention": "multihead_attn",
    "memory_norm": "norm2",
    "feed_forward.hidden": "linear1",
    "feed_forward.output": "linear2",
    "output": "out_proj",
}


def torch_names(weights):
    """Our weights under PyTorch's names: query, key, value in one, in_proj."""
    renamed = RENAMED | {
        "feed_forward_norm": "norm3" if any("memory_norm" in n for n in weights) else "norm2"
    }
    names = {}
    for name, weight in weights.items():
        if name.split(".")[-2:-1] == ["query"]:
            parts = [weights[name.replace("query", part)] for part in ("query", "key", "value")]
            weight, name = np.concatenate(parts), name.replace("query.", "in_proj_")
        elif name.split(".")[-2:-1] in (["key"], ["value"]):
            continue
        for ours in sorted(renamed, key=len, reverse=True):
            name = re.sub(rf"\b{ours}\b", renamed[ours], name)
        names[name] = weight
    return names


def assert_same(ours, theirs, inputs, options=None, call=lambda layer, *inputs: layer(*inputs)):
    """The output of both layers at the same weights."""
    theirs.load_state_dict({k: torch.tensor(w) for k, w in torch_names(state(ours)).items()})
    expected = call(theirs, *map(torch.tensor, inputs))
    output = ours(*inputs, **(options or {}))
    np.testing.assert_allclose(output, expected.detach().numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("cross", [False, True], ids=["self", "cross"])
def test_multi_head_attention(cross):
    kept = MEMORY_KEPT if cross else KEPT
    theirs = torch.nn.MultiheadAttention(D, HEADS, batch_first=True, dtype=torch.float64)
    assert_same(
        made(MultiHeadAttention, D, HEADS),
        theirs,
        [random(2, 5, D), random(2, 3, D, seed=1)][: 1 + cross],
        {"mask": kept[:, None, :]},
        lambda layer, x, *memory: layer(
            x, *(memory or [x]) * 2, key_padding_mask=torch.tensor(~kept)
        )[0],
    )


@pytest.mark.parametrize("norm_first", [False, True], ids=["norm last", "norm first"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(norm_first, activation):
    how = {"norm_first": norm_first, "activation": activation}
    assert_same(
        made(EncoderLayer, D, HEADS, D_FEEDFORWARD, epsilon=1e-12, **how),
        torch.nn.TransformerEncoderLayer(
            D, HEADS, D_FEEDFORWARD, layer_norm_eps=1e-12, **how, **TORCH
        ),
        [random(2, 5, D)],
        {"mask": KEPT[:, None, :], "is_causal": True},
        lambda layer, x: layer(x, src_mask=AHEAD, src_key_padding_mask=torch.tensor(~KEPT)),
    )


@pytest.mark.parametrize("norm_first", [False, True], ids=["norm last", "norm first"])
def test_decoder_layer(norm_first):
    how = {"norm_first": norm_first, "activation": "gelu"}
    assert_same(
        made(DecoderLayer, D, HEADS, D_FEEDFORWARD, **how),
        torch.nn.TransformerDecoderLayer(D, HEADS, D_FEEDFORWARD, **how, **TORCH),
        [random(2, 5, D), random(2, 3, D, seed=1)],
        {"mask": KEPT[:, None, :], "memory_mask": MEMORY_KEPT[:, None, :]},
        lambda layer, x, memory: layer(
            x,
            memory,
            tgt_mask=AHEAD,
            tgt_key_padding_mask=torch.tensor(~KEPT),
            memory_key_padding_mask=torch.tensor(~MEMORY_KEPT),
        ),
    )
