"""Drawings in the terminal: bars of blocks, lines of braille dots, and always the words."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from qkvsearch.cli.lesson.braille import Canvas
from qkvsearch.cli.lesson.grids import COLOURS
from qkvsearch.cli.lesson.wrapping import WIDEST, marked, wrapped
from qkvsearch.cli.render import GAP
from qkvsearch.lessons.drawings import Arrows, Descent, Drawing, Flow, Heads
from qkvsearch.lessons.messages import shown
from qkvsearch.lessons.parts import Role
from qkvsearch.terminal import printable

# A bar at its longest, and its last block in eighths.
LONGEST = 24
EIGHTHS = " ▏▎▍▌▋▊▉█"
# Of so many bars no more are drawn.
MOST_BARS = 30
# Letters of a plane, which are twice as high as wide.
PLANE = (48, 24)
# Words that a word attends to, at most.
MOST_WORDS = 6


def drawing_view(drawing: Drawing, width: int) -> list[Text]:
    """The drawing's caption, what can be drawn with letters, and what it shows in words."""
    caption = wrapped(marked(drawing.caption), min(width, WIDEST))
    caption.stylize("bold")
    drawn = DRAWN[type(drawing)](drawing, min(width, WIDEST))
    return [caption, *drawn, wrapped(Text(printable(drawing.told)), min(width, WIDEST))]


def bar(share: float, longest: int = LONGEST) -> str:
    """A share, 0 to 1, of a bar's length; nothing of what is no number.

    >>> bar(0.5, 4), bar(1 / 16, 4), bar(0.0, 4)
    ('██', '▎', '')
    """
    if np.isnan(share):
        return ""
    eighths = round(min(max(share, 0.0), 1.0) * longest * 8)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _flow(flow: Flow, width: int) -> Iterator[Text]:
    """For each query a bar to each key: its weight, or without values its score."""
    steps = flow.steps()
    array = steps["weights"] if flow.has_values else steps["scores"]
    if array.size > MOST_BARS:
        return
    most = 1.0 if flow.has_values else float(np.nan_to_num(np.abs(array)).max()) or 1.0
    rows, columns = (
        [printable(str(x)) for x in names] for names in (flow.bench.rows, flow.columns)
    )
    left, middle = (max(map(cell_len, names)) for names in (rows, columns))
    colour = COLOURS["weights" if flow.has_values else "score"]
    longest = min(LONGEST, width - left - middle - 3 * GAP - 8)
    for row, numbers in zip(rows, array, strict=True):
        for place, (column, value) in enumerate(zip(columns, numbers, strict=True)):
            line = Text(_padded(row if place == 0 else "", left) + " " * GAP)
            line.append(_padded(column, middle) + " " * GAP)
            line.append(bar(abs(float(value)) / most, max(longest, 1)), style=colour)
            line.append(f" {shown(value)}" if value else " 0")
            yield line


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def plane(places: np.ndarray, columns: int) -> Canvas:
    """A canvas that holds these places and 0, with room for names, and both axes on it."""
    low, high = places.min(axis=0), places.max(axis=0)
    room = 0.12 * float((high - low).max() or 1.0)
    low, high = low - room, high + room
    rows = round(columns / 2 * float((high - low)[1] / (high - low)[0]))
    canvas = Canvas(columns, min(max(rows, 6), PLANE[1]), (low[0], high[0]), (low[1], high[1]))
    canvas.line(np.array([low[0], 0]), np.array([high[0], 0]), "dim", every=3)
    canvas.line(np.array([0, low[1]]), np.array([0, high[1]]), "dim", every=3)
    return canvas


def _arrows(arrows: Arrows, width: int) -> Iterator[Text]:
    """The plane with its axes, arrows and places."""
    places = np.vstack([arrows.all_vectors, arrows.dots, np.zeros(2)])
    canvas = plane(places, min(PLANE[0], width))
    tips = zip(arrows.all_vectors, arrows.all_labels, strict=True)
    for place, (vector, label) in enumerate(tips):
        role: Role = "query" if place == arrows.against else "key"
        colour = COLOURS["output" if place == len(arrows.vectors) else role]
        canvas.line(np.zeros(2), vector, colour)
        canvas.write(vector, label, colour)
    for dot, label in zip(arrows.dots, arrows.dot_labels, strict=True):
        canvas.write(dot, f"·{label}", "")
    yield from canvas.lines()


def _descent(descent: Descent, width: int) -> Iterator[Text]:
    """Where users and films lie in the end, and the way that each went."""
    places = np.concatenate([descent.users, descent.items], axis=1)
    canvas = plane(places.reshape(-1, 2), min(PLANE[0], width))
    names = [*descent.user_names, *descent.item_names]
    for k, name in enumerate(names):
        colour = COLOURS["query" if k < len(descent.user_names) else "key"]
        for start, end in pairwise(places[:, k]):
            canvas.line(start, end, colour)
        canvas.write(places[-1, k], name, colour)
    yield from canvas.lines()


def _heads(heads: Heads, width: int) -> Iterator[Text]:
    """What the chosen word attends to, from the largest weight on."""
    words, row = [printable(str(word)) for word in heads.first.words], heads.weights[heads.word]
    left = max(map(cell_len, words))
    for place in np.argsort(-row, kind="stable")[:MOST_WORDS]:
        line = Text(f"{words[heads.word]} → {_padded(words[place], left)} ")
        line.append(bar(float(row[place])), style=COLOURS["weights"])
        line.append(f" {shown(float(row[place]))}")
        yield line


DRAWN: dict[type, Callable[[Any, int], Iterator[Text]]] = {
    Arrows: _arrows,
    Descent: _descent,
    Flow: _flow,
    Heads: _heads,
}
