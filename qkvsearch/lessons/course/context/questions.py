"""Questions about what attention can tell apart, and what it costs."""

from collections.abc import Mapping, Sequence

import numpy as np

from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Step
from qkvsearch.lessons.quizzes import Quiz, quiz


def quizzes(apart: Mapping[str, float], layers: Sequence[Step]) -> list[Quiz]:
    """apart: how far the word's two outputs are from each other, by each way."""
    found = {point: step.found for step in layers for point in step.points}
    return [
        quiz(
            "A word stands twice in a sentence. Attention has no positions and no mask. By "
            "how much do the word's two outputs differ?",
            apart["attention"],
            "Equal vectors ask with equal queries and see the same keys. In the lesson's "
            "sentence the difference was {none}; with a look-ahead mask it was {ahead}.",
            none=apart["attention"],
            ahead=apart["look-ahead"],
        ),
        quiz(
            "Which of these gives a word that stands twice two different outputs?",
            2.0,
            "A layer for each word sees one word only, and more weights are no more context: "
            "difference {connected}. A look-ahead mask gives the two different words to see: "
            "difference {ahead}.",
            choices=(
                say("a larger layer for each word"),
                say("attention with larger values"),
                say("a look-ahead mask"),
            ),
            connected=apart["connected"],
            ahead=apart["look-ahead"],
        ),
        _weights(found[25]["weights"]),
        _moved(found[18]["moved"]),
    ]


def _weights(rows: np.ndarray) -> Quiz:
    words, window = (int(number) for number in rows[-1, :2])
    d = int((window / words) ** 0.5)
    return quiz(
        "A fully connected layer makes a vector of {d} numbers from a window of {words} words "
        "of {d} numbers each. How many weights has it, without a bias?",
        float(window),
        "{d} · {words} inputs times {d} outputs: {window}.",
        d=d,
        words=words,
        window=window,
    )


def _moved(moved: np.ndarray) -> Quiz:
    layers = len(moved)
    return quiz(
        "Each token sees one neighbour on each side. The first of {n} tokens a, b, c, … is "
        "changed. Which tokens move after {layers} layers?",
        frozenset("abcdefgh"[i] for i in np.flatnonzero(moved[-1])),
        "Each layer carries the change one token further. How far each token moved: {moved}.",
        n=moved.shape[1],
        layers=layers,
        moved=moved[-1],
    )
