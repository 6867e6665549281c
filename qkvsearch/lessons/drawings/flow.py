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
# As wide as this, it has room for all digits of its number; a narrower one has two decimals.
NUMBER_CELL = 44
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
# The room for a bar's number, and the height of a line; a line with the numbers of a key below its
# name is higher, by so much.
AMOUNT = 36
LINE = 26
NUMBER_LINE = 13
# A query or key of more numbers than these is drawn without them.
MAX_NUMBERS = 2
# The steps that it goes through, each with what it does.
STAGES = {
    "scores": "Q·Kᵀ",
    "scaled": "÷ √d",
    "masked": mark("mask"),
    "weights": "softmax",
    "outputs": "· V",
}
# The same before a lesson has matrices.
IN_WORDS = {"scores": mark("query · key"), "outputs": mark("mix")}


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
    # The stage that it ends with, one of STAGES; "" for the last one that its matrices allow.
    until: str = ""
    # Whether its stages are called by words, not by matrices.
    in_words: bool = False

    @property
    def has_values(self) -> bool:
        """Whether it ends with outputs, mixed from values."""
        return self.bench.has_values and self.until in ("", "outputs")

    @property
    def has_weights(self) -> bool:
        return "weights" in self.stages

    @property
    def shown_stage(self) -> str:
        """The stage that it is drawn at where no script turns to another."""
        return "weights" if self.has_weights else "scores"

    @property
    def columns(self) -> Sequence[str]:
        return self.bench.rows if self.bench.is_projected else self.bench.columns

    @property
    def stages(self) -> list[str]:
        """Those of STAGES in which something happens."""
        last = self.until or ("outputs" if self.bench.has_values else "scores")
        left_out = set()
        if self.factor == 1:
            left_out.add("scaled")
        if self.visible().all() and len(self.bench.masks) == 1:
            left_out.add("masked")
        up_to_last = list(STAGES)[: list(STAGES).index(last) + 1]
        return [stage for stage in up_to_last if stage not in left_out]

    def stage_name(self, stage: str) -> str:
        """Return what a stage does, as its button says it."""
        if stage == "scaled" and self.bench.scale == 1:
            return "÷ T"
        if self.in_words and stage in IN_WORDS:
            return say(IN_WORDS[stage])
        return say(STAGES[stage])

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
        values = given.get("values", given["keys"])
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
        if self.bench.has_values:
            names.append("values")
        names += self.stages
        return {name: np.asarray(computed[name].array) for name in names}

    @property
    def told(self) -> str:
        """What the drawing shows, in words."""
        array = self.steps()[self.shown_stage]
        best = np.nan_to_num(array).argmax(axis=1)
        each = [
            say("{row} → {column} {number}", row=row, column=self.columns[j], number=numbers[j])
            for row, numbers, j in zip(self.bench.rows, array, best, strict=True)
        ]
        pairs = say("; ").join(each)
        if self.has_weights:
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
            "in_words": self.in_words,
        }

    def pictures(self, place: str) -> list[Html]:
        """Return the pairs of queries and keys, and what flows where there are values."""
        if len(self.bench.rows) == 1 and self.bench.has_values:
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
    stage = part.shown_stage
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
    is_narrow = grid.width < NUMBER_CELL
    narrow = "yes" if is_narrow else None
    body = element("g", *cells, class_="cells", data_stage=stage, data_cells=narrow)
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
    written = ""
    if grid.width >= NUMBER_CELL:
        written = shown(value)
    elif grid.width >= MIN_CELL:
        written = cell_text(value)
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
    """Draw a query, a bar for each key, and where there are values these and the mix below.

    What stands at the right of the bars has `data-x`, and what may be wider `data-narrow`: the
    page's script moves and stretches them where there is room.
    """
    steps = part.steps()
    columns = _Columns.of(part)
    end = columns.heights[-1] + columns.line / 2 + 14
    heads = [(0, part.asks), (KEYS, part.asked)]
    sides = [text(x, 13, words, class_="side") for x, words in heads]
    lines, cells, labels = _keys_of_one_query(part, steps, columns)
    labels += _words_of_query(part, columns.middle)
    inner = [
        element("g", *lines, class_="flows", fill="none"),
        element("g", *cells, class_="cells", data_stage=part.shown_stage),
    ]
    height = end - 8
    if part.has_values:
        sides.append(_at_right(VALUES, 13, say("values"), class_="side"))
        sides.append(text(0, end + LINE / 2 + 4, say("mix"), class_="side"))
        amounts = []
        for k, (quality, x) in enumerate(zip(part.qualities, steps["outputs"][0], strict=True)):
            y = end + (k + 0.5) * LINE
            labels.append(text(KEYS, y + 4, cut(str(quality), BARS - KEYS - 2)))
            amounts += _bar(y, float(x), 1.0, columns.weights)
        attributes = {"class_": "end", "data_role": "output", "data_end": "output 0"}
        inner.append(element("g", *amounts, **attributes))
        height = end + LINE * len(part.qualities) + 2
    title = say("{caption}: each query and key", caption=part.caption)
    drawn = picture(WIDE, height, place, title, part.told, *sides, *labels, *inner)
    return Html(drawn.replace("<svg ", '<svg data-stretch="yes" ', 1))


@dataclass(frozen=True)
class _Columns:
    """Where the keys of one query are: the middles of their lines, and the numbers' right edge."""

    heights: list[float]
    # Of each key.
    line: float
    weights: float

    @classmethod
    def of(cls, part: Flow) -> "_Columns":
        has_numbers = part.steps()["keys"].shape[1] <= MAX_NUMBERS
        has_mixes = part.has_values and not part.value_of(0)
        line = LINE + (NUMBER_LINE if has_numbers or has_mixes else 0)
        heights = [TOP + (j + 0.5) * line for j in range(len(part.columns))]
        return cls(heights, line, WEIGHTS if part.has_values else WIDE - 2)

    @property
    def middle(self) -> float:
        """The height of the query."""
        return (self.heights[0] + self.heights[-1]) / 2


def _keys_of_one_query(
    part: Flow, steps: dict[str, np.ndarray], columns: _Columns
) -> tuple[list[Html], list[Html], list[Html]]:
    """Return for each key the flow from the query, the bar of its number, and its labels."""
    names = [str(column) for column in part.columns]
    numbers = steps[part.shown_stage][0].tolist()
    shares = strengths(steps[part.shown_stage], part.shown_stage)[0]
    weights = np.nan_to_num(steps["weights"][0]) if part.has_weights else np.zeros(len(names))
    visible = part.visible()[0]
    lines: list[Html] = []
    cells: list[Html] = []
    labels: list[Html] = []
    for j, y in enumerate(columns.heights):
        pair = f"0 {j}"
        weight = float(weights[j])
        ends = (FLOWS, columns.middle, KEYS - 4, y)
        width, opacity = _width(weight), _opacity(weight)
        lines.append(curve(*ends, class_="tie"))
        lines.append(curve(*ends, data_at=pair, stroke_width=width, stroke_opacity=opacity))
        kind = "cell" if visible[j] else "cell hides"
        touch = rect(
            KEYS,
            y - columns.line / 2,
            WIDE - KEYS,
            columns.line,
            class_="touch",
            data_narrow=number(WIDE - KEYS),
        )
        bar = _bar(y, numbers[j], float(shares[j]), columns.weights)
        cells.append(element("g", *bar, touch, class_=kind, data_at=pair, data_value=numbers[j]))
        vector = steps["keys"][j]
        written = shown_numbers(vector) if len(vector) <= MAX_NUMBERS else ""
        labels += _name_and_number(names[j], written, (KEYS, y), BARS - KEYS - 2, j)
        if part.has_values:
            labels += _value_of_key(part, steps["values"], j, y)
    return lines, cells, labels


def shown_numbers(vector: np.ndarray) -> str:
    """Write the numbers of a query or key.

    >>> shown_numbers(np.array([4.739, 7.229]))
    '4.74, 7.23'
    """
    return ", ".join(shown(entry) for entry in vector.tolist())


def _name_and_number(
    name: str, written: str, at: tuple[float, float], room: float, place: int
) -> list[Html]:
    """Return a key's name, and below it its numbers where there are any."""
    x, y = at
    attributes = {"data_role": "key", "data_column": str(place)}
    if not written:
        return [text(x, y + 4, cut(name, room), **attributes)]
    return [
        text(x, y - 2, cut(name, room), **attributes),
        text(x, y + 12, written, class_="of-key", data_column=str(place)),
    ]


def _value_of_key(part: Flow, values: np.ndarray, j: int, y: float) -> list[Html]:
    """Return what a key's value is: its one label, or its numbers as a strip with the largest."""
    only = part.value_of(j)
    if only:
        return [_at_right(VALUES, y + 4, cut(only, WIDE - VALUES))]
    strip = _strip(values, j, VALUES, y - 8, moves=True)
    most = int(np.argmax(np.abs(values[j])))
    words = f"{part.qualities[most]} {shown(float(values[j, most]))}"
    of_value: dict[str, str] = {"data_role": "value", "data_end": f"value {j}"}
    return [
        element("g", *strip, class_="end", **of_value),
        _at_right(VALUES, y + 13, cut(words, WIDE - VALUES)),
    ]


def _words_of_query(part: Flow, middle: float) -> list[Html]:
    """Return the words of a query one below another, each with its number where they are few."""
    query = str(part.bench.rows[0])
    vector = part.steps()["queries"][0]
    words = [query] if len(vector) == 1 else [word for word in query.split() if word != "+"]
    has_numbers = len(words) == len(vector) <= MAX_NUMBERS
    if not has_numbers:
        words = query.split()
    step = 36 if has_numbers else 16
    labels = []
    for n, word in enumerate(words):
        y = middle + 4 + step * (n - (len(words) - 1) / 2)
        if has_numbers:
            y -= 6
            labels.append(text(0, y + 14, shown(float(vector[n])), class_="of-query", data_row="0"))
        labels.append(text(0, y, cut(word, FLOWS), data_row="0"))
    return labels


def _at_right(x: float, y: float, words: str, **attributes: str) -> Html:
    """Return a text at the right of the bars, which the page's script moves with their end."""
    return text(x, y, words, data_x=number(x), **attributes)


def _bar(y: float, value: float, share: float, edge: float) -> list[Html]:
    """Return a bar as long as its share of 1, and its number, which ends at the edge."""
    minus = "minus" if value < 0 else None
    longest = edge - AMOUNT - BARS
    long = longest * min(share, 1.0)
    amount = text(edge, y + 4, shown(value), "end", class_="amount", data_x=number(edge))
    return [
        rect(
            BARS,
            y - 8,
            long,
            16,
            class_=minus,
            data_wide=number(longest),
            data_narrow=number(longest),
        ),
        amount,
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
    label_x, strip_x = x
    ends = []
    for place, label in enumerate(labels):
        strip = _strip(vectors, place, strip_x, y[place])
        label_text = cut(label, END_LABEL)
        if role == "output":
            words = text(label_x - 4, y[place] + 4, label_text, "end")
        else:
            words = text(label_x + 4, y[place] + 4, label_text, "start")
        end = element("g", words, *strip, class_="end", data_role=role, data_end=f"{role} {place}")
        ends.append(end)
    return ends


def _strip(vectors: np.ndarray, place: int, x: float, y: float, moves: bool = False) -> list[Html]:
    """Return the numbers of one of the vectors as boxes side by side, around the height y.

    moves: whether the page's script moves them with the end of the bars.
    """
    shares = strengths(vectors, "")
    side = strip_of(vectors)
    return [
        rect(
            x + side * k,
            y - STRIP / 2,
            side - 2,
            STRIP,
            rx="2",
            fill_opacity=number_of(0.06 + 0.94 * float(share)),
            class_="minus" if vectors[place, k] < 0 else None,
            data_x=number(x + side * k) if moves else None,
        )
        for k, share in enumerate(shares[place, :MAX_STRIP])
    ]
