"""Heads of attention as SVG: the words of a text twice, and a line for each weight between them."""

from collections.abc import Iterator

import numpy as np

from qkvsearch.lessons.drawings.heads import Heads
from qkvsearch.lessons.exports.page.drawings.shapes import curve, number, picture, text
from qkvsearch.lessons.exports.page.markup import Html, element
from qkvsearch.lessons.messages import say

WIDE, ROW, TOP = 360, 25, 40
# Where words end at the left and begin at the right; a line's width where its weight is 1.
LEFT, RIGHT, WIDEST = 108, 252, 9
# Weights below are not drawn.
LEAST = 0.01


def heads(part: Heads, place: str) -> list[Html]:
    """The lines of the head that is shown first."""
    words, high = [str(word) for word in part.first.words], TOP + ROW * len(part.first.words)
    inner = [
        text(LEFT, 14, say("asks"), "end", class_="side"),
        text(RIGHT, 14, say("is asked"), class_="side"),
        element("g", *_lines(part.weights, part.word), class_="lines", fill="none"),
        element("g", *_words(words, part.word), class_="words"),
    ]
    title = f"{part.caption} {part.place}".strip()
    return [picture(WIDE, high, f"{place}-lines", title, part.told, *inner)]


def _lines(weights: np.ndarray, word: int) -> Iterator[Html]:
    for i, j in zip(*np.nonzero(weights >= LEAST), strict=True):
        weight = float(weights[i, j])
        yield curve(
            LEFT + 6,
            _height(i),
            RIGHT - 6,
            _height(j),
            stroke_width=number(0.5 + WIDEST * weight),
            stroke_opacity=f"{0.15 + 0.85 * min(weight, 1):.2f}",
            class_=None if i == word else "faint",
        )


def _words(words: list[str], word: int) -> Iterator[Html]:
    for i, label in enumerate(words):
        chosen = "word lit" if i == word else "word"
        yield text(LEFT, _height(i) + 4, label, "end", class_=chosen, data_asks=str(i))
        yield text(RIGHT, _height(i) + 4, label, class_="word", data_asked=str(i))


def _height(place: int) -> float:
    return TOP + ROW * place - 4
