"""Lesson 7, what the text that they come from makes of steps 5 to 8 by rounded weights (T2)."""

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
    row, ours = rounded(weights[0]), np.round(weights[0], 1)
    products, mixed = row[:, None] * values, mix(np.round(weights, 1), values).round(1)
    total, rows, columns = products.sum(axis=0), steps["outputs"].rows, steps["outputs"].columns
    names = say("weighted values, rounded"), say("output 1, by the text's weights")
    softmax, weighted, output, outputs = after
    of_weights = tell(
        "The text that these eight steps and their numbers come from (Raimi Karim, “Illustrated: "
        "Self-Attention”, 2019) keeps only the largest weights, to calculate more easily: {theirs} "
        "for the first row. Rounded to one decimal it would be {ours}, which adds up to {total}: "
        "rounded weights need not add up to 1.",
        theirs=row,
        ours=ours,
        total=ours.sum(),
    )
    return [
        beside(softmax, of_weights, rounded=row),
        beside(
            weighted,
            tell("With weights rounded as in that text, to follow it in the head:"),
            Matrix(names[0], products, steps["values"].rows, columns, "weighted"),
            easy=products,
        ),
        beside(output, Matrix(names[1], total[None], rows[:1], columns, "output"), easy=total),
        beside(
            outputs,
            tell(
                "For the other rows the text rounds weights and outputs to one decimal, and gets:"
            ),
            Matrix(say("outputs by the text's weights"), mixed[1:], rows[1:], columns, "output"),
            easy=mixed,
        ),
    ]


def beside(step: Step, *parts: Text | Matrix, **found: np.ndarray) -> Step:
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
