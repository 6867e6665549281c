"""A sum as bars that go on where the last one ended, down to the bar of the total."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch.lessons.drawings.drawing import Drawing, NumberTable
from qkvsearch.lessons.drawings.one_query import in_brackets
from qkvsearch.lessons.drawings.svg import cut, number, picture, rect, text
from qkvsearch.lessons.markup import Html, element
from qkvsearch.lessons.messages import decimals_of, say, shown, with_decimals

# All lengths are in units of the picture, which is as wide as this.
WIDE = 360
# Where the bars begin, how long they are at most, and where their numbers end.
BARS = 112
LONGEST = 200
NUMBERS = 358
# The height of a line, of a bar in it, and where the first line begins.
LINE = 22
BAR = 14
TOP = 22


@dataclass(frozen=True, eq=False)
class Total(Drawing):
    """A few numbers, the sum of all others, and their total. It has nothing to be turned."""

    # One word, unique in its lesson.
    name: str
    caption: str
    # What each of the few numbers belongs to.
    labels: Sequence[str]
    # The few numbers (n,), and the sum of the others.
    numbers_shown: np.ndarray
    rest: float
    # What the others and the total are called.
    rest_label: str
    total_label: str
    # What the labels and the numbers are.
    columns: Sequence[str]
    # With which number of the query each of the few is multiplied; None where there is no query.
    query: float | None = None
    # Whether the page shows it only when its caption is opened.
    folded: bool = False

    @property
    def lines(self) -> list[tuple[str, float]]:
        """Return the label and the number of each line, the total last."""
        lines = [
            (label, float(value))
            for label, value in zip(self.labels, self.numbers_shown, strict=True)
        ]
        return [*lines, (self.rest_label, float(self.rest)), (self.total_label, self.total)]

    def written(self, value: float) -> str:
        """Write a number with the decimals that all of them have."""
        numbers = np.array([*self.numbers_shown, self.rest, self.total])
        return with_decimals(value, decimals_of(numbers))

    @property
    def total(self) -> float:
        return float(np.sum(self.numbers_shown)) + float(self.rest)

    def _written(self, line: int, value: float) -> list[Html | str]:
        """Return what is written of a line: its number, times that of the query if it has one."""
        written = self.written(value)
        if self.query is None or line >= len(self.labels):
            return [written]
        query = element("tspan", shown(self.query), class_="by-query")
        return [query, " × ", element("tspan", in_brackets(written), class_="by-key")]

    @property
    def told(self) -> str:
        each = say(", ").join(f"{label} {self.written(value)}" for label, value in self.lines[:-1])
        return say(
            "{parts}: together {label} {total}.",
            parts=each,
            label=self.total_label,
            total=self.written(self.total),
        )

    @property
    def tables(self) -> list[NumberTable]:
        return [(list(self.columns), [[label, value] for label, value in self.lines])]

    def numbers(self) -> dict[str, Any]:
        return {"rows": [label for label, _ in self.lines], "total": self.total}

    def pictures(self, place: str) -> list[Html]:
        """Return the bars."""
        ends = np.cumsum([0.0, *(value for _, value in self.lines[:-1])])
        low, high = min(0.0, float(ends.min())), max(0.0, float(ends.max()))
        unit = LONGEST / (high - low or 1.0)
        inner = [
            text(0, 12, self.columns[0], class_="side"),
            text(BARS, 12, self.columns[1], class_="side"),
        ]
        last = len(self.lines) - 1
        for n, (label, value) in enumerate(self.lines):
            y = TOP + (n + 0.5) * LINE
            start = 0.0 if n == last else float(ends[n])
            left = min(start, start + value) - low
            inner += [
                text(0, y + 4, cut(label, BARS - 4)),
                _bar(BARS + left * unit, y, abs(value) * unit, "output" if n == last else "score"),
                element(
                    "text",
                    *self._written(n, value),
                    x=number(NUMBERS),
                    y=number(y + 4),
                    text_anchor="end",
                    class_="amount total" if n == last else "amount",
                    data_x=number(NUMBERS),
                ),
            ]
        height = TOP + LINE * len(self.lines) + 2
        drawn = picture(WIDE, height, f"{place}-total", self.caption, self.told, *inner)
        return [Html(drawn.replace("<svg ", '<svg data-stretch="yes" ', 1))]


def _bar(x: float, y: float, long: float, role: str) -> Html:
    """Return a bar, which the page's script makes longer where there is room."""
    along = (x - BARS) / LONGEST
    box = rect(
        x,
        y - BAR / 2,
        long,
        BAR,
        data_x=number(x),
        data_share=f"{along:.4f}",
        data_narrow=number(long),
        data_grow=f"{long / LONGEST:.4f}",
    )
    return element("g", box, class_="addend", data_role=role)
