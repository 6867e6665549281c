"""Questions about positions, residual, norm, feed forward, and the block that they make."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from qkvsearch.lessons.course.block.parts import BIAS, HIDDEN, OUTPUT, normed
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.quizzes import Quiz, quiz

Found = Mapping[str, Any]


def quizzes(
    positions: Found, residual: Found, norm: Found, forward: Found, block: Found, away: Found
) -> list[Quiz]:
    """What the lesson's steps found, from the second on."""
    return [
        _normed(),
        _larger(norm),
        _forward(),
        quiz(
            "Which part of a block lets a token take something from another token?",
            1.0,
            "Residual, norm and feed forward take one token at a time. In the lesson's block, "
            "{attention} of its {all} numbers are in attention.",
            choices=(say("feed forward"), say("attention"), say("the norm"), say("the residual")),
            attention=next(iter(block["sizes"].values())),
            all=sum(block["sizes"].values()),
        ),
        quiz(
            "Positions are left out, and two tokens change places. By how much do the outputs "
            "change, each beside its own token's?",
            float(away["measures"][1, 2]),
            "Every other part takes the tokens as a set or one at a time. In the lesson they moved "
            "by {without}; with positions, by {noticed}.",
            without=away["measures"][1, 2],
            noticed=away["measures"][0, 2],
        ),
    ]


def _normed() -> Quiz:
    row = np.array([1.0, 3.0])
    result = normed(row)[1]
    return quiz(
        "A norm layer gets the row {row}. What does it give? (two numbers)",
        result.round(2).tolist(),
        "The mean is {mean}, so {centred} is left; the root of the variance is {root}: {result}.",
        tolerance=0.02,
        row=row,
        mean=row.mean(),
        centred=row - row.mean(),
        root=row.std(),
        result=result.round(2),
    )


def _larger(norm: Found) -> Quiz:
    return quiz(
        "All numbers of a row are multiplied by 10. What does its norm do?",
        0.0,
        "Mean and root of the variance are ten times as large, too. In the lesson the norm was "
        "{before}, and for the row ten times as large {after}.",
        choices=(
            say("it stays as it was"),
            say("it is 10 times as large"),
            say("it is a tenth of what it was"),
        ),
        before=norm["by_layer"],
        after=norm["tenfold"],
    )


def _forward() -> Quiz:
    x = np.array([2.0, 1.0])
    hidden = np.maximum(0, HIDDEN @ x + BIAS)
    return quiz(
        "h1 = max(0, a + b), h2 = max(0, a + b − 1), and the answer is h1 − 2·h2. What is the "
        "answer for a = {a}, b = {b}?",
        float((OUTPUT @ hidden)[0]),
        "h1 is {h1}, h2 is {h2}: {h1} − 2·{h2} = {answer}.",
        a=x[0],
        b=x[1],
        h1=hidden[0],
        h2=hidden[1],
        answer=(OUTPUT @ hidden)[0],
    )
