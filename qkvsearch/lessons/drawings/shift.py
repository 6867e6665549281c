"""How a mix differs from what its word is alone: two bars of length 1, one above the other.

Each number has a segment in both, in its colour, and a wedge leads from the one to the other: it
gets wider where the number gets larger. In the mix a segment consists of what each key brings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.lessons.drawings.own_mixes import numbers_of_segments, segments
from qkvsearch.lessons.drawings.strips import number_of
from qkvsearch.lessons.drawings.svg import kind_class, number, rect, text
from qkvsearch.lessons.markup import Html, element
from qkvsearch.lessons.messages import say

if TYPE_CHECKING:
    from qkvsearch.lessons.drawings.flow import Flow

# How high the bar of the word alone is, the wedges below it, and the bar of the mix, which what
# flows enters.
ALONE = 12
WEDGE = 18
MIX = 18
# Above and below them stand the numbers: their baselines, from the edge of their bar, and between
# them and the bar the lines that lead to those that are moved.
OVER = -8
UNDER = 18
LEADER = 6
# The room above the upper bar, and the height of all.
OVER_ALONE = 18
HIGH = OVER_ALONE + ALONE + WEDGE + MIX + UNDER + 6


@dataclass(frozen=True)
class Place:
    """Where the bars are: their left edge, their length, and the upper edge of all."""

    left: float
    long: float
    top: float
    # The share of the additional width by which the left edge moves.
    share: float


def shift(part: Flow, parts: np.ndarray, at: Place) -> tuple[list[Html], float, float]:
    """Return both bars, the height at which values flow into the mix, and that of the lower edge.

    parts (keys, numbers): what each key brings to each number of the mix.
    """
    alone_top = at.top + OVER_ALONE
    mix_top = alone_top + ALONE + WEDGE
    inner = [
        _label(at, say("alone"), alone_top + ALONE / 2),
        _label(at, say("in the sentence"), mix_top + MIX / 2),
        _track(at, alone_top, ALONE),
        _track(at, mix_top, MIX),
    ]
    alone, output = part.alone(0), parts.sum(axis=0)
    most = max(1.0, float(np.abs(alone).sum()), float(output.sum()))
    of_alone, of_mix = (segments(one, at.long, most) for one in (alone, output))
    # Clear of what flows into the lower bar.
    ends = at.left, at.left + at.long - 3
    over = numbers_of_segments(
        [(at.left + start, long) for start, long in of_alone],
        [part.written("values")(float(one)) if one else "" for one in alone],
        ends,
        (alone_top, alone_top - LEADER),
        alone_top + OVER,
        "alone-entry",
    )
    under = numbers_of_segments(
        [(at.left + start, long) for start, long in of_mix],
        [part.written("outputs")(float(one)) if one else "" for one in output],
        ends,
        (mix_top + MIX, mix_top + MIX + LEADER),
        mix_top + MIX + UNDER,
        "amount",
    )
    for k, ((start, long), (to, longer)) in enumerate(zip(of_alone, of_mix, strict=True)):
        x, below = at.left + start, at.left + to
        edges = [x, alone_top + ALONE, x + long, below + longer, mix_top, below]
        d = "M{} {}H{}L{} {}H{}Z".format(*map(number, edges))
        inner.append(
            element(
                "g",
                rect(x, alone_top, long, ALONE, class_="alone"),
                element("path", d=d, class_="wedge"),
                *_brought(parts[:, k], below, mix_top, at.long / most),
                *over[k],
                *under[k],
                class_=f"mixed {kind_class(k)}",
                data_role="output",
                data_quality=str(k),
            )
        )
    return inner, mix_top + MIX / 2, at.top + HIGH


def _label(at: Place, words: str, y: float) -> Html:
    x = at.left - 8
    moved = {"data_x": number(x), "data_share": number_of(at.share)}
    return text(x, y + 4, words, "end", class_="side", **moved)


def _track(at: Place, y: float, high: float) -> Html:
    """Return the room of a bar of 1, which the page's script makes wider."""
    return rect(
        at.left,
        y,
        at.long,
        high,
        class_="track",
        data_x=number(at.left),
        data_share=number_of(at.share),
        data_narrow=number(at.long),
        data_grow=number_of(1 - at.share),
    )


def _brought(parts: np.ndarray, x: float, y: float, unit: float) -> list[Html]:
    """Return what each key brings to a number of the mix, end to end."""
    boxes = []
    for j, part in enumerate(parts.tolist()):
        long = unit * max(part, 0.0)
        boxes.append(rect(x, y, long, MIX, data_part=str(j)))
        x += long
    return boxes
