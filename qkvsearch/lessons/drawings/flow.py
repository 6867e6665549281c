"""A drawing of attention: scores, mask, softmax, and what flows from the values to the outputs.

It is the same drawing for a search, a recommendation and a translation; only the labels change. One
query is drawn on the left, its keys with bars, their values on the right and the mix below; several
queries are drawn as a table of cells, and what flows beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch.attention.symbols import numbered
from qkvsearch.attention.trace import Trace, trace
from qkvsearch.lessons.drawings.drawing import Drawing, NumberTable
from qkvsearch.lessons.drawings.svg import (
    curve,
    cut,
    number,
    picture,
    rect,
    text,
    wide,
)
from qkvsearch.lessons.markup import Html, element
from qkvsearch.lessons.messages import mark, say, shown
from qkvsearch.lessons.workbench import MaskName, Workbench, mask_of

# All lengths are in units of the picture, which is as wide as this.
WIDE = 360
# A label beside or above the cells, at most.
LABEL = 100
# A label at the end of a flow, at most.
END_LABEL = 84
# A letter may be a little wider than `wide` estimates.
MARGIN = 1.08
# Of several queries, the first picture: a cell, at most; and without a number in it, below.
CELL = 64
MIN_CELL = 30
MAX_CELL_HEIGHT = 40
# Of several queries, the second picture: the height of a row, and where the first begins.
ROW = 34
TOP = 34
# A flow's width where its weight is 1, and where it is 0.
MAX_LINE = 16
MIN_LINE = 0.6
# A vector's strip of numbers: the side of each, where there are few or many, and how many at most.
STRIP = 13
NARROW_STRIP = 8
MAX_STRIP = 5
# Of one query: where the flows and the columns of keys, bars, weights and values begin.
FLOWS = 82
KEYS = 102
BARS = 186
WEIGHTS = 264
VALUES = 272
# The bar of a weight of 1, and the height of a line.
BAR = 46
LINE = 26
# The steps that it goes through, each with what it does.
STAGES = {
    "scores": "Q·Kᵀ",
    "scaled": "÷ √d",
    "masked": mark("mask"),
    "weights": "softmax",
    "outputs": "· V",
}


@dataclass(frozen=True, eq=False)
class Flow(Drawing):
    """Every query against every key, and what flows from the values to each query's output."""

    # One word, unique in its lesson.
    name: str
    caption: str
    # The matrices, their labels, and the masks to choose from. Without values the drawing ends with
    # the scores.
    bench: Workbench
    # What a query and a key are here, such as "user" and "film".
    asks: str
    asked: str
    # bool (L, S), False where a key is hidden whatever mask is chosen; None hides nothing.
    seen: np.ndarray | None = None

    @property
    def has_values(self) -> bool:
        return self.bench.has_values

    @property
    def columns(self) -> Sequence[str]:
        return self.bench.rows if self.bench.is_projected else self.bench.columns

    @property
    def stages(self) -> list[str]:
        """Those of STAGES in which something happens."""
        if not self.has_values:
            return ["scores"]
        left_out = set()
        if self.factor == 1:
            left_out.add("scaled")
        if self.visible().all() and len(self.bench.masks) == 1:
            left_out.add("masked")
        return [stage for stage in STAGES if stage not in left_out]

    def stage_name(self, stage: str) -> str:
        """Return what a stage does, as its button says it."""
        by_temperature = stage == "scaled" and self.bench.scale == 1
        return "÷ T" if by_temperature else say(STAGES[stage])

    @property
    def factor(self) -> float:
        """What the scores are multiplied by."""
        return self.bench.scale_or_default / self.bench.temperature

    def visible(self, mask: MaskName | None = None) -> np.ndarray:
        """Return bool (L, S), True = may attend, under this mask or the first one."""
        L, S = len(self.bench.rows), len(self.columns)
        seen = np.ones((L, S), dtype=bool) if self.seen is None else self.seen
        allowed = mask_of(mask or self.bench.mask, L, S, self.bench.padded)
        return seen if allowed is None else seen & allowed

    def trace(self, mask: MaskName | None = None) -> Trace:
        """Return the engine's record of the computation, from queries, keys and values on."""
        given = self.bench.steps()
        values = given["values"] if self.has_values else given["keys"]
        with np.errstate(all="ignore"):
            return trace(
                given["queries"],
                given["keys"],
                values,
                query_labels=self.bench.rows,
                key_labels=self.columns,
                mask=self.visible(mask),
                scale=self.factor,
                normalize=self.bench.normalize,
            )

    def steps(self, mask: MaskName | None = None) -> dict[str, np.ndarray]:
        """Return the arrays of `stages` by name, and the queries, keys and values before them."""
        computed = self.trace(mask)
        names = ["queries", "keys"]
        if self.has_values:
            names.append("values")
        names += self.stages
        return {name: np.asarray(computed[name].array) for name in names}

    @property
    def told(self) -> str:
        """What the drawing shows, in words."""
        array = self.steps()["weights" if self.has_values else "scores"]
        best = np.nan_to_num(array).argmax(axis=1)
        each = [
            say("{row} → {column} {number}", row=row, column=self.columns[j], number=numbers[j])
            for row, numbers, j in zip(self.bench.rows, array, best, strict=True)
        ]
        pairs = say("; ").join(each)
        if self.has_values:
            return say("The largest weight of each {asks}: {found}.", asks=self.asks, found=pairs)
        return say("The largest score of each {asks}: {found}.", asks=self.asks, found=pairs)

    @property
    def tables(self) -> list[NumberTable]:
        """All that is drawn: a row for each pair of a query and a key, then the outputs."""
        steps = self.steps()
        names = [stage for stage in self.stages if stage != "outputs"]
        headings = [self.asks, self.asked, *(say(NUMBERS[name]) for name in names)]
        pairs: list[list[str | float]] = [
            [str(row), str(column), *(float(steps[name][i, j]) for name in names)]
            for i, row in enumerate(self.bench.rows)
            for j, column in enumerate(self.columns)
        ]
        if not self.has_values:
            return [(headings, pairs)]
        outputs = steps["outputs"]
        wide = [say("output {n}", n=n + 1) for n in range(outputs.shape[1])]
        rows: list[list[str | float]] = [
            [str(row), *map(float, output)]
            for row, output in zip(self.bench.rows, outputs, strict=True)
        ]
        return [(headings, pairs), ([self.asks, *wide], rows)]

    def numbers(self) -> dict[str, Any]:
        """Return what the page's script computes from."""
        steps, bench = self.steps(), self.bench
        return {
            "queries": steps["queries"],
            "keys": steps["keys"],
            "values": steps.get("values"),
            "rows": list(bench.rows),
            "columns": list(self.columns),
            "seen": None if self.seen is None else self.seen.tolist(),
            "mask": bench.mask,
            "padded": bench.padded,
            "scale": self.factor * bench.temperature,
            "temperature": bench.temperature,
            "normalize": bench.normalize,
            "stages": self.stages,
        }

    def pictures(self, place: str) -> list[Html]:
        """Return the pairs of queries and keys, and what flows where there are values."""
        if self.has_values and len(self.bench.rows) == 1:
            return [_one_query(self, place)]
        svgs = [_cells(self, f"{place}-pairs")]
        if self.has_values:
            svgs.append(_flows(self, f"{place}-flows"))
        return svgs

    @property
    def qualities(self) -> Sequence[str]:
        """The labels of the values' numbers."""
        wide = self.steps()["values"].shape[1]
        return list((self.bench.widths or {}).get("values", numbered(wide)))

    def value_of(self, key: int) -> str:
        """Return the label of the one number that a value consists of, else ""."""
        value = self.steps()["values"][key]
        entries = np.flatnonzero(value)
        if len(entries) == 1 and value[entries[0]] == 1:
            return self.qualities[entries[0]]
        return ""


# The numbers of a stage, as a heading says it.
NUMBERS = {
    "scores": mark("score"),
    "scaled": mark("scaled score"),
    "masked": mark("masked score"),
    "weights": mark("weight"),
}


def cell_text(number: float) -> str:
    """Write a number for a cell of the drawing.

    >>> cell_text(0.12345), cell_text(-12.0), cell_text(float("-inf"))
    ('0.12', '−12', '−∞')
    """
    if not np.isfinite(number):
        return shown(number)
    rounded = round(number, 2 if abs(number) < 100 else 0)
    return shown(rounded)


# --- the SVG: a cell for each query and key ---


@dataclass(frozen=True)
class _Grid:
    """Where the cells are."""

    left: float
    top: float
    # Of a cell.
    width: float
    height: float
    # Whether the headings are turned, because they are wider than a cell.
    is_turned: bool

    @classmethod
    def of(cls, rows: Sequence[str], columns: Sequence[str]) -> "_Grid":
        """Return the grid for these labels."""
        widest_row = max(map(wide, rows), default=0)
        widest_column = max(map(wide, columns), default=0)
        left = min(widest_row * MARGIN, LABEL) + 14
        width = min((WIDE - left - 2) / len(columns), CELL)
        height = min(max(width, MIN_CELL), MAX_CELL_HEIGHT)
        is_turned = widest_column > width - 4
        top = 22 + (min(widest_column, LABEL) * 0.72 + 10 if is_turned else 20)
        return cls(left, top, width, height, is_turned)


def _cells(part: Flow, place: str) -> Html:
    rows = list(part.bench.rows)
    columns = list(part.columns)
    grid = _Grid.of(rows, columns)
    stage = "weights" if part.has_values else "scores"
    values = part.steps()[stage]
    shares = strengths(values, stage)
    visible = part.visible()
    cells = [
        _cell(grid, (i, j), float(values[i, j]), float(shares[i, j]), bool(visible[i, j]))
        for i in range(len(rows))
        for j in range(len(columns))
    ]
    labels = []
    for i, row in enumerate(rows):
        y = grid.top + (i + 0.5) * grid.height + 4
        words = cut(row, grid.left - 14)
        labels.append(text(grid.left - 8, y, words, "end", data_role="query", data_row=str(i)))
    for j, column in enumerate(columns):
        x = grid.left + (j + 0.5) * grid.width
        labels.append(_heading(x, grid.top - 7, cut(column, LABEL), grid.is_turned, j))
    title = say("{caption}: each query and key", caption=part.caption)
    body = element("g", *cells, class_="cells", data_stage=stage)
    height = grid.top + grid.height * len(rows) + 3
    sides = _names_of_sides(part, grid.left)
    return picture(WIDE, height, place, title, part.told, *sides, *labels, body)


def _names_of_sides(part: Flow, left: float) -> list[Html]:
    """Return what rows and columns are. Beside turned headings, both are in a line of their own."""
    of_rows = f"{part.asks} ↓"
    of_columns = f"{part.asked} →"
    if wide(of_rows) > left - 4:
        return [text(0, 13, f"{of_rows}   {of_columns}", class_="side")]
    return [text(0, 13, of_rows, class_="side"), text(left, 13, of_columns, class_="side")]


def _cell(grid: _Grid, at: tuple[int, int], value: float, share: float, is_visible: bool) -> Html:
    """Return the cell of a query and a key. share: how strong its number is drawn, 0 to 1."""
    i, j = at
    x = grid.left + j * grid.width
    y = grid.top + i * grid.height
    box = rect(
        x + 1.5,
        y + 1.5,
        grid.width - 3,
        grid.height - 3,
        rx="4",
        class_="minus" if value < 0 else None,
        fill_opacity=number_of(share),
    )
    written = cell_text(value) if grid.width >= MIN_CELL else ""
    words = text(x + grid.width / 2, y + grid.height / 2 + 4, written, "middle")
    kind = "cell" if is_visible else "cell hides"
    return element("g", box, words, class_=kind, data_at=f"{i} {j}", data_value=value)


def _heading(x: float, y: float, words: str, is_turned: bool, place: int) -> Html:
    if not is_turned:
        return text(x, y, words, "middle", data_role="key", data_column=str(place))
    turn = f"rotate(-45 {number(x)} {number(y)})"
    return text(x, y, words, data_role="key", data_column=str(place), transform=turn)


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


# --- the SVG: one query ---


def _one_query(part: Flow, place: str) -> Html:
    """Draw a query, a bar for each key, the values, and the mix below."""
    steps = part.steps()
    n_keys = len(part.columns)
    middle = TOP + LINE * n_keys / 2
    end = TOP + LINE * n_keys + 14
    heads = [(0, part.asks), (KEYS, part.asked), (VALUES, say("values"))]
    sides = [text(x, 13, words, class_="side") for x, words in heads]
    sides.append(text(0, end + LINE / 2 + 4, say("mix"), class_="side"))
    lines, cells, labels = _keys_of_one_query(part, steps, middle)
    labels += _words_of_query(str(part.bench.rows[0]), middle)
    amounts = []
    for k, (quality, x) in enumerate(zip(part.qualities, steps["outputs"][0], strict=True)):
        y = end + (k + 0.5) * LINE
        labels.append(text(KEYS, y + 4, cut(str(quality), BARS - KEYS - 2)))
        amounts += _bar(y, float(x))
    inner = [
        element("g", *lines, class_="flows", fill="none"),
        element("g", *cells, class_="cells", data_stage="weights"),
        element("g", *amounts, class_="end", data_role="output", data_end="output 0"),
    ]
    title = say("{caption}: each query and key", caption=part.caption)
    height = end + LINE * len(part.qualities) + 2
    return picture(WIDE, height, place, title, part.told, *sides, *labels, *inner)


def _keys_of_one_query(
    part: Flow, steps: dict[str, np.ndarray], middle: float
) -> tuple[list[Html], list[Html], list[Html]]:
    """Return for each key the flow from the query, the bar of its weight, and its two labels.

    middle: the height of the query.
    """
    columns = [str(column) for column in part.columns]
    weights = steps["weights"][0].tolist()
    visible = part.visible()[0]
    heights = [TOP + (j + 0.5) * LINE for j in range(len(columns))]
    strips = _ends([""] * len(columns), steps["values"], heights, (VALUES, VALUES), "value")
    lines: list[Html] = []
    cells: list[Html] = []
    labels: list[Html] = []
    for j, (y, weight) in enumerate(zip(heights, np.nan_to_num(weights).tolist(), strict=True)):
        pair = f"0 {j}"
        line = curve(
            FLOWS,
            middle,
            KEYS - 4,
            y,
            data_at=pair,
            stroke_width=_width(weight),
            stroke_opacity=_opacity(weight),
        )
        lines.append(line)
        kind = "cell" if visible[j] else "cell hides"
        touch = rect(KEYS, y - LINE / 2, WIDE - KEYS, LINE, class_="touch")
        bar = _bar(y, weight)
        cells.append(element("g", *bar, touch, class_=kind, data_at=pair, data_value=weights[j]))
        key = cut(columns[j], BARS - KEYS - 2)
        labels.append(text(KEYS, y + 4, key, data_role="key", data_column=str(j)))
        value = part.value_of(j)
        labels.append(text(VALUES, y + 4, cut(value, WIDE - VALUES)) if value else strips[j])
    return lines, cells, labels


def _words_of_query(query: str, middle: float) -> list[Html]:
    """Return the words of a query one below another."""
    words = query.split()
    labels = []
    for n, word in enumerate(words):
        y = middle + 4 + 16 * (n - (len(words) - 1) / 2)
        labels.append(text(0, y, cut(word, FLOWS), data_row="0"))
    return labels


def _bar(y: float, value: float) -> list[Html]:
    """Return a bar whose length is the number, and the number."""
    minus = "minus" if value < 0 else None
    return [
        rect(BARS, y - 8, BAR * min(abs(value), 1.0), 16, class_=minus, data_wide=str(BAR)),
        text(WEIGHTS, y + 4, cell_text(value), "end", class_="amount"),
    ]


# --- the SVG: what flows ---


def _flows(part: Flow, place: str) -> Html:
    """Draw the outputs at the left, the values at the right, and a line for each weight."""
    steps = part.steps()
    rows = list(part.bench.rows)
    columns = list(part.columns)
    weights = np.nan_to_num(steps["weights"])
    height = ROW * max(len(rows), len(columns))
    of_outputs = _heights(len(rows), height)
    of_values = _heights(len(columns), height)
    # From the edges inwards: the labels, then the strips, then the lines.
    outputs_room = min(max(map(wide, rows)) * MARGIN, END_LABEL) + 8
    values_room = min(max(map(wide, columns)) * MARGIN, END_LABEL) + 8
    left = outputs_room + _strip_width(steps["outputs"]) + 8
    right = WIDE - values_room - _strip_width(steps["values"]) - 8
    lines = []
    for i in range(len(rows)):
        for j in range(len(columns)):
            weight = float(weights[i, j])
            line = curve(
                right,
                of_values[j],
                left,
                of_outputs[i],
                data_at=f"{i} {j}",
                stroke_width=_width(weight),
                stroke_opacity=_opacity(weight),
            )
            lines.append(line)
    outputs_x = (outputs_room, outputs_room + 4)
    values_x = (WIDE - values_room, right + 4)
    ends = [
        *_ends(rows, steps["outputs"], of_outputs, outputs_x, "output"),
        *_ends(columns, steps["values"], of_values, values_x, "value"),
    ]
    heads = [
        text(0, 13, say("outputs, for each {asks}", asks=part.asks), class_="side"),
        text(WIDE, 13, say("values"), "end", class_="side"),
    ]
    title = say("{caption}: what flows", caption=part.caption)
    inner = element("g", *lines, class_="flows", fill="none")
    return picture(WIDE, TOP + height + 2, place, title, part.told, *heads, inner, *ends)


def _heights(n: int, height: float) -> list[float]:
    """Return the middles of n rows that share a height."""
    return [TOP + (k + 0.5) * height / n for k in range(n)]


def _strip_width(vectors: np.ndarray) -> int:
    return strip_of(vectors) * min(vectors.shape[1], MAX_STRIP)


def _width(weight: float) -> str:
    return number(MIN_LINE + MAX_LINE * min(max(weight, 0), 1))


def _opacity(weight: float) -> str:
    return number_of(0.08 + 0.72 * min(weight, 1)) if weight > 0 else "0"


def strip_of(vectors: np.ndarray) -> int:
    """Return how wide a number of a strip is: less where there are many."""
    return STRIP if vectors.shape[1] <= 4 else NARROW_STRIP


def _ends(
    labels: Sequence[str],
    vectors: np.ndarray,
    y: Sequence[float],
    x: tuple[float, float],
    role: str,
) -> list[Html]:
    """Return a label and a vector's strip at each end of the flows.

    y: the height of each. x: of the labels, and of the strips. role: "output" or "value".
    """
    shares = strengths(vectors, "")
    side = strip_of(vectors)
    label_x, strip_x = x
    ends = []
    for place, label in enumerate(labels):
        strip = [
            rect(
                strip_x + side * k,
                y[place] - STRIP / 2,
                side - 2,
                STRIP,
                rx="2",
                fill_opacity=number_of(0.06 + 0.94 * float(share)),
                class_="minus" if vectors[place, k] < 0 else None,
            )
            for k, share in enumerate(shares[place, :MAX_STRIP])
        ]
        label_text = cut(label, END_LABEL)
        if role == "output":
            words = text(label_x - 4, y[place] + 4, label_text, "end")
        else:
            words = text(label_x + 4, y[place] + 4, label_text, "start")
        end = element("g", words, *strip, class_="end", data_role=role, data_end=f"{role} {place}")
        ends.append(end)
    return ends
