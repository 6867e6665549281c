"""Rows of two numbers as arrows in a plane: their lengths, angles and dot products.

The page's script draws them anew, in the same places, as they are dragged.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qkvsearch.lessons.drawings.drawing import Drawing, NumberTable
from qkvsearch.lessons.drawings.svg import line, number, picture, text
from qkvsearch.lessons.markup import Html, element
from qkvsearch.lessons.messages import say, shown

# The plane is a square in a picture of this size, with an edge around it.
WIDE = 360
EDGE = 14
# The length of an arrow's head, and how far a label is from the tip.
HEAD = 10
FAR = 13
# The radius of the arc that shows an angle.
ARC = 30
# Distances of grid lines to choose from, and how many of them a side has at most.
SPACINGS = (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
MAX_LINES = 5


@dataclass(frozen=True, eq=False)
class Arrows(Drawing):
    """Arrows that can be dragged, each beside one of them."""

    # One word, unique in its lesson.
    name: str
    caption: str
    # The arrows (n, 2), and their names (n).
    vectors: np.ndarray
    labels: Sequence[str]
    # What the two numbers are.
    axes: tuple[str, str]
    # The arrow that the others are multiplied with.
    against: int = 0
    # The arrow whose angle is drawn.
    chosen: int = 1
    # Of three arrows. One more is drawn, Σ coefficient·vector, and no angle.
    coefficients: Sequence[float] | None = None
    # The name of that arrow.
    total: str = ""
    # Places that stay where they are (m, 2), one of them nearest to that arrow, and their names.
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
        if self.coefficients is None:
            return list(self.labels)
        return [*self.labels, self.total]

    @property
    def products(self) -> np.ndarray:
        """The dot product of each arrow with the one they are beside."""
        return self.all_vectors @ self.vectors[self.against]

    @property
    def degrees(self) -> np.ndarray:
        """The angle of each to that one, 0 to 180; NaN where one has no length."""
        x, y = self.vectors[self.against]
        vectors = self.all_vectors
        cross = np.abs(vectors[:, 0] * y - vectors[:, 1] * x)
        angles = np.degrees(np.arctan2(cross, self.products))
        return np.where(self.lengths * np.hypot(x, y) > 0, angles, np.nan)

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
        spacing = next((one for one in SPACINGS if most / one <= MAX_LINES), most)
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
        measures = np.column_stack([self.all_vectors, self.lengths, self.degrees, self.products])
        rows: list[list[str | float]] = [
            [label, *map(float, row)] for label, row in zip(self.all_labels, measures, strict=True)
        ]
        return [(headings, rows)]

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

    def pictures(self, place: str) -> list[Html]:
        """Return the plane with its arrows."""
        at = Plane(self.box)
        inner = [
            element("g", *_grid(self, at), class_="plane"),
            element("g", *_dots(self, at), class_="dots"),
            element("g", *_beside(self, at), class_="beside"),
            *_arrows(self, at),
        ]
        return [picture(WIDE, WIDE, f"{place}-plane", self.caption, self.told, *inner)]


# --- the SVG ---


class Plane:
    """Where a vector lies on paper."""

    def __init__(self, box: tuple[float, float, float]) -> None:
        self.low, self.high, self.spacing = box
        self.unit = (WIDE - 2 * EDGE) / (self.high - self.low)

    def __call__(self, x: float, y: float) -> tuple[float, float]:
        return EDGE + (x - self.low) * self.unit, WIDE - EDGE - (y - self.low) * self.unit


def _grid(part: Arrows, at: Plane) -> Iterator[Html]:
    count = round((at.high - at.low) / at.spacing)
    for k in range(count + 1):
        value = at.low + k * at.spacing
        kind = "axis" if abs(value) < at.spacing / 2 else "grid"
        yield line(*at(value, at.low), *at(value, at.high), class_=kind)
        yield line(*at(at.low, value), *at(at.high, value), class_=kind)
    for value, across, along in _ticks(at):
        yield text(*across, shown(value), "middle", class_="side tick")
        yield text(*along, shown(value), "end", class_="side tick")
    x, y = at(at.high, at.low)
    yield text(x - 4, y - 6, f"{part.axes[0]} →", "end", class_="side")
    x, y = at(0, at.high)
    yield text(x + 6, y + 12, f"↑ {part.axes[1]}", class_="side")


def _ticks(at: Plane) -> Iterator[tuple[float, tuple[float, float], tuple[float, float]]]:
    """Yield the numbers on the axes, each with where it stands on the first and on the second."""
    count = round((at.high - at.low) / at.spacing)
    for k in range(1, count):
        value = at.low + k * at.spacing
        if abs(value) < at.spacing / 2:
            continue
        (x1, y1), (x2, y2) = at(value, 0), at(0, value)
        yield round(value, 2), (x1, y1 + 13), (x2 - 5, y2 + 4)


def _dots(part: Arrows, at: Plane) -> Iterator[Html]:
    for place, (vector, label) in enumerate(zip(part.dots, part.dot_labels, strict=True)):
        x, y = at(*vector)
        inner = [
            element("circle", cx=number(x), cy=number(y), r="4"),
            text(x + (7 if place % 2 else -7), y + 4, label, "start" if place % 2 else "end"),
        ]
        kind = "dot nearest" if place == part.nearest else "dot"
        yield element("g", *inner, class_=kind, data_role="input", data_dot=str(place))


def _beside(part: Arrows, at: Plane) -> Iterator[Html]:
    """Yield the angle of the chosen arrow and its projection, or how the computed one is made."""
    if part.coefficients is not None:
        first, second, third = part.vectors
        yield line(*at(*second), *at(*first), class_="way")
        yield line(*at(*third), *at(*part.all_vectors[-1]), class_="way")
        return
    a = part.vectors[part.against]
    b = part.all_vectors[part.chosen]
    shadow = a * (a @ b) / (float(a @ a) or 1.0)
    yield line(*at(*b), *at(*shadow), class_="drop")
    yield line(*at(0, 0), *at(*shadow), class_="shadow")
    yield element("path", d=arc(a, b, at), class_="arc", fill="none")


def arc(a: np.ndarray, b: np.ndarray, at: Plane) -> str:
    """Return the path of an arc from one direction to the other, the short way round."""
    start = math.atan2(a[1], a[0])
    turn = angle_between(a, b)
    x, y = at(0, 0)
    points = []
    for angle in (start, start + turn):
        point_x = number(x + ARC * math.cos(angle))
        point_y = number(y - ARC * math.sin(angle))
        points.append(f"{point_x} {point_y}")
    is_clockwise = int(turn < 0)
    return f"M{points[0]}A{ARC} {ARC} 0 0 {is_clockwise} {points[1]}"


def angle_between(a: np.ndarray, b: np.ndarray) -> float:
    """Return the angle from a to b, -π to π."""
    return math.atan2(a[0] * b[1] - a[1] * b[0], a[0] * b[0] + a[1] * b[1])


def _arrows(part: Arrows, at: Plane) -> Iterator[Html]:
    vectors = part.all_vectors
    labels = part.all_labels
    others = [place for place in range(len(labels)) if place != part.against]
    # The one that the others are beside lies on top of them.
    for place in [*others, part.against]:
        kind, side = "arrow", 0
        if place == part.against:
            role = "query"
            kind, side = "arrow against", _side(part, at)
        elif place == len(part.vectors):
            role = "output"
        else:
            role = "key"
        arrow = _arrow(vectors[place], labels[place], at, side)
        yield element("g", *arrow, class_=kind, data_role=role, data_arrow=str(place))


def _side(part: Arrows, at: Plane) -> int:
    """Return the side, 1 or -1, of the reference arrow with more room for its name."""
    x, y = at(*part.vectors[part.against])
    dx, dy = _direction(at, x, y)
    # Names of others are beyond their tips; the baseline of numbers is 4 below their middle.
    ticks = [(a, b - 4) for _, *places in _ticks(at) for a, b in places]
    others = [
        (tip_x + FAR * dx, tip_y + FAR * dy)
        for place, vector in enumerate(part.all_vectors)
        if place != part.against
        for tip_x, tip_y in [at(*vector)]
    ]

    def room(side: int) -> float:
        name_x = x - side * FAR * dy
        name_y = y + side * FAR * dx
        return min(math.hypot(name_x - a, name_y - b) for a, b in [*others, *ticks])

    return 1 if room(1) >= room(-1) else -1


def _direction(at: Plane, x: float, y: float) -> tuple[float, float]:
    """Return the direction on paper from the origin to a point, of length 1."""
    x0, y0 = at(0, 0)
    length = math.hypot(x - x0, y - y0) or 1.0
    return (x - x0) / length, (y - y0) / length


def _arrow(vector: np.ndarray, label: str, at: Plane, beside: int) -> Iterator[Html]:
    """Yield a line, its head, and its name: 0 is beyond the tip, 1 and -1 the two sides of it."""
    x, y = at(*vector)
    dx, dy = _direction(at, x, y)
    back_x, back_y = x - HEAD * dx, y - HEAD * dy
    # Half the width of the head, across the arrow.
    half_x, half_y = 0.4 * HEAD * dy, -0.4 * HEAD * dx
    corners = [
        (x, y),
        (back_x + half_x, back_y + half_y),
        (back_x - half_x, back_y - half_y),
    ]
    yield line(*at(0, 0), back_x, back_y)
    yield element("polygon", points=" ".join(f"{number(p)},{number(q)}" for p, q in corners))
    if beside:
        name_x, name_y = x - beside * FAR * dy, y + beside * FAR * dx
    else:
        name_x, name_y = x + FAR * dx, y + FAR * dy
    yield text(name_x, name_y + 4, label, "middle")
