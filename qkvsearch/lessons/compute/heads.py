"""Lesson on many heads: a task that two heads learn and one head of the same size does not."""

from collections.abc import Callable
from functools import cache

import numpy as np

from qkvsearch.attention import attention
from qkvsearch.attention.gradients import attention_vjp
from qkvsearch.attention.layers import gaussian
from qkvsearch.attention.layers.transformer import join_heads, split_heads
from qkvsearch.attention.training import Adam, mean_squared_error

# The task, and the width of the queries, keys and values of all heads together.
SEQUENCES = 64
TOKENS = 4
WIDTH = 8
# How it is learned, and the deviation of the numbers that matrices start from.
ROUNDS = 250
RATE = 0.05
DEVIATION = 0.2
PROJECTIONS = "query", "key", "value"

Matrices = dict[str, np.ndarray]
Task = Callable[[int], tuple[np.ndarray, np.ndarray]]


def before_and_after(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random inputs (SEQUENCES, TOKENS, 2 + TOKENS) and targets (SEQUENCES, TOKENS, 2).

    An input is two numbers and its position. Its target is the first number of the token before
    it and the second number of the token after it; the last token is before the first.
    """
    numbers = np.random.default_rng(seed).normal(size=(SEQUENCES, TOKENS, 2))
    positions = np.broadcast_to(np.eye(TOKENS), (SEQUENCES, TOKENS, TOKENS))
    before = np.roll(numbers, 1, axis=1)
    after = np.roll(numbers, -1, axis=1)
    target = np.stack([before[..., 0], after[..., 1]], axis=-1)
    return np.concatenate([numbers, positions], axis=2), target


def project(x: np.ndarray, matrices: Matrices, n_heads: int) -> list[np.ndarray]:
    """Return queries, keys and values (…, n_heads, TOKENS, WIDTH / n_heads)."""
    return [split_heads(x @ matrices[name], n_heads) for name in PROJECTIONS]


@cache
def train(n_heads: int, task: Task = before_and_after) -> tuple[Matrices, np.ndarray]:
    """Return the matrices that were learned, by name, and the loss of each round (ROUNDS,)."""
    x, target = task(0)
    rng = np.random.default_rng(1)
    matrices = {name: gaussian((x.shape[-1], WIDTH), rng, DEVIATION) for name in PROJECTIONS}
    matrices["output"] = gaussian((WIDTH, 2), rng, DEVIATION)
    inputs = x.reshape(-1, x.shape[-1])
    optimizer = Adam(RATE)
    losses = []
    for _ in range(ROUNDS):
        mixed, pull = attention_vjp(*project(x, matrices, n_heads))
        joined = join_heads(mixed)
        loss, slope = mean_squared_error(joined @ matrices["output"], target)
        slopes = pull(split_heads(slope @ matrices["output"].T, n_heads))
        gradients = {
            name: inputs.T @ join_heads(getattr(slopes, name)).reshape(-1, WIDTH)
            for name in PROJECTIONS
        }
        gradients["output"] = joined.reshape(-1, WIDTH).T @ slope.reshape(-1, 2)
        optimizer.step(matrices, gradients)
        losses.append(loss)
    return matrices, np.array(losses)


def new_errors(
    matrices: Matrices, n_heads: int, without: int | None = None, task: Task = before_and_after
) -> np.ndarray:
    """Return the mean squared error of each of the two numbers (2,) on sequences not seen before.

    without: a head whose outputs are replaced by 0.
    """
    x, target = task(9)
    mixed = attention(*project(x, matrices, n_heads))
    if without is not None:
        mixed[:, without] = 0
    return np.square(join_heads(mixed) @ matrices["output"] - target).mean(axis=(0, 1))
