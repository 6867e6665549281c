"""Of lesson 5: how scores spread with the width of keys, and what that does to softmax."""

from __future__ import annotations

import numpy as np

from qkvsearch.attention.gradients import softmax_vjp
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Formula, Step, Table, tell

WIDTHS = (4, 16, 64, 256)
SAMPLES, N_KEYS = 4_000, 8


def variances(widths: tuple[int, ...] = WIDTHS, n: int = SAMPLES) -> Step:
    """Of dot products of random rows, by how wide the rows are; and of the same over √d."""
    rng = np.random.default_rng(0)
    found = []
    for d in widths:
        queries, keys = rng.normal(size=(2, n, d))
        found.append((queries * keys).sum(axis=1).var())
    plain = np.array(found)
    scaled = plain / np.array(widths)
    return Step(
        say("Wide rows make large scores"),
        [
            tell(
                "A real model has rows of d numbers, d in the hundreds. A dot product adds up d "
                "products, so it spreads more and more. Spread is measured by the *variance* "
                "(Var), the mean squared distance from the mean. Here are {n} pairs of random "
                "queries and keys for each d, whose numbers have variance 1.",
                n=n,
            ),
            Table(
                say("Variance of the scores"),
                ["d", say("of q·k"), say("of q·k / √d")],
                [[d, float(a), float(b)] for d, a, b in zip(widths, plain, scaled, strict=True)],
            ),
            Formula("Var(q·k) ≈ d      Var(q·k / √d) ≈ 1"),
            tell(
                "The variance of a score is about d. Divided by √d, the square root of the width, "
                "a score has the variance 1 whatever the width. That is why a transformer divides."
            ),
        ],
        points=(50,),
        found={"widths": list(widths), "variances": plain, "scaled": scaled},
        code=f"""rng = np.random.default_rng(0)
found = []
for d in {list(widths)}:
    queries, keys = rng.normal(size=(2, {n}, d))
    found.append((queries * keys).sum(axis=1).var())
found""",
        result="variances",
    )


def slopes(widths: tuple[int, ...] = WIDTHS, n: int = 500) -> Step:
    """How much the largest weight answers to its score, without and with the division."""
    rng = np.random.default_rng(0)
    found = []
    for d in widths:
        queries, keys = rng.normal(size=(n, 1, d)), rng.normal(size=(n, N_KEYS, d))
        plain = (queries @ keys.swapaxes(1, 2))[:, 0]
        found.append([*largest(plain), *largest(plain / np.sqrt(d))])
    table = np.array(found)
    return Step(
        say("Large scores stop learning"),
        [
            tell(
                "Why not leave large scores? Because one weight is then nearly 1, the others "
                "nearly 0, and a small change of a score changes nothing. How much a weight "
                "answers to its score is the *gradient* of softmax, and learning goes by gradients."
            ),
            Table(
                say("The largest of {n} weights, and its gradient", n=N_KEYS),
                [
                    "d",
                    say("weight"),
                    say("gradient"),
                    say("weight, over √d"),
                    say("gradient, over √d"),
                ],
                [[d, *map(float, row)] for d, row in zip(widths, table, strict=True)],
            ),
            tell(
                "Without the division the gradient shrinks as d grows, from {first} to {last}. "
                "With it, the last one is {scaled}.",
                first=table[0, 1],
                last=table[-1, 1],
                scaled=table[-1, 3],
            ),
        ],
        points=(50,),
        found={
            "widths": list(widths),
            "table": table,
            "gradients": table[:, 1],
            "scaled": table[:, 3],
        },
        code=f"{LARGEST}\nwidths, n, n_keys = {list(widths)}, {n}, {N_KEYS}\n{SLOPES}",
        result="table",
    )


# In a notebook, what `largest` and `slopes` compute.
LARGEST = """from qkvsearch.attention.gradients import softmax_vjp
def largest(scores):
    weights, pull = softmax_vjp(scores)
    top = np.eye(scores.shape[1])[weights.argmax(axis=1)]
    return (weights * top).sum(axis=1).mean(), (pull(top) * top).sum(axis=1).mean()
"""
SLOPES = """rng = np.random.default_rng(0)
found = []
for d in widths:
    queries, keys = rng.normal(size=(n, 1, d)), rng.normal(size=(n, n_keys, d))
    scores = (queries @ keys.swapaxes(1, 2))[:, 0]
    found.append([*largest(scores), *largest(scores / np.sqrt(d))])
found"""


def largest(scores: np.ndarray) -> tuple[float, float]:
    """Of rows of scores (n, S), on average: the largest weight, and its gradient by its score."""
    weights, pull = softmax_vjp(scores)
    top = np.eye(scores.shape[1])[weights.argmax(axis=1)]
    return (
        float((weights * top).sum(axis=1).mean()),
        float((pull(top) * top).sum(axis=1).mean()),
    )
