"""Lesson 7, what a well-known text makes of steps 5 to 8 by rounded weights (T2)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from qkvsearch.attention.trace import Trace
from qkvsearch.attention.weights import mix
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Matrix, Step, Text, tell
from qkvsearch.lessons.workbench import Workbench


def with_the_text(after: Sequence[Step], steps: Trace) -> list[Step]:
    """Steps 5 to 8, each with the text's numbers after its own, before what is there to try.

    They are `found["easy"]`, the weights `found["rounded"]`.
    """
    weights, values = steps["weights"].array, steps["values"].array
    row = rounded(weights[0])
    products, mixed = row[:, None] * values, mix(np.round(weights, 1), values).round(1)
    softmax, weighted, output, outputs = after
    return [
        beside(softmax, [of_weights(weights[0], row)], rounded=row),
        beside(weighted, of_weighted(products, steps), easy=products),
        beside(output, of_first_output(products.sum(axis=0), steps), easy=products.sum(axis=0)),
        beside(outputs, of_outputs(mixed, steps), easy=mixed),
    ]


def beside(step: Step, parts: Sequence[Text | Matrix], **found: np.ndarray) -> Step:
    own = [part for part in step.parts if not isinstance(part, Workbench)]
    benches = [part for part in step.parts if isinstance(part, Workbench)]
    return replace(step, parts=[*own, *parts, *benches], found={**step.found, **found})


def rounded(weights: np.ndarray) -> np.ndarray:
    """As the text rounds a row: what is left of 1 to the largest, in tenths, evenly.

    >>> rounded(np.array([0.06, 0.47, 0.47]))
    array([0. , 0.5, 0.5])
    """
    largest = weights >= weights.max() - 1e-9
    return np.where(largest, np.round(1 / largest.sum(), 1), 0.0)


def of_weights(exact: np.ndarray, theirs: np.ndarray) -> Text:
    return tell(
        "A well-known text, to calculate more easily, keeps only the largest weights: {theirs} for "
        "the first row. Rounded to one decimal it would be {ours}, which adds up to {total}: "
        "rounded weights need not add up to 1.",
        theirs=theirs,
        ours=np.round(exact, 1),
        total=np.round(exact, 1).sum(),
    )


def of_weighted(easy: np.ndarray, steps: Trace) -> list[Text | Matrix]:
    rows, columns = steps["values"].rows, steps["values"].columns
    return [
        tell("With weights rounded as in that text, to follow it in the head:"),
        Matrix(say("weighted values, rounded"), easy, rows, columns, "weighted"),
    ]


def of_first_output(easy: np.ndarray, steps: Trace) -> list[Text | Matrix]:
    rows, columns = steps["outputs"].rows[:1], steps["outputs"].columns
    name = say("output 1, by the text's weights")
    return [Matrix(name, easy[None], rows, columns, "output")]


def of_outputs(easy: np.ndarray, steps: Trace) -> list[Text | Matrix]:
    """Those after the first, whose weights the text rounds to one decimal."""
    rows, columns = steps["outputs"].rows[1:], steps["outputs"].columns
    return [
        tell("For the other rows the text rounds weights and outputs to one decimal, and gets:"),
        Matrix(say("outputs by the text's weights"), easy[1:], rows, columns, "output"),
    ]
