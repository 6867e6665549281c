"""The column `text_times`: when what stands in the column `text` is said.

A cell is JSON, `[[offset, start, end], …]`: the place in the text where each cue begins, in
characters, and when it begins and ends, in seconds. Subtitles are read into such a column, and a
table of the owner may have one.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

# The column of texts, the column with their times, and the role of the latter.
TEXT, NAME, ROLE = "text", "text_times", "times"


class Times(NamedTuple):
    """The cues of one text, in order."""

    offsets: list[int]
    starts: list[float]
    ends: list[float]

    @classmethod
    def of(cls, cell: object) -> Times | None:
        """Return the cues of a cell; None for an empty one, and for what is no list of cues.

        >>> Times.of("[[0, 5, 9], [12, 9.5, 14]]")
        Times(offsets=[0, 12], starts=[5, 9.5], ends=[9, 14])
        >>> Times.of("00:05"), Times.of("[[0, 5]]")
        (None, None)
        """
        try:
            cues = json.loads(str(cell))
        except ValueError:
            return None
        if not isinstance(cues, list) or not cues or not all(map(_is_cue, cues)):
            return None
        offsets, starts, ends = (list(values) for values in zip(*cues, strict=True))
        return cls(offsets, starts, ends) if offsets == sorted(offsets) else None

    def between(self, start: int, end: int) -> tuple[float, float]:
        """Return when text[start:end] begins and ends, in seconds.

        >>> Times([0, 12, 20], [5, 9, 14], [9, 14, 20]).between(13, 20)
        (9, 14)
        """
        first = max(bisect_right(self.offsets, start) - 1, 0)
        last = max(bisect_left(self.offsets, end) - 1, first)
        return self.starts[first], max(self.ends[first : last + 1])


def are_times(name: str, cells: Iterable[object]) -> bool:
    """Return whether a column has the times of texts, by its name and all of its filled cells."""
    if name.casefold() != NAME:
        return False
    filled = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
    return bool(filled) and all(Times.of(cell) is not None for cell in filled)


def _is_cue(cue: object) -> bool:
    return (
        isinstance(cue, list)
        and len(cue) == 3
        and type(cue[0]) is int
        and all(type(value) in (int, float) and value >= 0 for value in cue)
    )
