"""The drawing of attention as SVG: who asks whom, and what flows from the values to the outputs."""

from collections.abc import Sequence

import numpy as np

from qkvsearch.lessons.drawings.flow import NUMBERS, Flow, cell_text
from qkvsearch.lessons.exports.page.drawings.shapes import (
    curve,
    cut,
    number,
    picture,
    rect,
    text,
    wide,
)
from qkvsearch.lessons.exports.page.markup import Html, element
from qkvsearch.lessons.messages import say

WIDE = 360
# Of the cells and of the rows of the second picture; labels take this much at most.
CELL, SHORTEST, HIGHEST, ROW, LABEL = 64, 30, 40, 34, 100
# A flow's width where its weight is 1, and what is left of a weight of 0.
WIDEST, THINNEST = 16, 0.6
# A vector's strip of numbers: the side of each.
STRIP, NARROW, MOST_STRIP = 13, 8, 5
ENDS = ("values", "outputs")


def flow(part: Flow, place: str) -> list[Html]:
    """The pictures of the drawing: one of the pairs, and one of what flows if there are values."""
    found = [_pairs(part, f"{place}-pairs")]
    return [*found, _flows(part, f"{place}-flows")] if part.has_values else found


# --- who asks whom ---


def _pairs(part: Flow, place: str) -> Html:
    steps, rows, columns = part.steps(), list(part.bench.rows), list(part.columns)
    stage = "weights" if part.has_values else "scores"
    left = min(max(map(wide, rows), default=0) * 1.08, LABEL) + 14
    cell = min((WIDE - left - 2) / len(columns), CELL)
    high = min(max(cell, SHORTEST), HIGHEST)
    is_turned = max(map(wide, columns), default=0) > cell - 4
    above = 22.0 + (min(max(map(wide, columns)), LABEL) * 0.72 + 10 if is_turned else 20)
    shares = strengths(steps[stage], stage)
    visible = part.visible()
    cells = [
        _cell(
            left + j * cell, above + i * high, cell, high, (i, j),
            (float(steps[stage][i, j]), float(shares[i, j])), bool(visible[i, j]),
        )
        for i in range(len(rows))
        for j in range(len(columns))
    ]  # fmt: skip
    labels = [
        text(
            left - 8, above + (i + 0.5) * high + 4, cut(row, left - 14), "end",
            data_role="query", data_row=str(i),
        )
        for i, row in enumerate(rows)
    ]  # fmt: skip
    labels += [
        _heading(left + (j + 0.5) * cell, above - 7, cut(column, LABEL), is_turned, j)
        for j, column in enumerate(columns)
    ]
    # Beside turned headings, what asks and what is asked stay in a line of their own.
    sides = [
        text(0, 13, f"{part.asks} ↓", class_="side"),
        text(left, 13, f"{part.asked} →", class_="side"),
    ]
    if wide(f"{part.asks} ↓") > left - 4:
        sides = [text(0, 13, f"{part.asks} ↓   {part.asked} →", class_="side")]
    title = say("{caption}: who asks whom", caption=part.caption)
    body = element("g", *cells, class_="cells", data_stage=stage)
    return picture(
        WIDE, above + high * len(rows) + 3, place, title, part.told, *sides, *labels, body
    )


def _cell(
    x: float,
    y: float,
    width: float,
    height: float,
    at: tuple[int, int],
    held: tuple[float, float],
    is_visible: bool,
) -> Html:
    value, share = held
    written = cell_text(value) if width >= SHORTEST else ""
    inner = [
        rect(
            x + 1.5, y + 1.5, width - 3, height - 3, rx="4",
            class_="minus" if value < 0 else None, fill_opacity=number_of(share),
        ),
        text(x + width / 2, y + height / 2 + 4, written, "middle"),
    ]  # fmt: skip
    return element(
        "g",
        *inner,
        class_="cell" if is_visible else "cell hides",
        data_at=f"{at[0]} {at[1]}",
        data_value=value,
    )


def _heading(x: float, y: float, words: str, is_turned: bool, place: int) -> Html:
    if not is_turned:
        return text(x, y, words, "middle", data_role="key", data_column=str(place))
    turn = f"rotate(-45 {number(x)} {number(y)})"
    return text(x, y, words, data_role="key", data_column=str(place), transform=turn)


def strengths(array: np.ndarray, stage: str) -> np.ndarray:
    """How strong each number is drawn, 0 to 1: a weight as it is, a score beside the largest.

    >>> strengths(np.array([[2.0, -4.0, -np.inf]]), "scores").tolist()
    [[0.5, 1.0, 0.0]]
    """
    size = np.where(np.isfinite(array), np.abs(array), 0.0)
    most = 1.0 if stage == "weights" else float(size.max(initial=0.0)) or 1.0
    return np.clip(size / most, 0, 1)


def number_of(share: float) -> str:
    return f"{share:.3f}".rstrip("0").rstrip(".")


# --- what flows ---


def _flows(part: Flow, place: str) -> Html:
    steps, rows, columns = part.steps(), list(part.bench.rows), list(part.columns)
    weights = np.nan_to_num(steps["weights"])
    high = ROW * max(len(rows), len(columns))
    strips = [strip_of(steps[name]) * min(steps[name].shape[1], MOST_STRIP) for name in ENDS]
    rooms = [min(max(map(wide, labels)) * 1.08, 84) + 8 for labels in (columns, rows)]
    left, right = rooms[1] + strips[1] + 8, WIDE - rooms[0] - strips[0] - 8
    y = [[34 + (k + 0.5) * high / n for k in range(n)] for n in (len(rows), len(columns))]
    lines = [
        curve(
            right, y[1][j], left, y[0][i],
            data_at=f"{i} {j}", stroke_width=_width(float(weights[i, j])),
            stroke_opacity=_opacity(float(weights[i, j])),
        )
        for i in range(len(rows))
        for j in range(len(columns))
    ]  # fmt: skip
    ends = [
        *_ends(rows, steps["outputs"], y[0], (rooms[1], rooms[1] + 4), "output"),
        *_ends(columns, steps["values"], y[1], (WIDE - rooms[0], right + 4), "value"),
    ]
    heads = [
        text(0, 13, say("outputs, for each {asks}", asks=part.asks), class_="side"),
        text(WIDE, 13, say("values"), "end", class_="side"),
    ]
    title = say("{caption}: what flows", caption=part.caption)
    inner = element("g", *lines, class_="flows", fill="none")
    return picture(WIDE, 34 + high + 2, place, title, part.told, *heads, inner, *ends)


def _width(weight: float) -> str:
    return number(THINNEST + WIDEST * min(max(weight, 0), 1))


def _opacity(weight: float) -> str:
    return number_of(0.08 + 0.72 * min(weight, 1)) if weight > 0 else "0"


def strip_of(vectors: np.ndarray) -> int:
    """How wide a number of a strip is: less where there are many."""
    return STRIP if vectors.shape[1] <= 4 else NARROW


def _ends(
    labels: Sequence[str],
    vectors: np.ndarray,
    y: Sequence[float],
    x: tuple[float, float],
    role: str,
) -> list[Html]:
    """A label and a vector's strip at each end of the flows. x: of the label, and of the strip."""
    shares, side = strengths(vectors, ""), strip_of(vectors)
    is_output = role == "output"
    found = []
    for place, label in enumerate(labels):
        at, anchor = (x[0] - 4, "end") if is_output else (x[0] + 4, "start")
        strip = [
            rect(
                x[1] + side * k, y[place] - STRIP / 2, side - 2, STRIP, rx="2",
                fill_opacity=number_of(0.06 + 0.94 * float(share)),
                class_="minus" if vectors[place, k] < 0 else None,
            )
            for k, share in enumerate(shares[place, :MOST_STRIP])
        ]  # fmt: skip
        words = text(at, y[place] + 4, cut(label, 84), anchor)
        found.append(
            element("g", words, *strip, class_="end", data_role=role, data_end=f"{role} {place}")
        )
    return found


def stage_label(stage: str) -> str:
    return say(NUMBERS.get(stage, "outputs"))
