"""What flows from values to the mixes of several queries, where the numbers of a value have names.

The values stand side by side at the top and the mixes at the bottom, each with a bar for each of
its numbers. In between flows what each value brings to each mix: a ribbon for each of its numbers,
as wide as weight × number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qkvsearch.lessons.drawings.one_query import UNSEEN
from qkvsearch.lessons.drawings.strips import number_of
from qkvsearch.lessons.drawings.svg import cut, number, picture, rect, text, wide
from qkvsearch.lessons.markup import Html, element
from qkvsearch.lessons.messages import say

if TYPE_CHECKING:
    from qkvsearch.lessons.drawings.flow import Flow

# All lengths are in units of the picture, which is as wide as this.
WIDE = 360
# A letter may be a little wider than `wide` estimates.
MARGIN = 1.06
# The line of headings, the height of a number's line and of its bar.
HEAD = 26
LINE = 18
BAR = 10
# How much wider the frame of a chosen number is at either side.
FRAME = 3
# Between two columns, and between a bar and its number.
GAP = 10
BESIDE = 4
# The room for what flows, and between it and what it leads from and to. A weight of 1 is so wide.
FLOW = 64
APART = 4
MAX_FLOW = 18
MIN_FLOW = 0.6


def mixes(part: Flow, place: str) -> Html:
    """Draw the flow's values, the mix of each query, and the ribbons between them."""
    steps = part.steps()
    columns, rows = list(part.columns), list(part.bench.rows)
    names = list(part.value_names)
    of_values = _Block.of(part, "values", 0, len(columns))
    of_mixes = _Block.of(part, "outputs", of_values.end + FLOW + 2 * APART, len(rows))
    # Bars of both have one scale.
    longest = min(of_values.longest, of_mixes.longest)
    flows = [
        _flow(ribbon)
        for ribbon in ribbons(
            np.nan_to_num(steps["weights"]),
            steps["values"],
            (of_values.middles, of_values.end + APART),
            (of_mixes.middles, of_mixes.top - APART),
        )
    ]
    late = element("g", *_heads(of_mixes, say("outputs"), names), class_="late")
    inner = [
        *_heads(of_values, say("values"), names),
        late,
        element("g", *flows, class_="flows", fill="none"),
        *_ends(part, of_values, columns, "value", longest),
        *_ends(part, of_mixes, rows, "output", longest),
    ]
    title = say("{caption}: what flows", caption=part.caption)
    early = of_values.end + APART
    return picture(WIDE, of_mixes.end + 2, place, title, part.told, *inner, early=early)


@dataclass(frozen=True)
class _Block:
    """Where vectors stand side by side."""

    # The upper edge, and that of the lines below the headings.
    top: float
    # The left edges of the columns, and the width of each without the gap.
    lefts: list[float]
    width: float
    # The room for a bar, and how many numbers a vector has.
    longest: float
    n_numbers: int

    @classmethod
    def of(cls, part: Flow, step: str, top: float, n: int) -> _Block:
        array = part.steps()[step]
        write = part.written(step)
        room = max(wide(write(entry)) for entry in array.ravel().tolist())
        left = max(wide(name) for name in part.value_names) * MARGIN + GAP
        width = (WIDE - left) / n
        lefts = [left + k * width for k in range(n)]
        longest = width - GAP - BESIDE - room * MARGIN
        return cls(top, lefts, width - GAP, longest, array.shape[1])

    @property
    def heights(self) -> list[float]:
        """The middles of the lines."""
        return [self.top + HEAD + (k + 0.5) * LINE for k in range(self.n_numbers)]

    @property
    def end(self) -> float:
        """The lower edge of the last line."""
        return self.top + HEAD + self.n_numbers * LINE

    @property
    def middles(self) -> list[float]:
        """The middles of the columns."""
        return [left + self.width / 2 for left in self.lefts]


def _heads(block: _Block, words: str, names: Sequence[str]) -> list[Html]:
    """Return what the vectors are, and the names of their numbers, at the left."""
    heads = [text(0, block.top + 13, words, class_="side")]
    for name, y in zip(names, block.heights, strict=True):
        heads.append(text(0, y + 4, name, class_="of-number"))
    return heads


def _ends(
    part: Flow, block: _Block, labels: Sequence[str], role: str, longest: float
) -> list[Html]:
    """Return each label with the numbers of its vector below it, a bar and a number in each line.

    role: "value" or "output". longest: the length of a bar of 1, or of the largest number.
    """
    steps = part.steps()
    vectors = steps[f"{role}s"]
    write = part.written(f"{role}s")
    most = max(1.0, *(float(np.abs(steps[step]).max()) for step in ("values", "outputs")))
    ends = []
    for place, (label, left) in enumerate(zip(labels, block.lefts, strict=True)):
        right = left + block.width
        inner = [text(left, block.top + 13, cut(label, block.width + GAP - 2), class_="of-word")]
        for entry, y in zip(vectors[place].tolist(), block.heights, strict=True):
            kind = "amount-of minus" if entry < 0 else "amount-of"
            length = longest * min(abs(entry) / most, 1.0)
            inner += [
                rect(left - FRAME, y - LINE / 2, block.width + 2 * FRAME, LINE, class_="touch"),
                rect(left, y - BAR / 2, longest, BAR, class_="track"),
                rect(
                    left,
                    y - BAR / 2,
                    length,
                    BAR,
                    class_=kind,
                    data_wide=number(longest),
                ),
                text(right, y + 4, write(entry), "end", class_="entry"),
            ]
        of_end = {"data_role": role, "data_end": f"{role} {place}", "data_bars": "yes"}
        ends.append(element("g", *inner, class_="end", **of_end))
    return ends


# --- what flows ---


class PairRibbon(NamedTuple):
    """What flows of a number of a value to a mix: the middles of its ends, and how wide it is."""

    query: int
    key: int
    quality: int
    start: tuple[float, float]
    end: tuple[float, float]
    # The middles of the value and of the mix.
    value: float
    mix: float
    share: float
    width: float


def ribbons(
    weights: np.ndarray,
    values: np.ndarray,
    starts: tuple[Sequence[float], float],
    ends: tuple[Sequence[float], float],
) -> Iterator[PairRibbon]:
    """Return what flows, side by side at each end: at a value by the mix that it leads to, at a mix
    by the value that it comes from, and of one pair by the number.

    weights (queries, keys), values (keys, numbers). starts, ends: the middle of each value and each
    mix, and the height there.
    """
    # (queries, keys, numbers)
    shares = weights[:, :, None] * values[None]
    widths = np.abs(shares) * MAX_FLOW / max(1.0, float(np.abs(values).sum(axis=1).max()))
    (from_x, from_y), (to_x, to_y) = starts, ends
    for i, j, k in np.ndindex(shares.shape):
        at_value = widths[:i, j].sum() + widths[i, j, :k].sum() - widths[:, j].sum() / 2
        at_mix = widths[i, :j].sum() + widths[i, j, :k].sum() - widths[i].sum() / 2
        width = float(widths[i, j, k])
        yield PairRibbon(
            i,
            j,
            k,
            (from_x[j] + float(at_value) + width / 2, from_y),
            (to_x[i] + float(at_mix) + width / 2, to_y),
            from_x[j],
            to_x[i],
            float(shares[i, j, k]),
            width,
        )


def _flow(ribbon: PairRibbon) -> Html:
    """Return the path of a ribbon; the page's script draws those that are 0 once they are not."""
    (x1, y1), (x2, y2) = ribbon.start, ribbon.end
    half = (y1 + y2) / 2
    return element(
        "path",
        d=f"M{number(x1)} {number(y1)}C{number(x1)} {number(half)} {number(x2)} {number(half)}"
        f" {number(x2)} {number(y2)}",
        data_at=f"{ribbon.query} {ribbon.key}",
        data_quality=str(ribbon.quality),
        data_value=ribbon.share,
        data_from=f"{number(ribbon.value)} {number(y1)}",
        data_to=f"{number(ribbon.mix)} {number(y2)}",
        stroke_width=number(max(ribbon.width, MIN_FLOW)),
        stroke_opacity=number_of(0.8 if abs(ribbon.share) >= UNSEEN else 0.0),
    )
