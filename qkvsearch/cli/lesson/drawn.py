"""Drawings in the terminal: bars with their numbers, or a sentence where there are none."""

from collections.abc import Iterator
from itertools import zip_longest

import numpy as np
from rich.text import Text

from qkvsearch.cli.lesson.grids import table_view
from qkvsearch.cli.lesson.wrapping import MAX_COLUMNS, marked, wrapped
from qkvsearch.lessons.drawings import Drawing, Flow, Heads
from qkvsearch.lessons.messages import say, shown
from qkvsearch.lessons.parts import Table
from qkvsearch.terminal import printable

# A bar at its longest, and how many are drawn at most.
BAR_LENGTH, MAX_BARS = 24, 30
# Words that a word attends to, at most.
MAX_WORDS = 6


def drawing_view(drawing: Drawing, width: int) -> Iterator[Text]:
    """Yield the drawing's caption, and its bars or else what it shows in words."""
    room = min(width, MAX_COLUMNS)
    caption = wrapped(marked(drawing.caption), room)
    caption.stylize("bold")
    yield caption
    if isinstance(drawing, Flow) and drawing.steps()["scores"].size <= MAX_BARS:
        yield from table_view(_flow(drawing), room)
    elif isinstance(drawing, Heads):
        yield from table_view(_heads(drawing), room)
    else:
        yield wrapped(Text(printable(drawing.told)), room)


def bar(value: float, longest: float = 1.0) -> str:
    """Return a number after a bar as long as its share of the longest; nothing for NaN.

    >>> bar(0.5), bar(-1.0, longest=8.0)
    ('████████████ 0.5', '−███ −1')
    """
    drawn = "█" * round(BAR_LENGTH * min(abs(np.nan_to_num(float(value))) / longest, 1.0))
    sign = "−" if value < 0 and drawn else ""
    return f"{sign}{drawn} {shown(value)}".strip()


def _flow(flow: Flow) -> Table:
    """Return for each query a bar to each key: its weight, or without values its score. Below one
    query are the numbers of its mix.
    """
    steps = flow.steps()
    array = steps["weights"] if flow.has_values else steps["scores"]
    longest = 1.0 if flow.has_values else float(np.nan_to_num(np.abs(array)).max()) or 1.0
    rows = [
        [str(row) if j == 0 else "", str(column), bar(value, longest)]
        for row, numbers in zip(flow.bench.rows, array, strict=True)
        for j, (column, value) in enumerate(zip(flow.columns, numbers, strict=True))
    ]
    headings = [flow.asks, flow.asked, say("weight") if flow.has_values else say("score")]
    if flow.has_values and len(array) == 1:
        mix = zip(flow.qualities, steps["outputs"][0], strict=True)
        labels = [flow.value_of(j) for j in range(len(rows))]
        rows += [[say("mix") if k == 0 else "", str(q), bar(x)] for k, (q, x) in enumerate(mix)]
        if any(labels):
            headings.append(say("values"))
            rows = [[*row, label] for row, label in zip_longest(rows, labels, fillvalue="")]
    return Table(flow.caption, headings, rows)


def _heads(heads: Heads) -> Table:
    """Return what the chosen word attends to, from the largest weight on."""
    words, row = heads.first.words, heads.weights[heads.word]
    best = np.argsort(-row, kind="stable")[:MAX_WORDS]
    rows = [[str(words[heads.word]), str(words[j]), bar(row[j])] for j in best]
    headings = [say("attends"), say("attended to"), heads.place or say("weight")]
    return Table(heads.caption, headings, rows)
