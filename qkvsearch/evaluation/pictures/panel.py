"""What a picture shows, as plain data: a panel of groups, with one value for each of its series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

Interval = tuple[float, float]


class PanelShape(Enum):
    """How the values of a panel are drawn."""

    # Groups in an order, such as ever longer histories: a line for each series.
    LINES = "lines"
    # Groups without an order, one below the other: a bar for each value.
    BARS = "bars"
    # The series of a group add up to 1: one bar of several parts.
    STACKED = "stacked"


@dataclass(frozen=True)
class Series:
    """One value for each group of a panel, such as those of a recommender."""

    name: str
    # None where there is nothing to show.
    values: Sequence[float | None]
    # The 95% interval of each value.
    intervals: Sequence[Interval | None] = ()

    def interval(self, group: int) -> Interval | None:
        return self.intervals[group] if self.intervals else None


@dataclass(frozen=True)
class Panel:
    """A picture with a title, two axes and its series; the first series is ours."""

    # What is seen, in one sentence.
    title: str
    shape: PanelShape
    # What the groups are, and their names; a name may have two lines.
    group_axis: str
    groups: Sequence[str]
    # What the values are, with their unit.
    value_axis: str
    series: Sequence[Series]
    # Whether the first group is ours, with which the others are compared.
    ours_is_first: bool = False
    # Whether the values are shares, which are shown in percent.
    is_share: bool = False
    # The number of things in each group, and what they are: "users".
    counts: Sequence[int] = ()
    counted: str = ""
    # What a reader must know to read it right.
    note: str = ""

    def shown(self, value: float | None) -> str:
        """Format a value for people.

        >>> bars = PanelShape.BARS
        >>> panel = Panel("Right hits", bars, "grade", ["strong"], "share", [], is_share=True)
        >>> panel.shown(0.251), panel.shown(0.0251), panel.shown(None)
        ('25%', '2.5%', '–')
        """
        if value is None:
            return "–"
        if not self.is_share:
            return f"{value:.3f}"
        percent = 100 * value
        # Of a small share one more digit: 2 % and 2.4 % are far apart.
        return f"{percent:.1f}%" if 0 < percent < 9.95 else f"{percent:.0f}%"


def span(low: int, high: int) -> str:
    """Return the label of a group.

    >>> span(3, 3), span(4, 1200)
    ('3', '4–1,200')
    """
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
