"""Lesson 12: how a weight matrix is started, and what becomes of signals that go through many."""

from collections.abc import Callable

import numpy as np

from qkvsearch.attention.layers.basic import gaussian, kaiming_normal, xavier_normal
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Step, Table, step, tell

# Matrices drawn, to see how far their numbers spread.
SAMPLES = 4_000
# Of the chain of layers: how many, how wide, and how many inputs go through it.
DEPTH, WIDTH, INPUTS = 10, 64, 200
DEVIATION = 0.02


def ways(fan_out: int, fan_in: int) -> dict[str, tuple[Callable[..., np.ndarray], float]]:
    """Initializers by name, with the variance that each aims at."""
    return {
        "Gaussian": (gaussian, DEVIATION**2),
        "Xavier": (xavier_normal, 2 / (fan_in + fan_out)),
        "Kaiming": (kaiming_normal, 2 / fan_in),
    }


def spreads(shape: tuple[int, int]) -> list[tuple[str, float, float]]:
    """Initializers by name, with the variance that they aim at and that of many draws."""
    rng = np.random.default_rng(0)
    return [
        (name, wanted, float(np.var([start(shape, rng) for _ in range(SAMPLES)])))
        for name, (start, wanted) in ways(*shape).items()
    ]


def after_layers(n_layers: int, width: int) -> dict[str, float]:
    """The variance of inputs of variance 1 after so many products with matrices, each with ReLU."""
    found = {}
    for name, (start, _) in ways(width, width).items():
        rng = np.random.default_rng(0)
        x = rng.normal(size=(INPUTS, width))
        for _ in range(n_layers):
            x = np.maximum(0, x @ start((width, width), rng).T)
        found[name] = float(x.var())
    return found


def starts(shape: tuple[int, int] = (3, 4)) -> Step:
    """Three ways to draw a matrix, their variance, and what is left of a signal after ten."""
    variances = spreads(shape)
    cell, left = ran(after_layers, n_layers=DEPTH, width=WIDTH)
    rules = {
        "Gaussian": say("{deviation}², whatever the size", deviation=DEVIATION),
        "Xavier": say("2 / (rows + columns)"),
        "Kaiming": say("2 / rows"),
    }
    return step(
        "Start with small random numbers",
        tell(
            "Nobody writes W_Q, W_K and W_V by hand: they start as random numbers, and are "
            "learned. How small the numbers are is a choice. Three usual ones, for a matrix of "
            "{d_in} rows and {d_out} columns: the rule, the variance that it aims at, and the "
            "variance of many draws.",
            d_in=shape[1],
            d_out=shape[0],
        ),
        Table(
            say("Ways to start a matrix of this size"),
            [
                say("way"),
                say("rule for the variance"),
                say("variance wanted"),
                say("variance drawn"),
            ],
            [[name, rules[name], wanted, drawn] for name, wanted, drawn in variances],
        ),
        tell(
            "Why it matters: send inputs of variance 1 through {n} layers, {width} numbers wide, "
            "each a product with such a matrix, followed by ReLU (what is below 0 becomes 0). "
            "With one variance for every width next to nothing is left to learn from. Xavier's "
            "goes by the width, but not by ReLU, which cuts about half at each layer. Kaiming's "
            "goes by both: for such square matrices it is twice as large, and far more is left.",
            n=DEPTH,
            width=WIDTH,
        ),
        Table(
            say("Variance after {n} layers", n=DEPTH),
            [say("way"), say("variance")],
            [[name, value] for name, value in left.items()],
        ),
        points=(38,),
        found={"variances": {name: drawn for name, _, drawn in variances}, "left": left},
        code=cell,
    )
