"""Questions about the eight steps of self-attention."""

from __future__ import annotations

from qkvsearch.attention.trace import Trace
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.quizzes import Quiz


def quizzes(steps: Trace) -> list[Quiz]:
    scores_, weights_ = steps["scores"].array, steps["weights"].array
    # The reader's own inputs may be fewer than three.
    n = len(scores_)
    i, j = min(1, n - 1), min(2, n - 1)
    query, key = steps["queries"].array[i], steps["keys"].array[j]
    most = int(weights_[i].argmax())
    return [
        Quiz(
            "self-attention.1",
            say(
                "Query {i} is {query}, key {j} is {key}. What is the score?",
                i=i + 1,
                j=j + 1,
                query=query,
                key=key,
            ),
            float(scores_[i, j]),
            say(
                "Number by number, then added: {products}, together {score}.",
                products=query * key,
                score=scores_[i, j],
            ),
        ),
        Quiz(
            "self-attention.2",
            say("Which input does output {i} take most from? (1 to {n})", i=i + 1, n=n),
            float(most + 1),
            say(
                "Row {i} of the weights is {row}: the largest is number {most}.",
                i=i + 1,
                row=weights_[i],
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
