"""Arrows in a plane as SVG; the script draws them anew, in the same places, as they are dragged."""

import math
from collections.abc import Iterator

import numpy as np

from qkvsearch.lessons.drawings.arrows import Arrows
from qkvsearch.lessons.exports.page.drawings.shapes import line, number, picture, text
from qkvsearch.lessons.exports.page.markup import Html, element
from qkvsearch.lessons.messages import shown

# The plane is a square in a picture of this size.
WIDE, EDGE = 360, 14
# Of an arrow's head, and how far a label is from the tip.
HEAD, FAR = 10, 13
ARC = 30


def arrows(part: Arrows, place: str) -> list[Html]:
    """The plane with its arrows."""
    at = Plane(part.box)
    inner = [
        element("g", *_grid(part, at), class_="plane"),
        element("g", *_dots(part, at), class_="dots"),
        element("g", *_beside(part, at), class_="beside"),
        *_arrows(part, at),
    ]
    return [picture(WIDE, WIDE, f"{place}-plane", part.caption, part.told, *inner)]


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
        if kind == "grid" and 0 < k < count:
            x, y = at(value, 0)
            yield text(x, y + 13, shown(round(value, 2)), "middle", class_="side tick")
            x, y = at(0, value)
            yield text(x - 5, y + 4, shown(round(value, 2)), "end", class_="side tick")
    x, y = at(at.high, at.low)
    yield text(x - 4, y - 6, f"{part.axes[0]} →", "end", class_="side")
    x, y = at(0, at.high)
    yield text(x + 6, y + 12, f"↑ {part.axes[1]}", class_="side")


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
    """The angle of the chosen arrow, its shadow on the other, and how the computed one is made."""
    if part.coefficients is not None:
        first, second, third = part.vectors
        yield line(*at(*second), *at(*first), class_="way")
        yield line(*at(*third), *at(*part.all_vectors[-1]), class_="way")
        return
    a, b = part.vectors[part.against], part.all_vectors[part.chosen]
    shadow = a * (a @ b) / (float(a @ a) or 1.0)
    yield line(*at(*b), *at(*shadow), class_="drop")
    yield line(*at(0, 0), *at(*shadow), class_="shadow")
    yield element("path", d=arc(a, b, at), class_="arc", fill="none")


def arc(a: np.ndarray, b: np.ndarray, at: Plane) -> str:
    """From the direction of one to that of the other, the short way round."""
    start, turn = math.atan2(a[1], a[0]), angle_between(a, b)
    x, y = at(0, 0)
    ends = [(x + ARC * math.cos(t), y - ARC * math.sin(t)) for t in (start, start + turn)]
    (x1, y1), (x2, y2) = ((number(p), number(q)) for p, q in ends)
    return f"M{x1} {y1}A{ARC} {ARC} 0 0 {int(turn < 0)} {x2} {y2}"


def angle_between(a: np.ndarray, b: np.ndarray) -> float:
    """From a to b, -π to π."""
    return math.atan2(a[0] * b[1] - a[1] * b[0], a[0] * b[0] + a[1] * b[1])


def _arrows(part: Arrows, at: Plane) -> Iterator[Html]:
    both = list(zip(part.all_vectors, part.all_labels, strict=True))
    # The one that the others are beside lies on top of them.
    for place in sorted(range(len(both)), key=lambda place: place == part.against):
        role = "query" if place == part.against else "key"
        if place == len(part.vectors):
            role = "output"
        yield element(
            "g",
            *_arrow(*both[place], at, _side(part, at) if place == part.against else 0),
            class_="arrow against" if place == part.against else "arrow",
            data_role=role,
            data_arrow=str(place),
        )


def _side(part: Arrows, at: Plane) -> int:
    """On which side of the arrow that others may cover there is more room for its name."""
    (x0, y0), (x, y) = at(0, 0), at(*part.vectors[part.against])
    length = math.hypot(x - x0, y - y0) or 1.0
    dx, dy = (x - x0) / length, (y - y0) / length
    others = [at(*v) for place, v in enumerate(part.all_vectors) if place != part.against]
    # Names of others are beyond their tips.
    room = {
        side: min(
            math.hypot(x - side * FAR * dy - (a + FAR * dx), y + side * FAR * dx - (b + FAR * dy))
            for a, b in others
        )
        for side in (1, -1)
    }
    return 1 if room[1] >= room[-1] else -1


def _arrow(vector: np.ndarray, label: str, at: Plane, beside: int) -> Iterator[Html]:
    """A line, its head, and its name: 0 is beyond the tip, 1 and -1 the two sides of it."""
    (x0, y0), (x, y) = at(0, 0), at(*vector)
    length = math.hypot(x - x0, y - y0) or 1.0
    dx, dy = (x - x0) / length, (y - y0) / length
    back, side = (x - HEAD * dx, y - HEAD * dy), (0.4 * HEAD * dy, -0.4 * HEAD * dx)
    corners = [(x, y), *((back[0] + s * side[0], back[1] + s * side[1]) for s in (1, -1))]
    yield line(x0, y0, *back)
    yield element("polygon", points=" ".join(f"{number(p)},{number(q)}" for p, q in corners))
    along = (-beside * FAR * dy, beside * FAR * dx) if beside else (FAR * dx, FAR * dy)
    yield text(x + along[0], y + along[1] + 4, label, "middle")
