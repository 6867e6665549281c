"""Attention in NumPy beside PyTorch's fused kernel on the CPU: float32, 8 heads of 64.

"Large scores" are of ±80, ten times those of the other lines, which is what trained models have:
they need the running maximum of each row. 128 tokens are reported, not judged: there calls cost
more than arithmetic. Which of the two is ahead depends on the processor: on two cores of an Intel
Xeon PyTorch took .82 and .78 of our time with 1,024 and 4,096 tokens.

python benchmarks --only attention_speed    (a minute; peer: pip install torch)
"""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np

from benchmarks.support.results import Row, installed
from benchmarks.support.script import main
from benchmarks.support.timing import System, compare, rescored
from qkvsearch.attention import attention

HEADS, WIDTH = 8, 64
MEBIBYTE = 2**20
# Tokens and turns; 128 are reported, not judged: calls cost more than arithmetic there.
TURNS = {128: 200, 1024: 31, 4096: 9}
# Scores of ±8 are what trained models have; those of ±80 need the running maximum of each row.
SPREADS = {"": 1.0, ", large scores": 10.0}


def times() -> list[Row]:
    return [
        row
        for n_tokens, turns in TURNS.items()
        for causal in (False, True)
        for spread in SPREADS
        for row in side_by_side(n_tokens, causal, spread, turns)
    ]


def side_by_side(n_tokens: int, causal: bool, spread: str, turns: int) -> list[Row]:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, HEADS, n_tokens, WIDTH), dtype=np.float32) for _ in range(3))
    q *= SPREADS[spread]
    task = f"{n_tokens:,} tokens, 8 heads of 64{', causal' if causal else ''}{spread}"
    ours = partial(attention, q, k, v, is_causal=causal)
    systems = [System("qkvsearch `attention`", lambda _: ours(), rescored)]
    if installed("torch"):
        import torch

        kernel = torch.nn.functional.scaled_dot_product_attention
        peer = partial(kernel, *map(torch.from_numpy, (q, k, v)), is_causal=causal)
        np.testing.assert_allclose(ours(), peer().numpy(), atol=2e-5)
        systems.append(System("PyTorch's fused kernel", lambda _: peer(), rescored))
    return compare(task, systems, [None], turns=turns, blas_threads=None)


def memory(n_tokens: int = 16_384) -> list[Row]:
    """What one head of that many tokens takes beside its arguments, as NumPy asked for it."""
    q, k, v = np.random.default_rng(0).standard_normal((3, n_tokens, WIDTH), dtype=np.float32)
    attention(q[:1024], k[:1024], v[:1024])  # compiled before it is measured
    tracemalloc.start()
    attention(q, k, v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    task, metric = f"{n_tokens:,} × {n_tokens:,} scores, one head", "MiB beside the arguments"
    scores = 4 * n_tokens**2 / MEBIBYTE
    return [
        Row(task, "qkvsearch `attention`", metric, peak / MEBIBYTE),
        Row(task, "all scores at once, computed", metric, scores),
    ]


PARTS = {"times": times, "memory": memory}

if __name__ == "__main__":
    main(__file__, PARTS, peers=["torch"])
