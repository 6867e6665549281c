"""Heads of attention as lines between words: what each word attends to, and how much."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch.lessons.drawings.drawing import Drawing, NumberTable
from qkvsearch.lessons.drawings.svg import curve, number, picture, text
from qkvsearch.lessons.markup import Html, element
from qkvsearch.lessons.messages import say

# All lengths are in units of the picture, which is as wide as this.
WIDE = 360
# The height of a row, and where the first is.
ROW = 25
TOP = 40
# Where words end at the left and begin at the right.
LEFT = 108
RIGHT = 252
# A line's width where its weight is 1.
LINE_WIDTH = 9
# Weights below are not drawn.
MIN_WEIGHT = 0.01
# Words that are named as those attended to most.
NAMED = 3


@dataclass(frozen=True, eq=False)
class AttendedText:
    """A text as heads read it. words (n); weights (n_layers, n_heads, n, n), each row adds up to 1.

    codes: uint8 of the same shape, where the weights are these over `LEVELS`; else None.
    """

    words: Sequence[str]
    weights: np.ndarray
    codes: np.ndarray | None = None


# A weight in a byte is a whole number of these.
LEVELS = 255


@dataclass(frozen=True, eq=False)
class Heads(Drawing):
    """Lines between the words of a text, one head at a time."""

    # One word, unique in its lesson.
    name: str
    caption: str
    # The texts to choose from, all by the same heads.
    readings: Sequence[AttendedText]
    # Those that are shown first.
    layer: int = 0
    head: int = 0
    # None stands for all of them, in a picture that does not answer.
    word: int | None = 0
    # What the heads are called, where they are no heads of a model; else they are counted.
    names: Sequence[str] = ()

    @property
    def first(self) -> AttendedText:
        return self.readings[0]

    @property
    def weights(self) -> np.ndarray:
        """(n, n) of the head that is shown first: row = the word that attends."""
        return self.first.weights[self.layer, self.head]

    @property
    def told(self) -> str:
        words = self.first.words
        if self.word is None:
            return self.place or self.caption
        row = self.weights[self.word]
        best = np.argsort(-row, kind="stable")[:NAMED]
        pairs = say("; ").join(say("{word} {weight}", word=words[j], weight=row[j]) for j in best)
        told = say("What “{word}” attends to most: {found}.", word=words[self.word], found=pairs)
        return f"{self.place}: {told}" if self.place else told

    @property
    def place(self) -> str:
        """What the head is called; nothing where there is only one."""
        if self.names:
            return str(self.names[self.head])
        n_layers, n_heads = self.first.weights.shape[:2]
        if n_layers * n_heads == 1:
            return ""
        return say("layer {layer}, head {head}", layer=str(self.layer), head=str(self.head))

    @property
    def tables(self) -> list[NumberTable]:
        """The weights of the head that is shown first."""
        words = [str(word) for word in self.first.words]
        rows: list[list[str | float]] = [
            [word, *map(float, row)] for word, row in zip(words, self.weights, strict=True)
        ]
        return [([say("word"), *words], rows)]

    def numbers(self) -> dict[str, Any]:
        readings: list[dict[str, Any]] = []
        for reading in self.readings:
            numbers: dict[str, Any] = {"words": list(reading.words)}
            if reading.codes is None:
                numbers["weights"] = reading.weights
            else:
                numbers["codes"] = _coded(reading.codes)
            readings.append(numbers)
        n_layers, n_heads = self.first.weights.shape[:2]
        return {
            "readings": readings,
            "levels": LEVELS,
            "n_layers": n_layers,
            "n_heads": n_heads,
            "layer": self.layer,
            "head": self.head,
            "word": self.word,
            "names": list(self.names),
        }

    def pictures(self, place: str) -> list[Html]:
        """Return the lines of the head that is shown first."""
        words = [str(word) for word in self.first.words]
        high = TOP + ROW * len(words)
        inner = [
            text(LEFT, 14, say("attends"), "end", class_="side"),
            text(RIGHT, 14, say("attended to"), class_="side"),
            element("g", *_lines(self.weights, self.word), class_="lines", fill="none"),
            element("g", *_words(words, self.word), class_="words"),
        ]
        title = f"{self.caption} {self.place}".strip()
        return [picture(WIDE, high, f"{place}-lines", title, self.told, *inner)]


def _coded(codes: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(codes).tobytes()).decode("ascii")


# --- the SVG ---


def _lines(weights: np.ndarray, word: int | None) -> Iterator[Html]:
    for i, j in zip(*np.nonzero(weights >= MIN_WEIGHT), strict=True):
        weight = float(weights[i, j])
        yield curve(
            LEFT + 6,
            _height(i),
            RIGHT - 6,
            _height(j),
            stroke_width=number(0.5 + LINE_WIDTH * weight),
            stroke_opacity=f"{0.15 + 0.85 * min(weight, 1):.2f}",
            class_=None if word in (None, i) else "faint",
        )


def _words(words: list[str], word: int | None) -> Iterator[Html]:
    for i, label in enumerate(words):
        chosen = "word lit" if i == word else "word"
        yield text(LEFT, _height(i) + 4, label, "end", class_=chosen, data_asks=str(i))
        yield text(RIGHT, _height(i) + 4, label, class_="word", data_asked=str(i))


def _height(place: int) -> float:
    return TOP + ROW * place - 4
