"""Lesson 11, the parts: residual, norm and feed forward, each beside what happens without it."""

from typing import Any

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention.layers import Encoder, FeedForward, LayerNorm, Linear
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Formula, Matrix, Step, Table, step, tell

# Tokens of random vectors that go through a stack of blocks with random weights.
TOKENS, WIDTH, HEADS = 6, 16, 2
SHOWN = (1, 2, 4, 8)
ROW = np.array([2.0, 4.0, 4.0, 10.0])
# Whether one of two is true and the other not.
EITHER = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
TRUE = np.array([0.0, 1.0, 1.0, 0.0])
HIDDEN = np.array([[1, 1], [1, 1]], dtype=float)
BIAS = np.array([0.0, -1.0])
OUTPUT = np.array([[1.0, -2.0]])


def drawn(seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(TOKENS, WIDTH))


def alike(x: Array) -> float:
    """The mean cosine of every two rows: 1 where all point the same way."""
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines = unit @ unit.T
    return float(cosines[np.triu_indices(len(x), k=1)].mean())


def through(x: Array, n_blocks: int, residual: bool, norm: bool, forward: bool) -> list[Array]:
    """What each block gives, by an encoder's layers with random weights; some parts left out."""
    stack = Encoder.create(n_blocks, x.shape[1], HEADS, 4 * x.shape[1], rng=0, dtype=np.float64)
    found = []
    for block in stack.layers:
        steps: list[tuple[Any, LayerNorm]] = [(block.attention, block.attention_norm)]
        if forward:
            steps.append((block.feed_forward, block.feed_forward_norm))
        for part, norm_layer in steps:
            x = residual * x + part(x)
            x = norm_layer(x) if norm else x
        found.append(x)
    return found


# --- residual ---


def alikeness(x: Array, blocks: tuple[int, ...]) -> Array:
    kept = through(x, max(blocks), residual=True, norm=True, forward=True)
    lost = through(x, max(blocks), residual=False, norm=True, forward=True)
    return np.array([[alike(found[n - 1]) for n in blocks] for found in (kept, lost)])


def residual(x: Array | None = None) -> Step:
    """How soon tokens become alike, with what was there and without."""
    x = drawn() if x is None else x
    cell, value = ran(alikeness, x=x, blocks=SHOWN)
    return step(
        "The residual: keep what was there",
        tell(
            "An output of attention is a mix of values. If that were all, a token would be lost in "
            "it. So a block *adds* what attention found to what was there: x + attention(x). This "
            "path around a part is called *residual*, or skip connection."
        ),
        tell(
            "See what happens without it. {n} random tokens go through blocks with random weights. "
            "How alike do they become? (The mean cosine of every two: before the first block it is "
            "{before}, and 1 is all the same.)",
            n=len(x),
            before=alike(x),
        ),
        Matrix(
            say("how alike the tokens are"),
            value,
            [say("with the residual"), say("without it")],
            [say("blocks: {n}", n=n) for n in SHOWN],
            "output",
        ),
        tell(
            "Without it they are nearly one after a single block, {lost}; with it they are at "
            "{kept} then. Mixing makes alike, and the residual holds against it, for some blocks. "
            "These weights are random; what training does to them, the numbers do not show. (Dong "
            "et al., “Attention is not all you need”, 2021, show why.)",
            lost=value[1, 0],
            kept=value[0, 0],
        ),
        points=(67,),
        found={"alike": value},
        code=cell,
    )


# --- norm ---


def normed(row: Array) -> tuple[Array, Array]:
    centred = row - row.mean()
    by_hand = centred / np.sqrt(centred.var() + 1e-5)
    by_layer = LayerNorm.create(len(row), dtype=np.float64)(row)
    return by_hand, by_layer


def norm(row: Array = ROW, x: Array | None = None) -> Step:
    """Mean 0 and variance 1 by hand and by the layer; and how large numbers grow without."""
    x = drawn() if x is None else x
    cell, (by_hand, by_layer) = ran(normed, row=row)
    tenfold = normed(10 * row)[1]
    sizes = np.array(
        [
            [y.std() for y in through(x, max(SHOWN), residual=True, norm=is_normed, forward=True)]
            for is_normed in (True, False)
        ]
    )
    return step(
        "The norm: one scale for all",
        tell(
            "Take a row, {row}. Subtract its mean, {mean}, from each number: {centred}. Divide by "
            "the root of the variance (the mean of the squares), {root}: {normed}. The mean is now "
            "0 and the variance 1. That is *layer norm*, done by a *norm layer*. By hand and by "
            "the program's layer the results differ by {apart}. (Two learned rows may then stretch "
            "and shift it.)",
            row=row,
            mean=row.mean(),
            centred=row - row.mean(),
            root=row.std(),
            normed=by_hand,
            apart=float(np.abs(by_hand - by_layer).max().round(12)),
        ),
        Formula(say("norm(x) = (x − mean) / √variance")),
        tell(
            "A row ten times as large gives the same, {tenfold}: the norm keeps the direction of "
            "what differs and forgets the size. What is that good for? Each residual adds "
            "something, so numbers grow from block to block:",
            tenfold=tenfold,
        ),
        Matrix(
            say("how far the numbers spread (root of the variance)"),
            sizes[:, [n - 1 for n in SHOWN]],
            [say("with the norm"), say("without it")],
            [say("blocks: {n}", n=n) for n in SHOWN],
            "output",
        ),
        tell(
            "With the norm every block gets numbers of the same size. Without it they are {times} "
            "times as large after {n} blocks: a score is a product of two such numbers, so it "
            "grows with the square, and large scores stop learning (lesson 5).",
            times=sizes[1, -1] / sizes[0, -1],
            n=max(SHOWN),
        ),
        points=(68,),
        found={"by_hand": by_hand, "by_layer": by_layer, "tenfold": tenfold, "sizes": sizes},
        code=cell,
    )


# --- feed forward ---


def either(inputs: Array, hidden: Array, bias: Array, output: Array) -> tuple[Array, Array, Array]:
    h = np.maximum(0, Linear(hidden, bias)(inputs))
    by_relu = FeedForward(Linear(hidden, bias), Linear(output))(inputs)
    without = Linear(output)(Linear(hidden, bias)(inputs))
    return h, by_relu[:, 0], without[:, 0]


def nearest_line(inputs: Array, wanted: Array) -> Array:
    """The best that one linear layer with a bias gives for these, by least squares."""
    given = np.column_stack([inputs, np.ones(len(inputs))])
    found: Array = given @ np.linalg.lstsq(given, wanted, rcond=None)[0]
    return found


def feed_forward() -> Step:
    """What two layers with ReLU between them can say, and what no linear layer can."""
    given = {"inputs": EITHER, "hidden": HIDDEN, "bias": BIAS, "output": OUTPUT}
    cell, (h, by_relu, without) = ran(either, **given)
    line = nearest_line(EITHER, TRUE)
    one = Linear(OUTPUT @ HIDDEN, OUTPUT @ BIAS)
    merged = float(np.abs(one(EITHER)[:, 0] - without).max())
    rows: list[list[str | float]] = [
        [f"{a:g}, {b:g}", *map(float, numbers)]
        for (a, b), *numbers in zip(EITHER, h[:, 0], h[:, 1], by_relu, line, strict=True)
    ]
    return step(
        "Feed forward: work on what was found",
        tell(
            "Attention only mixes. To *work* on the mix, each token goes through two linear layers "
            "with ReLU between them, by itself and in the same way: *feed forward*. In the middle "
            "it is wider than the token, usually four times."
        ),
        Formula(say("feed forward(x) = max(0, x·W₁ + b₁)·W₂ + b₂")),
        tell(
            "Why ReLU? A small task: say 1 where *either* of two numbers is 1, but not both. Two "
            "hidden numbers are enough: h1 = max(0, a + b), h2 = max(0, a + b − 1), and the answer "
            "is h1 − 2·h2. A single linear layer, the best there is, says {half} to everything:",
            half=line[0],
        ),
        Table(
            say("Either, but not both"),
            ["a, b", "h1", "h2", say("feed forward"), say("best linear layer")],
            rows,
        ),
        tell(
            "And two linear layers *without* ReLU are just one: their product is a matrix, too. "
            "Computed both ways they differ by {merged}, and say {without}. So without ReLU the "
            "second layer would be for nothing.",
            merged=merged,
            without=without,
        ),
        points=(69,),
        found={"hidden": h, "outputs": by_relu, "line": line, "merged": merged, "without": without},
        code=cell,
    )  # fmt: skip
