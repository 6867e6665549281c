"""A drawing of attention: scores, mask, softmax, and what flows from the values to the outputs.

It is the same drawing for a search, a recommendation and a translation; only the labels change. How
one query is drawn is in `one_query`; several queries are drawn as a table of cells, and what flows
beside it, in `mixes` where the numbers of values have names. Before a lesson has matrices, each of
several queries has its own mix beside its weights, in `own_mixes`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qkvsearch.attention.symbols import numbered
from qkvsearch.attention.trace import Trace, trace
from qkvsearch.lessons.drawings.drawing import Drawing, NumberTable
from qkvsearch.lessons.drawings.strips import (
    line_opacity,
    line_width,
    number_of,
    strengths,
    strip,
    strip_width,
)
from qkvsearch.lessons.drawings.svg import curve, cut, number, picture, rect, text, wide
from qkvsearch.lessons.markup import Html, element
from qkvsearch.lessons.messages import (
    are_exact,
    decimals,
    decimals_of,
    digits,
    mark,
    say,
    shown,
    shown_power,
    with_decimals,
)
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
# The steps that it goes through, each with what it does.
STAGES = {
    "scores": "Q·Kᵀ",
    "scaled": "÷ √d",
    "masked": mark("mask"),
    "powers": mark("power"),
    "weights": "softmax",
    "outputs": "· V",
}
# The same before a lesson has matrices.
IN_WORDS = {"scores": mark("query · key"), "outputs": mark("mix")}
# Softmax in two steps: this is its second.
DIVIDED = mark("÷ sum")


@dataclass(frozen=True, eq=False)
class Asker:
    """Who may ask in a drawing of one query: the label, their keys, and what they may attend to."""

    label: str
    # (S, d), and bool (1, S).
    keys: np.ndarray
    seen: np.ndarray


@dataclass(frozen=True, eq=False)
class Replacement:
    """A word in place of one of those that are asked: its label, and all that it changes."""

    label: str
    # Labels of the queries (L,) and of the keys (S,), and their numbers.
    rows: Sequence[str]
    columns: Sequence[str]
    # (L, d), (S, d) and (S, dv).
    queries: np.ndarray
    keys: np.ndarray
    values: np.ndarray


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
    # The stage that it begins with, one of STAGES: those before it are known already, and cannot be
    # turned to. "" for the first.
    begins: str = ""
    # The stage that it ends with; "" for the last one that its matrices allow.
    until: str = ""
    # What to do with it first, a sentence above the picture on the page; "" for nothing.
    tries: str = ""
    # Whether its stages are called by words, not by matrices. Then all numbers of a kind have the
    # same decimals, and of one query the powers of e are a stage.
    in_words: bool = False
    # Of each number of a query and a key, the place of the number of the values whose colour its
    # box has. Empty where it has none.
    kinds: Sequence[int] = ()
    # Who may be chosen to ask, the one that it opens with first; empty where there is no choice.
    askers: Sequence[Asker] = ()
    # What may stand in place of one of the keys, the one that it opens with first, and what that
    # place is called; empty where there is no choice.
    replacements: Sequence[Replacement] = ()
    replaced: str = ""
    # Whether beside each mix stands the value of the word that asks, which is its mix where it is
    # alone. The queries are the last keys then.
    shows_alone: bool = False

    @property
    def has_values(self) -> bool:
        """Whether it ends with outputs, mixed from values."""
        return self.bench.has_values and self.until in ("", "outputs")

    @property
    def has_weights(self) -> bool:
        return "weights" in self.computed

    @property
    def is_one(self) -> bool:
        """Whether there is one query, whose values add up to one mix."""
        return len(self.bench.rows) == 1 and self.bench.has_values

    @property
    def shown_stage(self) -> str:
        """The stage that it is drawn at where no script turns to another."""
        return "weights" if self.has_weights else "scores"

    @property
    def columns(self) -> Sequence[str]:
        return self.bench.rows if self.bench.is_projected else self.bench.columns

    @property
    def stages(self) -> list[str]:
        """The stages that it can be turned to."""
        computed = self.computed
        return computed[computed.index(self.begins) :] if self.begins else computed

    @property
    def computed(self) -> list[str]:
        """Those of STAGES in which something happens."""
        last = self.until or ("outputs" if self.bench.has_values else "scores")
        left_out = set()
        if self.factor == 1:
            left_out.add("scaled")
        if self.visible().all() and len(self.bench.masks) == 1:
            left_out.add("masked")
        if not (self.in_words and self.is_one):
            left_out.add("powers")
        up_to_last = list(STAGES)[: list(STAGES).index(last) + 1]
        return [stage for stage in up_to_last if stage not in left_out]

    def stage_name(self, stage: str) -> str:
        """Return what a stage does, as its button says it."""
        if stage == "scaled" and self.bench.scale == 1:
            return "÷ T"
        if stage == "weights" and "powers" in self.computed:
            return say(DIVIDED)
        if self.in_words and stage in IN_WORDS:
            return say(IN_WORDS[stage])
        return say(STAGES[stage])

    def number_name(self, stage: str) -> str:
        """Return what a number of a stage before the outputs is called."""
        if self.bench.scale == 1 and "scaled" in self.computed:
            # What is masked was divided before.
            if stage == "scaled":
                return say("score ÷ T")
            if stage == "masked":
                return say("masked score ÷ T")
        return say(NUMBERS[stage])

    @property
    def words_with_replaced(self) -> tuple[str, str, str]:
        """The words before the one that another may stand in place of, that one, and those after.

        Where none may be replaced, all of them stand before.
        """
        words = [*map(str, self.columns)]
        others = [one.columns for one in self.replacements]
        places = [j for j, word in enumerate(words) if any(one[j] != word for one in others)]
        place = places[0] if places else len(words)
        before, after = words[:place], words[place + 1 :]
        return " ".join(before), " ".join(words[place : place + 1]), " ".join(after)

    def alone(self, row: int) -> np.ndarray:
        """Return the value of the key that is the query of this row."""
        return self.steps()["values"][len(self.columns) - len(self.bench.rows) + row]

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

    def having(self, one: Replacement) -> "Flow":
        """Return the same drawing with another word in it."""
        given = {"queries": one.queries, "keys": one.keys, "values": one.values}
        bench = replace(self.bench, matrices=given, rows=one.rows, columns=one.columns)
        return replace(self, bench=bench, replacements=())

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
        names += [stage for stage in self.computed if stage != "powers"]
        steps = {name: np.asarray(computed[name].array) for name in names}
        if "powers" in self.computed:
            steps["powers"] = np.exp(np.asarray(computed["masked"].array))
        return steps

    def written(self, name: str) -> Callable[[float], str]:
        """Return how a number of these steps is written."""
        if not self.in_words:
            return shown
        if name == "powers":
            most = float(self.steps()["powers"].max())
            return lambda power: shown_power(power, most)
        array = self.steps()[name]
        if name == "values" and are_exact(array):
            return _shown_exactly
        n_decimals = decimals_of(array)
        return lambda entry: with_decimals(entry, n_decimals)

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
        names = [stage for stage in self.computed if stage != "outputs"]
        headings = [self.asks, self.asked, *map(self.number_name, names)]
        pairs: list[list[str | float]] = [
            [str(row), str(column), *(float(steps[name][i, j]) for name in names)]
            for i, row in enumerate(self.bench.rows)
            for j, column in enumerate(self.columns)
        ]
        if not self.has_values:
            return [(headings, pairs)]
        outputs = steps["outputs"]
        rows: list[list[str | float]] = [
            [str(row), *map(float, output)]
            for row, output in zip(self.bench.rows, outputs, strict=True)
        ]
        return [(headings, pairs), ([self.asks, *self.names_of_outputs], rows)]

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
            "computed": self.computed,
            "askers": [
                {"label": asker.label, "keys": asker.keys, "seen": asker.seen.tolist()}
                for asker in self.askers
            ],
            "replacements": [
                {
                    "rows": list(one.rows),
                    "columns": list(one.columns),
                    "queries": one.queries,
                    "keys": one.keys,
                    "values": one.values,
                    "value_texts": self.having(one).value_texts() if self.is_one else [],
                }
                for one in self.replacements
            ],
            "in_words": self.in_words,
            "shows_alone": self.shows_alone,
            "names": list(self.value_names),
            "number_names": {
                stage: self.number_name(stage) for stage in self.computed if stage != "outputs"
            },
        }

    def pictures(self, place: str) -> list[Html]:
        """Return the pairs of queries and keys, and what flows where there are values."""
        if self.is_one:
            # It draws what this class computes.
            from qkvsearch.lessons.drawings.one_query import one_query

            return [one_query(self, place)]
        if self.in_words and self.has_values:
            from qkvsearch.lessons.drawings.own_mixes import own_mixes

            return own_mixes(self, place)
        svgs = [_cells(self, f"{place}-pairs")]
        if self.has_values and self.value_names:
            from qkvsearch.lessons.drawings.mixes import mixes

            svgs.append(mixes(self, f"{place}-flows"))
        elif self.has_values:
            svgs.append(_flows(self, f"{place}-flows"))
        return svgs

    @property
    def value_names(self) -> Sequence[str]:
        """The labels of the values' numbers where they mean something, else none."""
        return list((self.bench.widths or {}).get("values", ()))

    @property
    def names_of_outputs(self) -> Sequence[str]:
        """What the numbers of an output are called."""
        n_numbers = self.steps()["values"].shape[1]
        return self.value_names or [say("output {n}", n=n + 1) for n in range(n_numbers)]

    @property
    def qualities(self) -> Sequence[str]:
        """The labels of the values' numbers."""
        return self.value_names or numbered(self.steps()["values"].shape[1])

    @property
    def has_bars_of_values(self) -> bool:
        """Whether a value of one query has a bar for each of its numbers, and no label."""
        if not (self.in_words and self.is_one):
            return False
        return not all(self.value_of(j) for j in range(len(self.columns)))

    def value_texts(self) -> list[str]:
        """Return what is written of the value of each key in a drawing of one query."""
        from qkvsearch.lessons.drawings.one_query import value_text

        return [value_text(self, j) for j in range(len(self.columns))]

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
    "powers": mark("power of e"),
    "weights": mark("weight"),
}


def _shown_exactly(number: float) -> str:
    with decimals(digits() + 1):
        return shown(number)


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
    write = part.written(stage)
    cells = [
        _cell(grid, (i, j), float(values[i, j]), float(shares[i, j]), bool(visible[i, j]), write)
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


def _cell(
    grid: _Grid,
    at: tuple[int, int],
    value: float,
    share: float,
    is_visible: bool,
    write: Callable[[float], str],
) -> Html:
    """Return the cell of a query and a key. share: how strong its number is drawn, 0 to 1. write:
    how it is written where there is room."""
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
        written = write(value)
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


# --- the SVG: what flows ---


def _flows(part: Flow, place: str) -> Html:
    """Draw the values at the left, the outputs at the right, and a line for each weight."""
    steps = part.steps()
    rows = list(part.bench.rows)
    columns = list(part.columns)
    weights = np.nan_to_num(steps["weights"])
    height = ROW * max(len(rows), len(columns))
    of_values = _heights(len(columns), TOP, height)
    of_outputs = _heights(len(rows), TOP, height)
    values_room = _room(columns) + strip_width(steps["values"]) + 8
    outputs_room = _room(rows) + strip_width(steps["outputs"]) + 8
    left = values_room + 8
    right = WIDE - outputs_room - 8
    lines = []
    for i, j in np.ndindex(weights.shape):
        weight = float(weights[i, j])
        line = curve(
            left,
            of_values[j],
            right,
            of_outputs[i],
            data_at=f"{i} {j}",
            stroke_width=line_width(weight),
            stroke_opacity=line_opacity(weight),
        )
        lines.append(line)
    heading = say("outputs, for each {asks}", asks=part.asks)
    late = text(WIDE, 13, heading, "end", class_="side")
    ends = [
        *_ends(columns, steps["values"], of_values, values_room - 4, "value"),
        *_ends(rows, steps["outputs"], of_outputs, right + 4, "output"),
    ]
    title = say("{caption}: what flows", caption=part.caption)
    heads = [
        text(0, 13, say("values"), class_="side"),
        # What the page's script shows with the outputs alone.
        element("g", late, class_="late"),
    ]
    inner = element("g", *lines, class_="flows", fill="none")
    return picture(WIDE, TOP + height + 2, place, title, part.told, *heads, inner, *ends)


def _room(labels: Sequence[str]) -> float:
    """Return the width of a column of labels."""
    return min(max(map(wide, labels)) * MARGIN, END_LABEL) + 8


def _heights(n: int, top: float, height: float) -> list[float]:
    """Return the middles of n rows that share a height below the top."""
    return [top + (k + 0.5) * height / n for k in range(n)]


def _ends(
    labels: Sequence[str], vectors: np.ndarray, heights: Sequence[float], edge: float, role: str
) -> list[Html]:
    """Return a label and a vector's strip at each end of the flows.

    heights: of the ends. edge: where the flows begin or end, beside the strips. role: "value",
    whose strips end at the edge, or "output", whose strips begin there.
    """
    width = strip_width(vectors)
    ends = []
    for place, (label, y) in enumerate(zip(labels, heights, strict=True)):
        label_text = cut(label, END_LABEL)
        if role == "value":
            boxes = strip(vectors, place, (edge - width, y))
            words = text(edge - width - 8, y + 4, label_text, "end")
        else:
            boxes = strip(vectors, place, (edge, y))
            words = text(edge + width + 8, y + 4, label_text, "start")
        of_end = {"data_role": role, "data_end": f"{role} {place}"}
        ends.append(element("g", words, *boxes, class_="end", **of_end))
    return ends
