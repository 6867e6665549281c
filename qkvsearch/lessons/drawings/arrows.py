"""Rows of two numbers as arrows in a plane: their lengths, angles and dot products."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qkvsearch.lessons.drawings.drawing import Drawing, NumberTable
from qkvsearch.lessons.messages import say

# Distances of grid lines to choose from, and how many of them a side has at most.
SPACINGS = (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_LINES = 5


@dataclass(frozen=True, eq=False)
class Arrows(Drawing):
    """Arrows that can be dragged, each beside one of them.

    name: one word, unique in its lesson. vectors (n, 2), labels (n): the arrows; axes: what the two
    numbers are. against: the arrow that the others are multiplied with; chosen: the one whose angle
    is drawn. coefficients (3): of three arrows, one more is Σ coefficient·vector, called `total`,
    and no angle is drawn; None for no such arrow. dots (m, 2), dot_labels (m): places that stay
    where they are, of which one is nearest to it.
    """

    name: str
    caption: str
    vectors: np.ndarray
    labels: Sequence[str]
    axes: tuple[str, str]
    against: int = 0
    chosen: int = 1
    coefficients: Sequence[float] | None = None
    total: str = ""
    dots: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    dot_labels: Sequence[str] = ()

    @property
    def all_vectors(self) -> np.ndarray:
        """(n, 2), or with the one that is computed (n + 1, 2)."""
        if self.coefficients is None:
            return self.vectors
        return np.vstack([self.vectors, np.asarray(self.coefficients) @ self.vectors])

    @property
    def all_labels(self) -> list[str]:
        return [*self.labels, *([] if self.coefficients is None else [self.total])]

    @property
    def products(self) -> np.ndarray:
        """The dot product of each arrow with the one they are beside."""
        found: np.ndarray = self.all_vectors @ self.vectors[self.against]
        return found

    @property
    def degrees(self) -> np.ndarray:
        """The angle of each to that one, 0 to 180; NaN where one has no length."""
        (x, y), vectors = self.vectors[self.against], self.all_vectors
        cross = np.abs(vectors[:, 0] * y - vectors[:, 1] * x)
        found = np.degrees(np.arctan2(cross, self.products))
        return np.where(self.lengths * np.hypot(x, y) > 0, found, np.nan)

    @property
    def lengths(self) -> np.ndarray:
        return np.asarray(np.hypot(*self.all_vectors.T))

    @property
    def nearest(self) -> int:
        """The dot whose direction is most nearly that of the computed arrow; -1 for none."""
        if self.coefficients is None or not len(self.dots):
            return -1
        lengths = np.hypot(*self.dots.T)
        products = self.dots @ self.all_vectors[-1]
        return int(np.argmax(products / np.where(lengths > 0, lengths, 1)))

    @property
    def box(self) -> tuple[float, float, float]:
        """Both axes go from the first to the second, with a grid line at each multiple of the
        third.
        """
        places = np.concatenate([self.all_vectors.ravel(), self.dots.ravel(), [0.0]])
        most = float(np.abs(places).max()) * 1.2 or 1.0
        spacing = next((one for one in SPACINGS if most / one <= MOST_LINES), most)
        high = float(np.ceil(most / spacing - 1e-9) * spacing)
        return (-high if places.min() < 0 else -spacing, high, spacing)

    @property
    def told(self) -> str:
        if self.coefficients is not None:
            return say(
                "{total} = {vector} points most nearly to {nearest}.",
                total=self.total,
                vector=self.all_vectors[-1],
                nearest=self.dot_labels[self.nearest],
            )
        others = [i for i in range(len(self.vectors)) if i != self.against]
        each = say("; ").join(
            say(
                "{arrow} = {vector}: length {length}, angle {angle}°, product {product}",
                arrow=self.labels[i],
                vector=self.vectors[i],
                length=self.lengths[i],
                angle=self.degrees[i],
                product=self.products[i],
            )
            for i in others
        )
        return say(
            "Beside {against} = {vector}, of length {length}: {each}.",
            against=self.labels[self.against],
            vector=self.vectors[self.against],
            length=self.lengths[self.against],
            each=each,
        )

    @property
    def tables(self) -> list[NumberTable]:
        beside = self.labels[self.against]
        headings = [
            say("arrow"),
            *self.axes,
            say("length"),
            say("angle to {arrow}", arrow=beside),
            say("times {arrow}", arrow=beside),
        ]
        columns = zip(
            self.all_labels,
            self.all_vectors,
            self.lengths,
            self.degrees,
            self.products,
            strict=True,
        )
        return [
            (headings, [[label, *map(float, v), *map(float, rest)] for label, v, *rest in columns])
        ]

    def numbers(self) -> dict[str, Any]:
        return {
            "vectors": self.vectors,
            "labels": list(self.labels),
            "axes": list(self.axes),
            "against": self.against,
            "chosen": self.chosen,
            "coefficients": None if self.coefficients is None else list(self.coefficients),
            "total": self.total,
            "dots": self.dots,
            "dot_labels": list(self.dot_labels),
            "box": list(self.box),
        }
