"""How strong numbers are drawn: shades of boxes side by side, and the widths of what flows."""

from collections.abc import Sequence

import numpy as np

from qkvsearch.lessons.drawings.svg import number, rect
from qkvsearch.lessons.markup import Html

# A vector's strip of numbers: the side of each, where there are few or many, and how many at most.
STRIP = 13
NARROW_STRIP = 8
MAX_STRIP = 5
# Texts in a line are at least so far apart.
APART = 5
# A flow's width where its weight is 1, and where it is 0.
MAX_LINE = 16
MIN_LINE = 0.6


def strengths(array: np.ndarray, stage: str) -> np.ndarray:
    """Return how strong each number is drawn, 0 to 1; scores are divided by the largest.

    >>> strengths(np.array([[2.0, -4.0, -np.inf]]), "scores").tolist()
    [[0.5, 1.0, 0.0]]
    """
    size = np.where(np.isfinite(array), np.abs(array), 0.0)
    most = 1.0 if stage == "weights" else float(size.max(initial=0.0)) or 1.0
    return np.clip(size / most, 0, 1)


def number_of(share: float) -> str:
    return f"{share:.3f}".rstrip("0").rstrip(".")


def line_width(weight: float, most: float = MAX_LINE) -> str:
    return number(MIN_LINE + most * min(max(weight, 0), 1))


def line_opacity(weight: float) -> str:
    return number_of(0.08 + 0.72 * min(weight, 1)) if weight > 0 else "0"


def strip_side(vectors: np.ndarray) -> int:
    """Return how wide a number of a strip is: less where there are many."""
    return STRIP if vectors.shape[1] <= 4 else NARROW_STRIP


def strip_width(vectors: np.ndarray) -> int:
    return strip_side(vectors) * min(vectors.shape[1], MAX_STRIP)


def strip(
    vectors: np.ndarray,
    place: int,
    at: tuple[float, float],
    side: float | None = None,
    most: int = MAX_STRIP,
    classes: Sequence[str] = (),
) -> list[Html]:
    """Return the numbers of one of the vectors as boxes side by side.

    at: the left edge, and the height of the middle. side: of a box, None for the usual one. most:
    how many numbers are drawn. classes: of the boxes, none where it is empty.
    """
    x, y = at
    shares = strengths(vectors, "")
    side = side or strip_side(vectors)
    gap = min(2.0, side / 4)
    return [
        rect(
            x + side * k,
            y - STRIP / 2,
            side - gap,
            STRIP,
            rx=number(gap),
            fill_opacity=number_of(0.06 + 0.94 * float(share)),
            class_=" ".join(_classes(float(vectors[place, k]), classes[k : k + 1])) or None,
        )
        for k, share in enumerate(shares[place, :most])
    ]


def spread_out(
    middles: Sequence[float], widths: Sequence[float], ends: tuple[float, float]
) -> list[float]:
    """Return where the middles of texts in a line are, so that none covers another.

    middles: where they would be, in order. ends: where the first begins and the last ends at most.

    >>> spread_out([10, 12, 50], [10, 10, 10], (0, 100))
    [10.0, 25.0, 50.0]
    >>> spread_out([10, 90, 98], [10, 10, 10], (0, 100))
    [10.0, 80.0, 95.0]
    """
    low, high = ends
    found = []
    for middle, width in zip(middles, widths, strict=True):
        start = max(middle - width / 2, low)
        found.append(start + width / 2)
        low = start + width + APART
    for n in reversed(range(len(found))):
        end = min(found[n] + widths[n] / 2, high)
        found[n] = end - widths[n] / 2
        high = end - widths[n] - APART
    return found


def _classes(entry: float, own: Sequence[str]) -> list[str]:
    return [*own, "minus"] if entry < 0 else list(own)
