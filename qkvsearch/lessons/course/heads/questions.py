"""Questions about heads: what one cannot do, their shapes, what they cost, what one is for."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from qkvsearch.lessons.messages import say
from qkvsearch.lessons.quizzes import Quiz, quiz

Found = Mapping[str, Any]


def quizzes(one: Found, two: Found, cost: Found, taken_away: Found) -> list[Quiz]:
    """What the lesson's steps found: one row of weights, two heads, their cost, one taken away."""
    return [_mean(), _rows(two), _width(cost), _lost(taken_away), _why(one)]


def _mean() -> Quiz:
    values = np.array([[2.0, 0.0], [0.0, 6.0]])
    output = values.mean(axis=0)
    return quiz(
        "One head gives the values {first} and {second} a weight of {weight} each. What is its "
        "output? (two numbers)",
        output.tolist(),
        "{weight} times each, added up: {output}. Two heads, one with all its weight on each, "
        "could give {both}.",
        first=values[0],
        second=values[1],
        weight=0.5,
        output=output,
        both=np.diag(values),
    )


def _rows(two: Found) -> Quiz:
    n_heads, n_tokens = 8, 10
    return quiz(
        "A layer has {heads} heads and reads {tokens} tokens. How many rows of weights does it "
        "compute?",
        float(n_heads * n_tokens),
        "A row for each token in each head: {heads} × {tokens} = {n}. In the lesson, two heads "
        "and {few} tokens made {rows}.",
        tolerance=0,
        heads=n_heads,
        tokens=n_tokens,
        n=n_heads * n_tokens,
        few=len(two["first"]),
        rows=len(two["first"]) + len(two["second"]),
    )


def _width(cost: Found) -> Quiz:
    d = 64
    n_heads, width, learned = (int(number) for number in cost["counts"][2, :3])
    return quiz(
        "Vectors have {d} numbers. With {heads} heads, how wide is each head?",
        float(d / n_heads),
        "{d} ÷ {heads} = {width}. In the lesson's table all of them have {learned} numbers to "
        "learn, however many heads share them.",
        tolerance=0,
        d=d,
        heads=n_heads,
        width=width,
        learned=learned,
    )


def _lost(taken_away: Found) -> Quiz:
    whole, lost = taken_away["whole"], taken_away["lost"][0]
    worse = int((lost - whole).argmax())
    return quiz(
        "In the learned layer, head 1 is taken away. Which number gets worse?",
        float(worse),
        "The errors were {whole}; without head 1 they are {lost}.",
        choices=(say("the one from before"), say("the one from after"), say("both alike")),
        whole=whole,
        lost=lost,
    )


def _why(one: Found) -> Quiz:
    return quiz(
        "Why can one head not take its first number from one token and its second from another?",
        1.0,
        "A weight multiplies a whole value. The nearest that one row of weights came was {output}, "
        "{apart} from what was wanted.",
        choices=(
            say("it has too few numbers to learn"),
            say("all columns of its output have the same weights"),
            say("softmax makes one weight nearly 1"),
        ),
        output=one["output"],
        apart=one["apart"],
    )
