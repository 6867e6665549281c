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

WIDE = 360
# Of the cells and of the rows of the second picture; labels take this much at most.
CELL, MIN_CELL, MAX_HEIGHT, ROW, LABEL = 64, 30, 40, 34, 100
# A flow's width where its weight is 1, and what is left of a weight of 0.
MAX_LINE, MIN_LINE = 16, 0.6
# A vector's strip of numbers: the side of each.
STRIP, NARROW_STRIP, MAX_STRIP = 13, 8, 5
ENDS = ("values", "outputs")
# Of one query: where the columns begin and the bars end, and the height of a line.
LINES, KEYS, BARS, BAR, WEIGHTS, VALUES, LINE = 82, 102, 186, 46, 264, 272, 26
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
    """Every query against every key, and what flows from the values to each query's output.

    name: one word, unique in its lesson. bench: the matrices, their labels, and the masks to
    choose from; without values the drawing ends with the scores. asks, asked: what a query and a
    key are here, such as "user" and "film". seen: bool (L, S), False where a key is hidden
    whatever mask is chosen; None hides nothing.
    """

    name: str
    caption: str
    bench: Workbench
    asks: str
    asked: str
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
        left_out = set() if self.factor != 1 else {"scaled"}
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
        names = ["queries", "keys", *(["values"] if self.has_values else []), *self.stages]
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
        return [*svgs, _flows(self, f"{place}-flows")] if self.has_values else svgs

    @property
    def qualities(self) -> Sequence[str]:
        """The labels of the values' numbers."""
        wide = self.steps()["values"].shape[1]
        return list((self.bench.widths or {}).get("values", numbered(wide)))

    def value_of(self, key: int) -> str:
        """Return the label of the one number that a value consists of, or "" """
        entries = np.flatnonzero(value := self.steps()["values"][key])
        is_label = len(entries) == 1 and value[entries[0]] == 1
        return self.qualities[entries[0]] if is_label else ""


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


def _cells(part: Flow, place: str) -> Html:
    steps, rows, columns = part.steps(), list(part.bench.rows), list(part.columns)
    stage = "weights" if part.has_values else "scores"
    left = min(max(map(wide, rows), default=0) * 1.08, LABEL) + 14
    cell = min((WIDE - left - 2) / len(columns), CELL)
    high = min(max(cell, MIN_CELL), MAX_HEIGHT)
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
    # Beside turned headings, the names of both sides stay in a line of their own.
    sides = [
        text(0, 13, f"{part.asks} ↓", class_="side"),
        text(left, 13, f"{part.asked} →", class_="side"),
    ]
    if wide(f"{part.asks} ↓") > left - 4:
        sides = [text(0, 13, f"{part.asks} ↓   {part.asked} →", class_="side")]
    title = say("{caption}: each query and key", caption=part.caption)
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
    written = cell_text(value) if width >= MIN_CELL else ""
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
    steps, columns = part.steps(), [str(column) for column in part.columns]
    weights, visible = steps["weights"][0].tolist(), part.visible()[0]
    y = [34 + (j + 0.5) * LINE for j in range(len(columns))]
    middle, end = 34 + LINE * len(columns) / 2, 48 + LINE * len(columns)
    strips = _ends([""] * len(y), steps["values"], y, (VALUES, VALUES), "value")
    room = BARS - KEYS - 2
    lines, cells, labels = [], [], []
    for j, (at, weight) in enumerate(zip(y, np.nan_to_num(weights).tolist(), strict=True)):
        width, opacity, pair = _width(weight), _opacity(weight), f"0 {j}"
        ends = LINES, middle, KEYS - 4, at
        lines.append(curve(*ends, data_at=pair, stroke_width=width, stroke_opacity=opacity))
        kind = "cell" if visible[j] else "cell hides"
        touch = rect(KEYS, at - LINE / 2, WIDE - KEYS, LINE, class_="touch")
        bar = _bar(at, weight)
        cells.append(element("g", *bar, touch, class_=kind, data_at=pair, data_value=weights[j]))
        key = cut(columns[j], room)
        labels.append(text(KEYS, at + 4, key, data_role="key", data_column=str(j)))
        value = part.value_of(j)
        labels.append(text(VALUES, at + 4, cut(value, WIDE - VALUES)) if value else strips[j])
    words = str(part.bench.rows[0]).split()
    for n, word in enumerate(words):
        at = middle + 4 + 16 * (n - (len(words) - 1) / 2)
        labels.append(text(0, at, cut(word, LINES), data_row="0"))
    amounts = []
    for k, (quality, x) in enumerate(zip(part.qualities, steps["outputs"][0], strict=True)):
        at = end + (k + 0.5) * LINE
        labels.append(text(KEYS, at + 4, cut(str(quality), room)))
        amounts += _bar(at, float(x))
    heads = [(0, part.asks), (KEYS, part.asked), (VALUES, say("values"))]
    sides = [text(x, 13, words, class_="side") for x, words in heads]
    sides.append(text(0, end + LINE / 2 + 4, say("mix"), class_="side"))
    inner = [
        element("g", *lines, class_="flows", fill="none"),
        element("g", *cells, class_="cells", data_stage="weights"),
        element("g", *amounts, class_="end", data_role="output", data_end="output 0"),
    ]
    title = say("{caption}: each query and key", caption=part.caption)
    high = end + LINE * len(part.qualities) + 2
    return picture(WIDE, high, place, title, part.told, *sides, *labels, *inner)


def _bar(y: float, value: float) -> list[Html]:
    """Return a bar whose length is the number, and the number."""
    minus = "minus" if value < 0 else None
    return [
        rect(BARS, y - 8, BAR * min(abs(value), 1.0), 16, class_=minus, data_wide=str(BAR)),
        text(WEIGHTS, y + 4, cell_text(value), "end", class_="amount"),
    ]


# --- the SVG: what flows ---


def _flows(part: Flow, place: str) -> Html:
    steps, rows, columns = part.steps(), list(part.bench.rows), list(part.columns)
    weights = np.nan_to_num(steps["weights"])
    high = ROW * max(len(rows), len(columns))
    strips = [strip_of(steps[name]) * min(steps[name].shape[1], MAX_STRIP) for name in ENDS]
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
    """Return a label and a vector's strip at each end. x: of the label, and of the strip."""
    shares, side = strengths(vectors, ""), strip_of(vectors)
    is_output = role == "output"
    ends = []
    for place, label in enumerate(labels):
        at, anchor = (x[0] - 4, "end") if is_output else (x[0] + 4, "start")
        strip = [
            rect(
                x[1] + side * k, y[place] - STRIP / 2, side - 2, STRIP, rx="2",
                fill_opacity=number_of(0.06 + 0.94 * float(share)),
                class_="minus" if vectors[place, k] < 0 else None,
            )
            for k, share in enumerate(shares[place, :MAX_STRIP])
        ]  # fmt: skip
        words = text(at, y[place] + 4, cut(label, 84), anchor)
        ends.append(
            element("g", words, *strip, class_="end", data_role=role, data_end=f"{role} {place}")
        )
    return ends
