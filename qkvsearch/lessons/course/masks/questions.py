"""Questions about masks: scores, weights, which cells become 0, and which tokens move."""

from collections.abc import Mapping

import numpy as np

from qkvsearch.lessons.messages import say
from qkvsearch.lessons.quizzes import Quiz, quiz
from qkvsearch.lessons.workbench import Workbench


def quizzes(bench: Workbench, moved: Mapping[str, np.ndarray]) -> list[Quiz]:
    """moved: how far the words move with the padding, hidden in "both" layers, "first", "none"."""
    return [
        a_score(bench),
        hidden_keys(bench),
        a_weight(bench),
        moved_by_padding(bench),
        both_sides(bench),
        quiz(
            "Two layers; padding is hidden in the first only. {last} changes. Which words move "
            "(name the tokens)?",
            named(bench, moved["first"]),
            "The second layer lets them attend to {last}. They move by {far}; hidden in both "
            "layers, they move by {both}.",
            last=bench.rows[-1],
            far=moved["first"],
            both=moved["both"],
        ),
    ]


def named(bench: Workbench, chosen: np.ndarray) -> frozenset[str]:
    """The tokens of the entries that are not 0."""
    return frozenset(token for token, entry in zip(bench.rows, chosen, strict=False) if entry)


def a_score(bench: Workbench) -> Quiz:
    found = bench.steps()
    query, key = found["queries"][0], found["keys"][1]
    return quiz(
        "The query of {a} is {query}, the key of {b} is {key}. What is the score, before it is "
        "divided by √d?",
        float(found["scores"][0, 1]),
        "Number by number, then added: {products}, together {score}.",
        a=bench.rows[0],
        query=query,
        b=bench.rows[1],
        key=key,
        products=query * key,
        score=found["scores"][0, 1],
    )


def hidden_keys(bench: Workbench) -> Quiz:
    weights = bench.steps(mask="look-ahead")["weights"][1]
    return quiz(
        "Under the look-ahead mask, which tokens get a weight of exactly 0 in row {token}? "
        "(name them, separated by spaces)",
        named(bench, weights == 0),
        "{token} sees itself and what comes before. Its row of weights is {weights}.",
        token=bench.rows[1],
        weights=weights,
    )


def a_weight(bench: Workbench) -> Quiz:
    found = bench.steps(mask="look-ahead")
    scaled, weights = found["scaled"][1], found["weights"][1]
    seen = np.exp(scaled[:2])
    return quiz(
        "Row {token} of the scores over √d begins with {scaled}. Under the look-ahead mask, "
        "what is its first weight, to two decimals?",
        float(weights[0]),
        "Only these two count. exp gives {powers}; the first over their sum is {weight}.",
        token=bench.rows[1],
        scaled=scaled[:2],
        powers=seen,
        weight=weights[0],
    )


def moved_by_padding(bench: Workbench) -> Quiz:
    x = bench.matrices["inputs"].astype(float)
    x[-1, 0] += 1
    change = bench.steps({"inputs": x}, mask="padding")["outputs"]
    far = np.abs(change - bench.steps(mask="padding")["outputs"]).max(axis=1)
    return quiz(
        "Padding is hidden as a key (not as a query), and 1 is added to the first number of "
        "{last}. Which outputs move? (name the tokens)",
        named(bench, far),
        "The outputs move by {far}. No token attends to {last}, but it still asks with its query.",
        last=bench.rows[-1],
        far=far,
    )


def both_sides(bench: Workbench) -> Quiz:
    n = len(bench.rows)
    return quiz(
        "Padding is hidden as key and as query by −∞. What are the weights of its own row, by "
        "the formula?",
        2.0,
        "Every score of the row is −∞, every exp of it {zero}, and their sum {zero}: 0/0. A "
        "program may put in 0 or {share}, but that is its choice.",
        choices=(say("1/{n} each", n=n), say("0 each"), say("undefined")),
        zero=np.exp(-np.inf),
        share=1 / n,
    )
