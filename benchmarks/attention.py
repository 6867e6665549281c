"""Attention in NumPy beside PyTorch's fused kernel on the CPU: 8 heads of 64, plain and causal.

python benchmarks/attention.py
"""

from __future__ import annotations

import tracemalloc
from functools import partial
from typing import Any

import numpy as np
from common import Row, System, compare, print_table

from qkvsearch.attention import attention

HEADS, WIDTH = 8, 64
# Tokens and turns; 128 are reported, not judged: calls cost more than arithmetic there.
TURNS = {128: 200, 1024: 31, 4096: 9}
# Scores of ±8 are what trained models have; those of ±80 need the running maximum of each row.
SPREADS = {"": 1.0, ", large scores": 10.0}


def claim() -> list[Row]:
    return [
        row
        for n_tokens, turns in TURNS.items()
        for causal in (False, True)
        for spread in SPREADS
        for row in side_by_side(n_tokens, causal, spread, turns)
    ]


def side_by_side(n_tokens: int, causal: bool, spread: str, turns: int) -> list[Row]:
    import torch

    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, HEADS, n_tokens, WIDTH), dtype=np.float32) for _ in range(3))
    q *= SPREADS[spread]
    tensors = [torch.from_numpy(x) for x in (q, k, v)]
    kernel = torch.nn.functional.scaled_dot_product_attention
    check(attention(q, k, v, is_causal=causal), kernel(*tensors, is_causal=causal).numpy())
    task = f"{n_tokens:,} tokens, 8 heads of 64{', causal' if causal else ''}{spread}"
    systems = [
        System("qkvsearch `attention`", lambda _: attention(q, k, v, is_causal=causal)),
        System("PyTorch's fused kernel", lambda _: partial(kernel, is_causal=causal)(*tensors)),
    ]
    return compare(task, systems, [None] * turns, blas_threads=None)


def extra_memory(n_tokens: int = 16_384) -> str:
    """What one head of that many tokens takes beside its arguments, as NumPy asked for it."""
    q, k, v = np.random.default_rng(0).standard_normal((3, n_tokens, WIDTH), dtype=np.float32)
    attention(q[:1024], k[:1024], v[:1024])  # compiled before it is measured
    tracemalloc.start()
    attention(q, k, v)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return f"{n_tokens:,} × {n_tokens:,} scores, one head: {peak:.0f} MiB beside the arguments"


def check(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours, theirs, atol=2e-5)


if __name__ == "__main__":
    print_table([claim])
    print(extra_memory())
