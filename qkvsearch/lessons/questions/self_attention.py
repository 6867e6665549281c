"""Questions about the eight steps of self-attention."""

from __future__ import annotations

from qkvsearch.attention.trace import Trace
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.quizzes import Quiz


def quizzes(steps: Trace) -> list[Quiz]:
    scores_, weights_ = steps["scores"].array, steps["weights"].array
    query, key = steps["queries"].array[1], steps["keys"].array[2]
    most = int(weights_[1].argmax())
    return [
        Quiz(
            "self-attention.1",
            say(
                "The second query is {query}, the third key {key}. What is the score?",
                query=query,
                key=key,
            ),
            float(scores_[1, 2]),
            say(
                "Number by number, then added: {products}, together {score}.",
                products=query * key,
                score=scores_[1, 2],
            ),
        ),
        Quiz(
            "self-attention.2",
            say("Which input does the second output take most from? (1, 2 or 3)"),
            float(most + 1),
            say(
                "The second row of weights is {row}: the largest is number {most}.",
                row=weights_[1],
                most=most + 1,
            ),
        ),
        Quiz(
            "self-attention.3",
            say("Two scores of a row are equal. How do their weights compare?"),
            1.0,
            say(
                "Softmax looks at nothing but the score: equal scores, equal weights. In the first "
                "row, {scores} became {weights}.",
                scores=scores_[0],
                weights=weights_[0],
            ),
            choices=(
                say("the first is larger"),
                say("they are equal"),
                say("it depends on the values"),
            ),
        ),
    ]
