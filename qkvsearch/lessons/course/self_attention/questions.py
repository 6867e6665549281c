"""Questions about the eight steps of self-attention."""

import numpy as np

from qkvsearch.attention.trace import Trace
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.quizzes import Quiz, quiz


def quizzes(steps: Trace, is_masked: bool) -> list[Quiz]:
    # The reader's own inputs may be fewer than three.
    n = len(steps["scores"].array)
    i, j = min(1, n - 1), min(2, n - 1)
    return [a_score(steps, i, j), most_of(steps, i), equal_scores(steps, is_masked)]


def a_score(steps: Trace, i: int, j: int) -> Quiz:
    query, key = steps["queries"].array[i], steps["keys"].array[j]
    score = float(steps["scores"].array[i, j])
    return quiz(
        "The query of {a} is {query}, the key of {b} is {key}. What is the score?",
        score,
        "Number by number, then added: {products}, together {score}.",
        a=steps["queries"].rows[i],
        b=steps["keys"].rows[j],
        query=query,
        key=key,
        products=query * key,
        score=score,
    )


def most_of(steps: Trace, i: int) -> Quiz:
    weights, names = steps["weights"].array[i], steps["weights"].columns
    most = int(weights.argmax())
    return quiz(
        "Which input does the output of {a} take most from?",
        float(most),
        "Row {a} of the weights is {row}: the largest is the one for {most}.",
        choices=tuple(names),
        a=names[i],
        row=weights,
        most=names[most],
    )


def equal_scores(steps: Trace, is_masked: bool) -> Quiz:
    asked = say("Two scores of a row are equal. How do their weights compare?")
    if is_masked:
        asked = say(
            "Two scores of a row are equal after the mask was added. How do their weights compare?"
        )
    return Quiz(
        "",
        asked,
        1.0,
        f"{say('Softmax depends on nothing but the score: equal scores, equal weights.')} "
        f"{example(steps['masked'].array, steps['weights'].array)}".rstrip(),
        choices=(
            say("the first is larger"),
            say("they are equal"),
            say("it depends on the values"),
        ),
    )


def example(masked: np.ndarray, weights: np.ndarray) -> str:
    """The first row in which scores are equal; nothing where there is none."""
    for i, (scores, row) in enumerate(zip(masked, weights, strict=True), start=1):
        if len(np.unique(scores)) < len(scores) and np.isfinite(row).all():
            return say("In row {i}, {scores} became {weights}.", i=i, scores=scores, weights=row)
    return ""
