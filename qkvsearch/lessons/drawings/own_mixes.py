"""Several queries before a lesson has matrices: each has its weights and, beside them, its own mix.

Above the weights stand the keys, each with its boxes and its value: a bar of length 1 whose
segments have the colours of its numbers. A query is a row: a cell for each key, with the weight and
the score that it comes from. Beside it, or below it where there is no room, stands its mix as such
a bar, and above that a thin one: what the mix is where the word is alone. Both pictures of a row
are as high as one another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.lessons.drawings.strips import number_of, spread_out, strip
from qkvsearch.lessons.drawings.svg import cut, kind_class, number, picture, rect, text, wide
from qkvsearch.lessons.markup import Html, element
from qkvsearch.lessons.messages import say

if TYPE_CHECKING:
    from qkvsearch.lessons.drawings.flow import Flow

# All lengths are in units of the picture, which is as wide as this.
WIDE = 360
# Where cells and bars begin, and how long all cells of a row are together, and a bar of 1.
LEFT = 104
LONG = 254
# The space between two cells.
BETWEEN = 4
# The height of the keys above the cells, of a row, and the middle of what stands in it.
KEYS = 74
ROW = 78
MIDDLE = 31
CELL = 40
# The baselines of the keys' names, and the middles of their boxes and of the bars of their values.
NAMES = 33
BOXES = 45
VALUES = 62
# So many boxes are drawn at most.
MAX_BOXES = 40
# In a row, from its upper edge: the baselines of numbers, and the middles of bars and how high they
# are. First of the word alone, then of the mix.
NUMBERS = (10, 67)
BARS = (22, 40)
HEIGHTS = (9, 18)
# How far from its bar the line ends that leads to a number beside its segment.
LEADER = 6
# The height of a line of the names of colours, and of the square before each.
LINE = 19
SQUARE = 11
# A number that is further than this from the middle of its segment has a line that leads to it.
BESIDE = 4


def own_mixes(part: Flow, place: str) -> list[Html]:
    """Draw the weights of each query and its mix, a picture each."""
    pictures = []
    for i in range(len(part.bench.rows)):
        pictures += [_weights(part, i, f"{place}-weights-{i}"), _mix(part, i, f"{place}-mix-{i}")]
    return pictures


def _weights(part: Flow, i: int, place: str) -> Html:
    """Draw the cells of a query, the first one below its keys."""
    top = KEYS if i == 0 else 0
    steps = part.steps()
    query = str(part.bench.rows[i])
    boxes = _boxes(part, np.vstack([steps["keys"], steps["queries"]]), len(part.columns) + i)
    room = LEFT - 14
    y = top + MIDDLE
    inner = [
        *(_keys(part) if i == 0 else []),
        text(0, y - 3, cut(query, room), data_role="query", data_row=str(i)),
        element("g", *boxes(0, y + 10, room), class_="vector", data_strip=f"queries {i}"),
        element("g", *_cells(part, i, top), class_="cells", data_stage="weights", data_words="yes"),
    ]
    title = say("{caption}: weights of {row}", caption=part.caption, row=query)
    return picture(WIDE, top + ROW, place, title, part.told, *inner)


def _places(n: int) -> list[tuple[float, float]]:
    """Return the left edge and the width of each of n cells side by side."""
    width = (LONG + BETWEEN) / n
    return [(LEFT + j * width, width - BETWEEN) for j in range(n)]


def _keys(part: Flow) -> list[Html]:
    """Return what stands above the cells: each key with its boxes and its value."""
    steps = part.steps()
    inner = [
        text(0, 13, f"{part.asks} ↓", class_="side"),
        text(LEFT, 13, f"{part.asked} →", class_="side"),
        text(0, VALUES + 4, say("values"), class_="side"),
    ]
    for j, (x, width) in enumerate(_places(len(part.columns))):
        name = cut(str(part.columns[j]), width + BETWEEN)
        boxes = _boxes(part, steps["keys"], j)
        inner += [
            text(x, NAMES, name, data_role="key", data_column=str(j)),
            element("g", *boxes(x, BOXES, width), class_="vector", data_strip=f"keys {j}"),
            _end(
                "value",
                j,
                *_bar(part, steps["values"][j], (x, VALUES), width, 8, "amount-of"),
                x=x,
                width=width,
            ),
        ]
    return inner


def _boxes(
    part: Flow, vectors: np.ndarray, place: int
) -> Callable[[float, float, float], list[Html]]:
    """Return what draws the numbers of one of the vectors as boxes at a place, in a width."""
    n = min(vectors.shape[1], MAX_BOXES)
    classes = [kind_class(kind) for kind in part.kinds]

    def boxes(x: float, y: float, room: float) -> list[Html]:
        return strip(vectors, place, (x, y), side=room / n, most=n, classes=classes)

    return boxes


def _cells(part: Flow, i: int, top: float) -> list[Html]:
    """Return a cell for each key: the weight, and the score that it comes from."""
    steps = part.steps()
    write_weight, write_score = part.written("weights"), part.written("scores")
    visible = part.visible()[i]
    y = top + MIDDLE
    cells = []
    for j, (x, width) in enumerate(_places(len(part.columns))):
        weight = float(np.nan_to_num(steps["weights"][i, j]))
        score = write_score(float(steps["scores"][i, j]))
        middle = x + width / 2
        box = rect(
            x, y - CELL / 2, width, CELL, rx="4", fill_opacity=number_of(min(max(weight, 0), 1))
        )
        cells.append(
            element(
                "g",
                box,
                text(middle, y - 2, write_weight(weight), "middle", class_="weight-of"),
                text(
                    middle,
                    y + 14,
                    f"{part.number_name('scores')} {score}",
                    "middle",
                    class_="score-of",
                ),
                class_="cell" if visible[j] else "cell hides",
                data_at=f"{i} {j}",
                data_value=weight,
            )
        )
    return cells


def _mix(part: Flow, i: int, place: str) -> Html:
    """Draw the mix of a query, the first one below the names of the colours."""
    names, top = names_of_colours(part.value_names, LEFT) if i == 0 else ([], 0.0)
    steps = part.steps()
    output = np.nan_to_num(steps["outputs"][i])
    query = str(part.bench.rows[i])
    of_alone, of_mix = part.written("values"), part.written("outputs")
    alone_at, mix_at = ((LEFT, top + y) for y in BARS)
    late = [text(LEFT - 8, mix_at[1] + 5, say("mix"), "end")]
    late += _bar(part, output, mix_at, LONG, HEIGHTS[1], "amount-of")
    late += _frames(part, output, mix_at, LONG, HEIGHTS[1])
    late += _numbers(part, output, of_mix, (mix_at[1] + HEIGHTS[1] / 2, top + NUMBERS[1]), "entry")
    inner = [*names]
    if part.shows_alone:
        value = part.alone(i)
        inner += [
            text(LEFT - 8, alone_at[1] + 4, say("alone"), "end", class_="of-number"),
            element(
                "g",
                *_bar(part, value, alone_at, LONG, HEIGHTS[0], "alone-of"),
                *_numbers(
                    part,
                    value,
                    of_alone,
                    (alone_at[1] - HEIGHTS[0] / 2, top + NUMBERS[0]),
                    "alone-entry",
                ),
                class_="end",
                data_alone=str(i),
            ),
        ]
    inner.append(_end("output", i, *late, x=LEFT, width=LONG))
    title = say("{caption}: mix of {row}", caption=part.caption, row=query)
    told = f"{query}: " + say(", ").join(
        f"{name} {of_mix(float(entry))}"
        for name, entry in zip(part.value_names, output, strict=True)
        if entry
    )
    return picture(WIDE, top + ROW, place, title, told, *inner)


def names_of_colours(
    names: Sequence[str], left: float, right: float = WIDE, share: float | None = None
) -> tuple[list[Html], float]:
    """Return the name of each colour, as many to a line as fit, and the height of all lines.

    share: of the additional width of the page, by which they move; None where they stay.
    """
    inner = []
    x, y = float(left), LINE - 5.0
    for k, name in enumerate(names):
        room = SQUARE + 5 + wide(name) * 1.04
        if x > left and x + room > right:
            x, y = float(left), y + LINE
        square, words = x, x + SQUARE + 5
        at_square, at_words = {}, {}
        if share is not None:
            at_square = {"data_x": number(square), "data_share": number_of(share)}
            at_words = {"data_x": number(words), "data_share": number_of(share)}
        kind = f"amount-of {kind_class(k)}"
        box = rect(square, y - SQUARE + 1, SQUARE, SQUARE, class_=kind, **at_square)
        inner.append(element("g", box, text(words, y, name, **at_words), class_="end colour"))
        x += room + 12
    return inner, y + 10


def _end(role: str, place: int, *inner: Html, x: float, width: float) -> Html:
    """Return what stands for a value or a mix, which the page's script paints anew."""
    return element(
        "g",
        *inner,
        class_="end",
        data_role=role,
        data_end=f"{role} {place}",
        data_segments=f"{number(x)} {number(width)}",
    )


def segments(vector: np.ndarray, width: float, most: float) -> list[tuple[float, float]]:
    """Return where each number of a vector begins, end to end, and how long it is.

    width: of a bar of `most`.
    """
    lengths = width * np.abs(vector) / most
    starts = np.cumsum(lengths) - lengths
    return list(zip(starts.tolist(), lengths.tolist(), strict=True))


def _most(part: Flow) -> float:
    """Return what a whole bar stands for: 1, or the largest sum of a vector's numbers."""
    steps = part.steps()
    sums = [np.abs(np.nan_to_num(steps[name])).sum(axis=1).max() for name in ("values", "outputs")]
    return max(1.0, float(max(sums)))


def _bar(
    part: Flow,
    vector: np.ndarray,
    at: tuple[float, float],
    width: float,
    high: float,
    kind: str,
) -> list[Html]:
    """Return a vector's numbers as segments end to end. at: the left edge and the middle."""
    x, y = at
    boxes = [rect(x, y - high / 2, width, high, class_="track")]
    for k, (start, length) in enumerate(segments(vector, width, _most(part))):
        boxes.append(
            rect(x + start, y - high / 2, length, high, class_=f"{kind} segment {kind_class(k)}")
        )
    return boxes


def _frames(
    part: Flow, vector: np.ndarray, at: tuple[float, float], width: float, high: float
) -> list[Html]:
    """Return what is touched of each segment, which is higher than it is."""
    x, y = at
    return [
        rect(x + start, y - high / 2 - 2, length, high + 20, class_="touch")
        for start, length in segments(vector, width, _most(part))
    ]


def _numbers(
    part: Flow,
    vector: np.ndarray,
    write: Callable[[float], str],
    heights: tuple[float, float],
    kind: str,
) -> list[Html]:
    """Return the number of each segment. heights: of the bar's edge, and of the baseline."""
    edge, y = heights
    found = numbers_of_segments(
        [(LEFT + start, long) for start, long in segments(vector, LONG, _most(part))],
        [write(float(entry)) if entry else "" for entry in vector],
        (LEFT, WIDE),
        (edge, edge + (LEADER if y > edge else -LEADER)),
        y,
        kind,
    )
    return [one for pair in found for one in pair]


def numbers_of_segments(
    placed: Sequence[tuple[float, float]],
    written: Sequence[str],
    ends: tuple[float, float],
    leads: tuple[float, float],
    y: float,
    kind: str,
) -> list[list[Html]]:
    """Return for each segment its number, at its middle or, where they are narrow, near it, and the
    line that leads to it.

    placed: where each begins, and its length. written: the numbers, "" for none. ends: where the
    first begins and the last ends at most. leads: the heights of a line's ends. y: of the numbers.
    """
    seen = [k for k, words in enumerate(written) if words]
    middles = [start + long / 2 for start, long in placed]
    centres = spread_out([middles[k] for k in seen], [wide(written[k]) for k in seen], ends)
    at = dict(zip(seen, centres, strict=True))
    found = []
    for k, words in enumerate(written):
        x = at.get(k, middles[k])
        d = ""
        if abs(x - middles[k]) > BESIDE:
            start, end = map(number, leads)
            d = f"M{number(middles[k])} {start}L{number(x)} {end}"
        heights = " ".join(map(number, leads))
        found.append(
            [
                element("path", d=d, class_="leader", data_heights=heights),
                text(x, y, words, "middle", class_=kind),
            ]
        )
    return found
