"""A small table of boxes that turns: its rows become columns, and its columns rows.

It is drawn both ways. The page's script shows one of them at a time, and moves its boxes from one
place to the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch.lessons.drawings.drawing import Drawing, NumberTable
from qkvsearch.lessons.drawings.strips import number_of, strengths
from qkvsearch.lessons.drawings.svg import cut, number, picture, rect, text
from qkvsearch.lessons.markup import Html, element
from qkvsearch.lessons.messages import say

# All lengths are in units of the picture, which is as wide as this.
WIDE = 360
# Where the boxes begin.
LEFT = 104
# The line of headings, the height of a row, and the side of a box.
HEAD = 22
ROW = 23
BOX = 17
# How long the names are that hang below the columns where these are many.
NAME = 96


@dataclass(frozen=True, eq=False)
class Turning(Drawing):
    """Which of the columns each of the rows has, or how strongly, as boxes."""

    # One word, unique in its lesson.
    name: str
    caption: str
    # What each row and each column is called, and the numbers (rows, columns).
    rows: Sequence[str]
    columns: Sequence[str]
    array: np.ndarray
    # What a row and a column are, such as "video" and "word".
    row_is: str
    column_is: str

    @property
    def told(self) -> str:
        each = []
        for j, column in enumerate(self.columns):
            had = [self._numbered(i) for i, value in enumerate(self.array[:, j]) if value]
            each.append(say("{row}: {columns}", row=column, columns=say(", ").join(had)))
        return say("; ").join(each)

    @property
    def tables(self) -> list[NumberTable]:
        rows: list[list[str | float]] = [
            [self._numbered(i), *map(float, row)] for i, row in enumerate(self.array)
        ]
        return [([self.row_is, *self.columns], rows)]

    def numbers(self) -> dict[str, Any]:
        return {
            "told": [
                say(
                    "A row is a {row}, with a number for each {column}.",
                    row=self.row_is,
                    column=self.column_is,
                ),
                say(
                    "A row is a {row}, with a number for each {column}.",
                    row=self.column_is,
                    column=self.row_is,
                ),
            ]
        }

    def pictures(self, place: str) -> list[Html]:
        """Return the table as it is, and turned."""
        return [
            self._drawn(f"{place}-as-it-is", is_turned=False),
            self._drawn(f"{place}-turned", is_turned=True),
        ]

    def _numbered(self, row: int) -> str:
        return f"{row + 1} {self.rows[row]}"

    def _drawn(self, place: str, is_turned: bool) -> Html:
        shares = strengths(self.array, "")
        boxes = []
        for i, j in np.ndindex(self.array.shape):
            # Where the box is, and where it will be.
            here, there = self._box(i, j, is_turned), self._box(i, j, not is_turned)
            boxes.append(
                rect(
                    *here,
                    BOX,
                    BOX,
                    rx="3",
                    fill_opacity=number_of(0.06 + 0.94 * float(shares[i, j])),
                    data_box=f"{i} {j}",
                    data_there=f"{number(there[0])} {number(there[1])}",
                )
            )
        labels: list[Html] = []
        for way, of_way in ((False, self._labels()), (True, self._turned_labels())):
            hidden = None if way == is_turned else "hidden"
            labels.append(element("g", *of_way, class_="way-of", visibility=hidden))
        height = max(HEAD + ROW * len(self.rows), HEAD + ROW * len(self.columns) + NAME) + 2
        title = say("{caption}: turned", caption=self.caption) if is_turned else self.caption
        strip = element("g", *boxes, class_="vector", data_role="key")
        return picture(WIDE, height, place, title, self.told, *labels, strip)

    def _box(self, i: int, j: int, is_turned: bool) -> tuple[float, float]:
        """Return the left upper corner of the box of a row and a column."""
        across, down = (i, j) if is_turned else (j, i)
        n_across = len(self.rows) if is_turned else len(self.columns)
        step = (WIDE - LEFT) / n_across
        return LEFT + (across + 0.5) * step - BOX / 2, HEAD + (down + 0.5) * ROW - BOX / 2

    def _labels(self) -> list[Html]:
        labels = []
        for i in range(len(self.rows)):
            _, y = self._box(i, 0, False)
            labels.append(text(0, y + BOX / 2 + 4, cut(self._numbered(i), LEFT - 4)))
        step = (WIDE - LEFT) / len(self.columns)
        for j, column in enumerate(self.columns):
            x, _ = self._box(0, j, False)
            labels.append(text(x + BOX / 2, 14, cut(column, step), "middle"))
        return labels

    def _turned_labels(self) -> list[Html]:
        labels = []
        for j, column in enumerate(self.columns):
            _, y = self._box(0, j, True)
            labels.append(text(0, y + BOX / 2 + 4, cut(column, LEFT - 4)))
        below = HEAD + ROW * len(self.columns) + 6
        for i, row in enumerate(self.rows):
            x = self._box(i, 0, True)[0] + BOX / 2
            labels.append(text(x, 14, str(i + 1), "middle"))
            turn = f"rotate(-90 {number(x + 4)} {number(below)})"
            name = cut(row, NAME - 8)
            labels.append(text(x + 4, below, name, "end", class_="side", transform=turn))
        return labels
