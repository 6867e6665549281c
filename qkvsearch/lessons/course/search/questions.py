"""Questions about scores, weights and temperature of a search."""

import numpy as np

from qkvsearch.attention import softmax
from qkvsearch.lessons.parts import Step
from qkvsearch.lessons.quizzes import Quiz, quiz


def quizzes(scores: Step, mixed: Step, hard: Step) -> list[Quiz]:
    return [_score(), _mix(mixed), _winner(scores, hard), _sum(mixed)]


def _score() -> Quiz:
    query, key = np.array([1, 0, 2]), np.array([3, 5, 1])
    return quiz(
        "Over three words, a query is {query} and a key {key}. What is the score?",
        float(query @ key),
        "Number by number: {products}, together {score}. A word that the query lacks adds nothing.",
        query=query,
        key=key,
        products=query * key,
        score=query @ key,
    )


def _mix(mixed: Step) -> Quiz:
    weights, values = np.array([0.75, 0.25]), mixed.found["values"][[0, 2]]
    output = weights @ values
    return quiz(
        "Two videos have the weights {weights} and the values {first} and {second}. What is "
        "the output? (give all its numbers)",
        output.tolist(),
        "{w1} · {first} + {w2} · {second} = {output}.",
        weights=weights,
        first=values[0],
        second=values[1],
        w1=weights[0],
        w2=weights[1],
        output=output,
    )


def _winner(scores: Step, hard: Step) -> Quiz:
    row = scores.found["scores"][0]
    best = "ABCDE"[int(hard.found["weights"][-1].argmax())]
    return quiz(
        "The scores of A to E are {row}. Which video is left as T goes to 0?",
        float("ABCDE".index(best)),
        "The largest score, {largest}, takes all: at T = {low} its weight is {weight}.",
        choices="ABCDE",
        row=row,
        largest=row.max(),
        low=hard.found["temperatures"][-1],
        weight=hard.found["weights"][-1].max(),
    )


def _sum(mixed: Step) -> Quiz:
    weights = mixed.found["weights"][0]
    doubled = softmax(2 * mixed.found["scores"][0])
    return quiz(
        "All scores are doubled. What do the weights add up to now?",
        float(doubled.sum()),
        "The weights change from {weights} to {doubled}, but they always add up to {total}.",
        weights=weights,
        doubled=doubled,
        total=doubled.sum(),
    )
