"""Reasons as a waterfall: a number for each, and a bar that begins where the last one ended."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import copysign

from qkvsearch.cli.wrapping import terminal_width

# What adds to a score, and what takes away from it; they differ without colour.
ADDS, TAKES_AWAY = "▇", "▂"
# Narrower terminals have no bars, so that there is room for the texts.
LEAST_WIDTH = 60
# The share of a line that bars take, and their largest width.
SHARE, MAX_BARS = 0.125, 24


def bars_width() -> int:
    """Return how many characters the bars of a waterfall have; 0 where there is no room."""
    width = terminal_width()
    return 0 if width < LEAST_WIDTH else min(round(SHARE * width), MAX_BARS)


def bars(values: Sequence[float], width: int) -> list[str]:
    """Return a bar for each value, all `width` characters wide: each begins where the sum of the
    values before it ends, and is at least one character long.

    >>> bars([3.0, 2.0, -1.0], 5)
    ['▇▇▇  ', '   ▇▇', '    ▂']
    >>> bars([1.0, -0.0], 2)
    ['▇▇', ' ▂']
    """
    sums = [0.0, *accumulate(values)]
    lowest = min(sums)
    room = max(sums) - lowest
    scale = width / room if room > 0 else 0.0
    places = [round((sum_ - lowest) * scale) for sum_ in sums]
    drawn = []
    for value, ends in zip(values, pairwise(places), strict=True):
        start, end = sorted(ends)
        start = min(start, width - 1)
        length = max(end - start, 1)
        sign = TAKES_AWAY if copysign(1.0, value) < 0 else ADDS
        drawn.append((" " * start + sign * length).ljust(width))
    return drawn
