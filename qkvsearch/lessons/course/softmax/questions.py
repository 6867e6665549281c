"""Questions about scores, softmax, temperature and the division by √d."""

import numpy as np

from qkvsearch.attention import softmax
from qkvsearch.attention.weights import mix
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Step
from qkvsearch.lessons.quizzes import Quiz, quiz


def quizzes(scores: Step, by_hand: Step, temperatures: Step, variances: Step) -> list[Quiz]:
    return [_score(scores), _weights(), _colder(temperatures), _output(by_hand), _root(variances)]


def _score(scores: Step) -> Quiz:
    query, key = scores.found["queries"][2], scores.found["keys"][1]
    score = scores.found["scores"][2, 1]
    return quiz(
        "q³ = {query} and k² = {key}. What is α₃,₂?",
        float(score),
        "Number by number: {products}, together {score}.",
        query=query,
        key=key,
        products=query * key,
        score=score,
    )


def _weights() -> Quiz:
    scores = np.zeros(4)
    weights = softmax(scores)
    return quiz(
        "Four scores are all {score}. What is the weight of each?",
        float(weights[0]),
        "exp({score}) is {one}, and the row's sum {total}: each has {weight}.",
        score=scores[0],
        one=np.exp(scores[0]),
        total=np.exp(scores).sum(),
        weight=weights[0],
    )


def _colder(temperatures: Step) -> Quiz:
    weights, chosen = temperatures.found["weights"], temperatures.found["temperatures"]
    grows = int((weights[-1] - weights[0]).argmax())
    return Quiz(
        "",
        say(
            "At T = {warm} the weights are {weights}. T is lowered to {cold}. Which token's weight "
            "grows? (1, 2 or 3)",
            warm=chosen[0],
            weights=weights[0],
            cold=chosen[-1],
        ),
        float(grows + 1),
        say("A lower T favours the largest score: the weights become {cold}.", cold=weights[-1]),
    )


def _output(by_hand: Step) -> Quiz:
    weights, values = by_hand.found["weights"][0].round(2), by_hand.found["values"]
    output = mix(weights[None], values)[0]
    return quiz(
        "The weights are {weights}, the values {v1}, {v2} and {v3}. What is the output? (two "
        "numbers)",
        output.tolist(),
        "Each value times its weight: {parts}, added up {output}.",
        tolerance=0.02,
        weights=weights,
        v1=values[0],
        v2=values[1],
        v3=values[2],
        parts=weights[:, None] * values,
        output=output,
    )


def _root(variances: Step) -> Quiz:
    d = variances.found["widths"][2]
    return quiz(
        "Queries and keys have {d} numbers. By what does a transformer divide scores?",
        float(np.sqrt(d)),
        "By the square root of {d}, which is {root}: in the lesson's draws it takes the "
        "variance from {variance} to {scaled}.",
        d=d,
        root=np.sqrt(d),
        variance=variances.found["variances"][2],
        scaled=variances.found["scaled"][2],
    )
