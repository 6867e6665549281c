"""Questions about attention's matrices: without them, their shapes, in columns, and learned."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from qkvsearch.lessons.messages import say
from qkvsearch.lessons.quizzes import Quiz, quiz

Found = Mapping[str, Any]


def quizzes(no_weights: Found, still_x: Found, columns: Found, learned: Found) -> list[Quiz]:
    """What the lesson's first four steps found."""
    return [
        _shape(still_x["shapes"]),
        quiz(
            "In the lesson's A, written in columns, which row and which column hold the score of "
            "the third query for the first key?",
            (1.0, 3.0),
            "A column of A is a query, a row a key: row 1, column 3, where {score} stands. In row "
            "3, column 1 is {other}, the first query's score for the third key.",
            score=columns["A"][0, 2],
            other=columns["A"][2, 0],
        ),
        _before(learned["weights"]),
        quiz(
            "What do W_Q, W_K and W_V have to be, so that they change nothing?",
            1.0,
            "A product with the identity matrix leaves every vector as it is. In the lesson "
            "the outputs with and without it differed by {apart}.",
            choices=(say("matrices of zeros"), say("identity matrices"), say("matrices of ones")),
            apart=no_weights["apart"],
        ),
    ]


def _shape(shapes: Mapping[str, tuple[int, int]]) -> Quiz:
    x, w = shapes["X"], shapes["W_V"]
    return quiz(
        "X has {n} rows and {d} columns, W_V {d} rows and {d_v} columns. How many rows and "
        "columns do the outputs have?",
        tuple(float(size) for size in shapes["outputs"]),
        "A row for each token, {n}, and as many columns as a value, {d_v}.",
        n=x[0],
        d=x[1],
        d_v=w[1],
    )


def _before(weights: np.ndarray) -> Quiz:
    row = weights[2]
    return quiz(
        "After learning, which token does the third attend to most? (1, 2, 3 or 4)",
        float(row.argmax() + 1),
        "It was to give back the token before. Its learned weights are {row}.",
        row=row,
    )
