"""The drawing of one query: its keys with a bar each, and below them what their values add up to.

The query stands at the top and is led to each key along the left edge. Where there are values, they
stand at the right of the bars, and flow along the right edge into the mix at the bottom: each of
its bars consists of one part for each value, as long as weight × value. Bars and parts have one
scale. What flows lies side by side, and before a lesson has matrices each number of the mix has a
colour of its own, and below each bar stands how its number comes about.

The page's script makes the picture as wide as its place. So what it moves has `data-x`, what it
widens `data-narrow`, and `data-share` or `data-grow` say which share of the additional width that
takes, all of it where they are left out. `data-shift` moves a whole group; `data-gutter` is the
share that stays free at the right edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qkvsearch.lessons.drawings.own_mixes import names_of_colours
from qkvsearch.lessons.drawings.shift import Place, shift
from qkvsearch.lessons.drawings.strips import number_of, strengths, strip
from qkvsearch.lessons.drawings.svg import (
    LETTER,
    cut,
    kind_class,
    line,
    number,
    picture,
    rect,
    text,
    wide,
)
from qkvsearch.lessons.markup import Html, element
from qkvsearch.lessons.messages import say, shown

if TYPE_CHECKING:
    from qkvsearch.lessons.drawings.flow import Flow

# All lengths are in units of the picture, which is as wide as this.
WIDE = 360
# The line along the left edge that leads from the query to its keys, and the radius of its turns.
RAIL = 7
TURN = 8
# Where keys, bars and values begin, where the numbers of bars end, and the sign between a weight
# and its value.
KEYS = 24
BARS = 118
WEIGHTS = 248
TIMES = 256
VALUES = 264
# A letter may be a little wider than `wide` estimates.
MARGIN = 1.12
# The room at the right edge in which values flow into the mix, and how wide a whole value is there.
GUTTER = 28
MAX_FLOW = 18
MIN_FLOW = 0.6
# The radius of its innermost turn.
BEND = 5
# Of the additional width, the share by which that room and what flows there get wider.
GUTTER_SHARE = 0.12
# A value's label is a little narrower than `cut` estimates.
VALUE_ROOM = WIDE - GUTTER - VALUES + 8
# How high the bar of a 1 is, of a value.
BAR_OF_VALUE = 24
# Of the additional width, the share that the column of keys gets.
KEYS_SHARE = 0.15
# The size of small type.
SMALL = 12
# The room for bars of scores whose query is typed, in lengths of the longest one.
ROOM = 2.0
# The room for a bar's number, and how far below the bar's middle its calculation stands.
AMOUNT = 46
BELOW_BAR = 18
# The room for a number of the query, which may be typed there.
ENTRY = 52
# The height of a line; one with numbers below its name is higher, by so much.
LINE = 21
NUMBER_LINE = 10
# How high a bar is, of a key and of the mix.
BAR = 14
MIX_BAR = 16
MIX_LINE = 21
SUM_LINE = 30
# A query or key of more numbers than these is drawn as a strip of boxes.
MAX_NUMBERS = 3
# So many boxes a strip has at most.
MAX_BOXES = 40
# Below this, a part of the mix is not drawn, and not written as an addend.
UNSEEN = 0.0005
# So many addends are written beside a bar.
MAX_ADDENDS = 3


def one_query(part: Flow, place: str) -> Html:
    """Draw the flow's query, the bar of each key, and where there are values the mix of them."""
    steps = part.steps()
    columns = _Columns.of(part)
    stage = part.shown_stage
    ties, cells, labels = _keys(part, steps, columns)
    heading = text(
        BARS,
        columns.top - 10,
        part.number_name(stage),
        class_="side stage-name",
        data_x=number(BARS),
        data_share=number_of(KEYS_SHARE),
    )
    inner = [
        *_query(part, steps["queries"]),
        text(KEYS, columns.top - 10, part.asked, class_="side"),
        heading,
        element("g", *ties, class_="ties", fill="none", data_role="query"),
        *labels,
        element("g", *[_track(y, columns, BAR) for y in columns.heights], class_="tracks"),
    ]
    if part.shows_alone:
        # Beside the query there is room: its boxes have these colours, too.
        names, _ = names_of_colours(part.value_names, BARS, WIDE - GUTTER, KEYS_SHARE)
        inner += names
    inner.append(element("g", *cells, class_="cells", data_stage=stage))
    inner.append(_axis(part, columns))
    height = columns.end + 6
    if "powers" in part.computed and part.has_weights:
        inner.append(_sum(part, columns))
        height = columns.end + SUM_LINE
    early = None
    if part.has_values:
        early = height
        mixed, height = _mix(part, steps, columns)
        inner.append(mixed)
    title = say("{caption}: each query and key", caption=part.caption)
    drawn = picture(WIDE, height, place, title, part.told, *inner, early=early)
    gutter = f' data-gutter="{number_of(GUTTER_SHARE)}"' if part.has_values else ""
    return Html(drawn.replace("<svg ", f'<svg data-stretch="yes"{gutter} ', 1))


@dataclass(frozen=True)
class _Columns:
    """Where the keys are."""

    # The upper edge of the first line, and the height of each.
    top: float
    line: float
    # The middle of each line.
    heights: list[float]
    # The right edge of the bars' numbers.
    weights: float

    @classmethod
    def of(cls, part: Flow) -> _Columns:
        top = 66
        if _is_strip(part.steps()["queries"]):
            top = 90 if part.in_words else 78
        line = LINE + NUMBER_LINE
        heights = [top + (j + 0.5) * line for j in range(len(part.columns))]
        return cls(top, line, heights, WEIGHTS if part.has_values else WIDE - 2)

    @property
    def end(self) -> float:
        """The lower edge of the last line."""
        return self.heights[-1] + self.line / 2

    @property
    def longest(self) -> float:
        """The length of a bar of 1."""
        return self.weights - AMOUNT - BARS


def _is_strip(vectors: np.ndarray) -> bool:
    return vectors.shape[1] > MAX_NUMBERS


# --- the query, its keys, and the bars of these ---


def _query(part: Flow, queries: np.ndarray) -> list[Html]:
    """Return the words of the query in a line, each with its number, or with a strip below."""
    head = text(0, 13, part.asks, class_="side")
    query = str(part.bench.rows[0])
    vector = queries[0]
    words = query.split(" + ") if " + " in query else query.split()
    if len(vector) == 1:
        words = [query]
    if _is_strip(queries) or len(words) != len(vector):
        label = text(0, 31, cut(query, WIDE), data_row="0")
        if not _is_strip(queries):
            return [head, label]
        # As strong as a key's box with the same number.
        keys = part.steps()["keys"]
        y = 58 if part.in_words else 46
        boxes = _boxes(part, np.vstack([keys, queries]), len(keys), y)
        strip_of_query = element("g", *boxes, class_="vector", data_role="query")
        return [head, label, *(_box_numbers(keys) if part.in_words else []), strip_of_query]
    write = part.written("queries")
    labels = [head]
    x = 0.0
    for n, word in enumerate(words):
        labels.append(text(x, 31, word, data_row="0"))
        x += wide(word) * MARGIN + 12
        # The page's script makes a field of it, of this width.
        written = write(float(vector[n]))
        labels.append(text(x, 31, written, class_="of-query", data_n=str(n), data_row="0"))
        x += ENTRY + 12
    return labels


def _boxes(part: Flow, vectors: np.ndarray, place: int, y: float) -> list[Html]:
    """Return a vector's numbers as a strip below a name, as wide as the column of keys."""
    n = min(vectors.shape[1], MAX_BOXES)
    classes = [kind_class(kind) for kind in part.kinds]
    return strip(vectors, place, (KEYS, y), side=_side(n), most=n, classes=classes)


def _side(n: int) -> float:
    """Return the width of each of n boxes, with the gap behind it."""
    return (BARS - KEYS - 10) / n


def _box_numbers(vectors: np.ndarray) -> list[Html]:
    """Return the numbers of the boxes of a strip, above it; none where they are too narrow."""
    side = _side(vectors.shape[1])
    if side < SMALL * LETTER:
        return []
    middles = [KEYS + (k + 0.5) * side - 1 for k in range(vectors.shape[1])]
    return [text(x, 48, str(k), "middle", class_="side") for k, x in enumerate(middles, start=1)]


def _keys(
    part: Flow, steps: dict[str, np.ndarray], columns: _Columns
) -> tuple[list[Html], list[Html], list[Html]]:
    """Return for each key the line from the query, the bar of its number, and its labels."""
    stage = part.shown_stage
    shares, zero = _shares(part, stage)
    visible = part.visible()[0]
    keys = steps["keys"]
    write = part.written(stage)
    write_key = part.written("keys")
    start = 36
    ties: list[Html] = []
    cells: list[Html] = []
    labels: list[Html] = []
    for j, y in enumerate(columns.heights):
        name = str(part.columns[j])
        value = float(steps[stage][0, j])
        turn = number(y - TURN)
        tie = f"M{RAIL} {number(start)}V{turn}Q{RAIL} {number(y)} {RAIL + TURN} {number(y)}"
        ties.append(element("path", d=f"{tie}H{KEYS - 3}", class_="tie"))
        calculation = text(
            BARS,
            y + BELOW_BAR,
            _calculation(part, steps, j) if part.in_words else "",
            class_="side calculation",
            data_x=number(BARS),
            data_share=number_of(KEYS_SHARE),
        )
        touch = rect(
            KEYS,
            y - columns.line / 2,
            WIDE - KEYS,
            columns.line,
            class_="touch",
            data_narrow=number(WIDE - KEYS),
        )
        cells.append(
            element(
                "g",
                *_bar(y, value, write(value), float(shares[j]), zero, columns),
                calculation,
                touch,
                class_="cell" if visible[j] else "cell hides",
                data_at=f"0 {j}",
                data_value=value,
            )
        )
        room = BARS - KEYS - 4
        of_key = {"data_role": "key", "data_column": str(j)}
        labels.append(text(KEYS, y - 3, cut(name, room), **of_key))
        if _is_strip(keys):
            labels.append(
                element(
                    "g",
                    *_boxes(part, keys, j, y + 8),
                    class_="vector",
                    data_role="key",
                    data_key=str(j),
                )
            )
        else:
            written = ", ".join(map(write_key, keys[j].tolist()))
            labels.append(text(KEYS, y + 11, written, class_="of-key", data_column=str(j)))
    return ties, cells, labels


def _calculation(part: Flow, steps: dict[str, np.ndarray], j: int) -> str:
    """Return how the number of a bar comes about: a score from products, a weight from powers."""
    if part.has_weights:
        write = part.written("powers")
        powers = steps["powers"][0]
        return f"{write(float(powers[j]))} ÷ {write(float(powers.sum()))}"
    write_query, write_key = part.written("queries"), part.written("keys")
    pairs = list(zip(steps["queries"][0].tolist(), steps["keys"][j].tolist(), strict=True))
    score = _read(part.written("scores")(float(steps["scores"][0, j])))
    if counts := counted(steps["queries"][0], steps["keys"][j]):
        total, written = counts
        return written if np.isclose(total, score, rtol=0, atol=1e-9) else f"≈ {written}"
    if _is_strip(steps["keys"]):
        pairs = [pair for pair in pairs if pair[0] and pair[1]]
    products = [f"{write_query(a)} × {in_brackets(write_key(b))}" for a, b in pairs]
    written = " + ".join(
        f"{products.count(one)} × ({one})" if products.count(one) > 1 else one
        for one in dict.fromkeys(products)
    )
    total = sum(_read(write_query(a)) * _read(write_key(b)) for a, b in pairs)
    return written if np.isclose(total, score, rtol=0, atol=1e-9) else f"≈ {written}"


def counted(query: np.ndarray, key: np.ndarray) -> tuple[float, str] | None:
    """Return the product of two vectors whose numbers are 0, or 1/√n where n are not, and how it
    comes from counts: of what both have, and of what each has. None for other vectors.

    >>> both, one = np.full(4, 0.5), np.array([0, 0, 1.0, 0])
    >>> counted(both, one), counted(both, both), counted(both, one * 2)
    ((0.5, '1 ÷ √4'), (1.0, '4 ÷ 4'), None)
    """
    sizes = [int(np.count_nonzero(vector)) for vector in (query, key)]
    if len(query) <= MAX_NUMBERS or not all(sizes):
        return None
    for vector, size in zip((query, key), sizes, strict=True):
        if not np.allclose(vector[vector != 0], size**-0.5):
            return None
    n_shared = int(np.count_nonzero(query * key))
    product = sizes[0] * sizes[1]
    below = str(sizes[0]) if sizes[0] == sizes[1] else f"√{product}"
    return n_shared / math.sqrt(product), f"{n_shared} ÷ {below}"


def in_brackets(written: str) -> str:
    """Write what stands behind a sign: a number below 0 in brackets."""
    return f"({written})" if written.startswith("−") else written


def _read(written: str) -> float:
    return float(written.replace("≈", "").replace("−", "-"))


def _sum(part: Flow, columns: _Columns) -> Html:
    """Return the line of the sum below the bars, of weights, or as the script turns, of powers.

    Where there is a mix, it stands in its place, and is hidden while the mix is shown.
    """
    y = columns.end + SUM_LINE / 2
    edge = columns.weights
    label = text(
        BARS,
        y + 4,
        say("sum"),
        class_="side",
        data_x=number(BARS),
        data_share=number_of(KEYS_SHARE),
    )
    write = part.written("weights")
    weights = part.steps()["weights"][0].tolist()
    is_exact = write(sum(float(write(one).replace("≈", "")) for one in weights)) == write(1.0)
    total = "1" if is_exact else "≈ 1"
    amount = text(edge, y + 4, total, "end", class_="amount total", data_x=number(edge))
    hidden = "hidden" if part.has_values else None
    return element("g", label, amount, class_="sum", visibility=hidden)


def _track(y: float, columns: _Columns, high: float) -> Html:
    """Return what a bar of weight 1 would be, so that a weight is seen as a share of the whole."""
    return rect(
        BARS,
        y - high / 2,
        columns.longest,
        high,
        data_x=number(BARS),
        data_share=number_of(KEYS_SHARE),
        data_narrow=number(columns.longest),
        data_grow=number_of(1 - KEYS_SHARE),
    )


def _shares(part: Flow, stage: str) -> tuple[np.ndarray, float]:
    """Return how long each bar is, as a share of the room (S,), and where bars begin.

    A bar below 0 goes from there to the other side. Where the query's numbers can be typed, the
    longest bar takes half of the room, so that it may become longer.
    """
    shares = strengths(part.steps()[stage], stage)[0]
    if stage == "weights":
        return shares, 0.0
    signed = shares * np.sign(np.nan_to_num(part.steps()[stage][0]))
    low = min(0.0, float(signed.min()))
    is_typed = not _is_strip(part.steps()["queries"])
    most = ROOM if is_typed else max(0.0, float(signed.max())) - low or 1.0
    return shares / most, -low / most


def _axis(part: Flow, columns: _Columns) -> Html:
    """Return the line that bars begin at where some are below 0; the page's script moves it."""
    _, zero = _shares(part, part.shown_stage)
    x = BARS + zero * columns.longest
    visibility = None if zero else "hidden"
    return line(x, columns.top, x, columns.end, class_="zero", visibility=visibility)


def _bar(
    y: float, value: float, written: str, share: float, zero: float, columns: _Columns
) -> list[Html]:
    """Return a bar as long as its share of the room, and its number, which ends at the edge.

    zero: where bars begin, as a share of the room.
    """
    edge = columns.weights
    start = zero - share if value < 0 else zero
    box = rect(
        BARS,
        y - BAR / 2,
        columns.longest * min(share, 1.0),
        BAR,
        class_="minus" if value < 0 else None,
        transform=f"translate({number(start * columns.longest)} 0)" if start else None,
        data_x=number(BARS),
        data_share=number_of(KEYS_SHARE),
        data_wide=number(columns.longest),
        data_narrow=number(columns.longest),
        data_grow=number_of(1 - KEYS_SHARE),
    )
    amount = text(edge, y + 4, written, "end", class_="amount", data_x=number(edge))
    return [box, amount]


# --- the values, and what they add up to ---


def _mix(part: Flow, steps: dict[str, np.ndarray], columns: _Columns) -> tuple[Html, float]:
    """Return the values, their flow and the mix as one group, and how high the picture is."""
    values = steps["values"]
    parts = np.nan_to_num(np.nan_to_num(steps["weights"][0])[:, None] * values)
    top = columns.end + 16
    if part.shows_alone:
        at = Place(BARS, WIDE - GUTTER - BARS, top, KEYS_SHARE)
        rows, end, height = shift(part, parts, at)
        ends = stacked(parts, end)
    else:
        ends = [top + (k + 0.5) * MIX_LINE for k in range(values.shape[1])]
        rows = _rows_of_mix(part, parts, ends, columns)
        height = top + MIX_LINE * len(ends) + 2
    # What any word that may be chosen brings.
    drawn = np.any([values != 0, *(one.values != 0 for one in part.replacements)], axis=0)
    flows = [
        _flow(one, float(parts[one.key, one.quality]), part.in_words)
        for one in ribbons(parts, drawn, columns.heights, ends)
    ]
    inner = [_at_right(VALUES, columns.top - 10, say("values"), class_="side")]
    for j, y in enumerate(columns.heights):
        inner.append(_at_right(TIMES, y + 4, "×", "middle", class_="side"))
        inner += _value(part, values, j, y)
    inner.append(element("g", *flows, class_="flows", fill="none", data_shift="1"))
    inner.append(text(0, top + MIX_LINE / 2 + 4, say("mix"), class_="side"))
    return element("g", *inner, *rows, class_="late"), height


def _rows_of_mix(
    part: Flow, parts: np.ndarray, heights: Sequence[float], columns: _Columns
) -> list[Html]:
    """Return a bar for each number of the mix. parts (keys, numbers): what each key brings."""
    outputs = np.nan_to_num(part.steps()["outputs"][0])
    # Parts that are less than 0 cannot stand end to end: the bar is one then.
    has_parts = bool((parts >= 0).all())
    most = max(1.0, float(np.abs(outputs).max(initial=0.0)))
    write = part.written("outputs")
    rows = []
    for k, (name, y) in enumerate(zip(part.names_of_outputs, heights, strict=True)):
        bars = _parts_of_bar(parts[:, k], outputs[k], y, columns.longest / most, has_parts)
        added = addends(parts[:, k], write) if has_parts else ""
        amount = write(float(outputs[k]))
        beside = _beside(cut(str(name), VALUE_ROOM), amount, added, y, columns.weights)
        rows.append(
            element(
                "g",
                _track(y, columns, MIX_BAR),
                *bars,
                *beside,
                class_=f"mixed {kind_class(k)}" if part.in_words else "mixed",
                data_role="output",
                data_quality=str(k),
            )
        )
    return rows


def _beside(name: str, amount: str, added: str, y: float, edge: float) -> list[Html]:
    """Return the addends at the left of a bar of the mix, and its number and name at the right."""
    at_left = {"data_x": number(BARS - 8), "data_share": number_of(KEYS_SHARE)}
    return [
        text(BARS - 8, y + 4, added, "end", class_="addends", **at_left),
        text(edge, y + 4, amount, "end", class_="amount", data_x=number(edge)),
        _at_right(VALUES, y + 4, name),
    ]


def addends(parts: np.ndarray, write: Callable[[float], str] = shown) -> str:
    """Write what a number of the mix is the sum of; "" where that is one number, or many, or is
    wider than its place. Where rounded addends give another sum than the one shown, each has a
    digit more.

    >>> addends(np.array([0.23, 0.0, 0.11])), addends(np.array([0.16]))
    ('0.23 + 0.11', '')
    """
    seen = [part for part in parts.tolist() if part >= UNSEEN]
    if not 1 < len(seen) <= MAX_ADDENDS:
        return ""
    rounded = [write(part) for part in seen]
    if write(sum(map(float, rounded))) != write(float(parts.sum())):
        decimals = max(len(text.partition(".")[2]) for text in rounded)
        rounded = [f"{part:.{decimals + 1}f}" for part in seen]
    written = " + ".join(rounded)
    return written if wide(written, SMALL) <= BARS - 40 else ""


def _value(part: Flow, values: np.ndarray, j: int, y: float) -> list[Html]:
    """Return what a key's value is: a bar for each number, or its one label, or its numbers as a
    strip with the largest.
    """
    if part.has_bars_of_values:
        return [_bars_of_value(values[j], j, y)]
    words = value_text(part, j)
    of_key = {"data_value_of": str(j)}
    if part.value_of(j):
        return [_at_right(VALUES, y + 4, words, data_role="value", **of_key)]
    side = min(13.0, VALUE_ROOM / min(values.shape[1], 5))
    classes = [kind_class(k) for k in range(values.shape[1])] if part.in_words else []
    boxes = strip(values, j, (VALUES, y - 7), side=side, classes=classes)
    return [
        element("g", *boxes, class_="vector", data_role="value", data_shift="1"),
        _at_right(VALUES, y + 14, words, class_="side", **of_key),
    ]


def _bars_of_value(value: np.ndarray, j: int, y: float) -> Html:
    """Return a bar that stands for each number of a value, in the colour that it has in the mix."""
    side = (WIDE - GUTTER - VALUES - 2) / max(len(value), 5)
    most = max(1.0, float(np.abs(value).max()))
    boxes = []
    for k, entry in enumerate(value.tolist()):
        x = VALUES + k * side
        high = BAR_OF_VALUE * abs(entry) / most
        boxes += [
            rect(x, y - BAR_OF_VALUE / 2, side - 2, BAR_OF_VALUE, class_="track"),
            rect(x, y + BAR_OF_VALUE / 2 - high, side - 2, high, class_=kind_class(k)),
        ]
    return element(
        "g",
        *boxes,
        class_="vector bars-of-value",
        data_role="value",
        data_bars_of=str(j),
        data_shift="1",
    )


def value_text(part: Flow, j: int) -> str:
    """Return what is written of a key's value: its one label, or its numbers."""
    only = part.value_of(j)
    if only:
        return cut(only, VALUE_ROOM)
    value = part.steps()["values"][j]
    if part.value_names:
        return _entries(part.value_names, value, part.written("values"))
    return ", ".join(map(shown, value.tolist())) if len(value) <= MAX_NUMBERS else ""


def _entries(names: Sequence[str], value: np.ndarray, write: Callable[[float], str]) -> str:
    """Return a value's numbers that are not 0, where there is room; else its largest with its name,
    or alone where both are too wide.
    """
    numbers = ", ".join(write(entry) for entry in value.tolist() if entry)
    if wide(numbers, SMALL) <= VALUE_ROOM:
        return numbers
    most = int(np.argmax(np.abs(value)))
    largest = write(float(value[most]))
    words = f"{names[most]} {largest}"
    return words if wide(words, SMALL) <= VALUE_ROOM else largest


class Ribbon(NamedTuple):
    """What flows from a key to a number of the mix: where its middle runs, and its width."""

    key: int
    quality: int
    # The heights of its start and end, and how far to the right it goes in between.
    start: float
    end: float
    lane: float
    width: float


def ribbons(
    parts: np.ndarray, drawn: np.ndarray, starts: Sequence[float], ends: Sequence[float]
) -> list[Ribbon]:
    """Return what flows, side by side at each end and in between.

    parts (keys, qualities): how much each brings. drawn: bool, which of them are drawn. starts: the
    height of each key, ends: of each number of the mix. What goes further down runs further out,
    and so does what begins higher: what has one end does not cross.
    """
    unit = MAX_FLOW / max(1.0, float(np.abs(parts).sum()))
    widths = unit * np.abs(parts)
    n_keys, n_qualities = parts.shape
    found = []
    lane = float(BEND + MAX_FLOW)
    # From the outermost on.
    for k in range(n_qualities - 1, -1, -1):
        end = ends[k] + widths[:, k].sum() / 2
        for j in range(n_keys):
            width = float(widths[j, k])
            # Of one key, what runs further out begins higher.
            above = widths[j, k + 1 :].sum()
            start = starts[j] - widths[j].sum() / 2 + above + width / 2
            if drawn[j, k]:
                found.append(Ribbon(j, k, start, end - width / 2, lane - width / 2, width))
            end -= width
            lane -= width
    return found


def stacked(parts: np.ndarray, end: float) -> list[float]:
    """Return the heights at which numbers of the mix end that enter one bar below one another.

    end: the middle of that bar.
    """
    sizes = np.abs(parts).sum(axis=0)
    widths = MAX_FLOW * sizes / max(1.0, float(sizes.sum()))
    return (end - widths.sum() / 2 + np.cumsum(widths) - widths / 2).tolist()


def _flow(ribbon: Ribbon, share: float, has_colour: bool) -> Html:
    """Return the path of what a value brings to a number of the mix."""
    x = WIDE - GUTTER + 2
    lane = x + ribbon.lane
    turn = min(ribbon.lane, (ribbon.end - ribbon.start) / 2)
    r = number(turn)
    d = f"M{x} {number(ribbon.start)}H{number(lane - turn)}"
    d += f"A{r} {r} 0 0 1 {number(lane)} {number(ribbon.start + turn)}"
    d += f"V{number(ribbon.end - turn)}"
    d += f"A{r} {r} 0 0 1 {number(lane - turn)} {number(ribbon.end)}H{x}"
    return element(
        "path",
        d=d,
        class_=kind_class(ribbon.quality) if has_colour else None,
        data_at=f"0 {ribbon.key}",
        data_quality=str(ribbon.quality),
        data_value=share,
        stroke_width=number(max(ribbon.width, MIN_FLOW)),
        stroke_opacity="0.8" if abs(share) >= UNSEEN else "0",
    )


def _parts_of_bar(
    parts: np.ndarray, total: float, y: float, longest: float, has_parts: bool
) -> list[Html]:
    """Return the parts of a bar of the mix end to end, or one bar. longest: the length of 1."""
    pieces = parts if has_parts else np.array([abs(total)])
    boxes = []
    x = float(BARS)
    for j, piece in enumerate(pieces.tolist()):
        long = longest * max(piece, 0.0)
        boxes.append(
            rect(
                x,
                y - MIX_BAR / 2,
                long,
                MIX_BAR,
                class_="minus" if total < 0 else None,
                data_part=str(j) if has_parts else "all",
            )
        )
        x += long
    return boxes


def _at_right(x: float, y: float, words: str, anchor: str = "start", **attributes: str) -> Html:
    """Return a text at the right of the bars, which the page's script moves with their end."""
    return text(x, y, words, anchor, data_x=number(x), **attributes)
