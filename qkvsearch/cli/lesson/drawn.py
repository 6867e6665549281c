"""Drawings in the terminal: bars with their numbers, or a sentence where there are none."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from qkvsearch.cli.lesson.emphasis import MAX_COLUMNS, marked
from qkvsearch.cli.lesson.grids import COLOURS
from qkvsearch.cli.text_table import GAP, padded
from qkvsearch.cli.wrapping import wrapped
from qkvsearch.lessons.drawings import Drawing, Flow, Heads, Total
from qkvsearch.lessons.messages import say, shown
from qkvsearch.terminal import printable

# A bar at its longest, and its last block in eighths.
BAR_LENGTH = 24
EIGHTHS = " ▏▎▍▌▋▊▉█"
# Of so many bars no more are drawn.
MAX_BARS = 30
# Words that a word attends to, at most.
MAX_WORDS = 6


def drawing_view(drawing: Drawing, width: int) -> list[Text]:
    """Return the drawing's caption, and its bars or else what it shows in words."""
    caption = wrapped(marked(drawing.caption), min(width, MAX_COLUMNS))
    caption.stylize("bold")
    bars = BARS.get(type(drawing))
    drawn = list(bars(drawing, min(width, MAX_COLUMNS))) if bars else []
    return [caption, *(drawn or [wrapped(Text(printable(drawing.told)), min(width, MAX_COLUMNS))])]


def bar(share: float, longest: int = BAR_LENGTH) -> str:
    """Draw a share, 0 to 1, of a bar's length; NaN is empty.

    >>> bar(0.5, 4), bar(1 / 16, 4), bar(0.0, 4)
    ('██', '▎', '')
    """
    if np.isnan(share):
        return ""
    eighths = round(min(max(share, 0.0), 1.0) * longest * 8)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _flow(flow: Flow, width: int) -> Iterator[Text]:
    """Draw for each query a bar to each key: its weight, or its score where there are none."""
    steps = flow.steps()
    array = steps[flow.shown_stage]
    if array.size > MAX_BARS:
        return
    most = 1.0 if flow.has_weights else float(np.nan_to_num(np.abs(array)).max()) or 1.0
    rows = [printable(str(row)) for row in flow.bench.rows]
    columns = [printable(str(column)) for column in flow.columns]
    is_one = flow.has_values and len(rows) == 1
    labels = [*columns, *flow.qualities] if is_one else columns
    left = max(map(cell_len, rows))
    middle = max(map(cell_len, labels))
    colour = COLOURS["weights" if flow.has_weights else "score"]
    longest = min(BAR_LENGTH, width - left - middle - 3 * GAP - 8)
    for row, numbers in zip(rows, array, strict=True):
        for place, (column, value) in enumerate(zip(columns, numbers, strict=True)):
            line = Text(padded(row if place == 0 else "", left) + " " * GAP)
            line.append(padded(column, middle) + " " * GAP)
            sign = ""
            if value < 0:
                sign = "−"
            elif (array < 0).any():
                sign = " "
            line.append(sign + bar(abs(float(value)) / most, max(longest, 1)), style=colour)
            line.append(f" {shown(value)}" if value else " 0")
            before = left + middle + 2 * GAP + longest + 8
            answer = printable(flow.value_of(place)) if is_one else ""
            if answer and before + cell_len(answer) <= width:
                line.append(padded("", before - cell_len(line.plain)) + answer)
            yield line
    if is_one:
        yield from _mix(flow, left + GAP, middle, longest)


def _mix(flow: Flow, indent: int, left: int, longest: int) -> Iterator[Text]:
    """Draw a bar for each number of the output of the one query."""
    for place, (quality, value) in enumerate(
        zip(flow.qualities, flow.steps()["outputs"][0], strict=True)
    ):
        line = Text(padded(say("mix") if place == 0 else "", indent), style="dim")
        line.append(padded(printable(str(quality)), left) + " " * GAP, style="not dim")
        sign = "−" if value < 0 else ""
        line.append(sign + bar(abs(float(value)), max(longest, 1)), style=COLOURS["output"])
        line.append(f" {shown(float(value))}", style="not dim")
        yield line


def _heads(heads: Heads, width: int) -> Iterator[Text]:
    """Draw what the chosen word attends to, from the largest weight on."""
    words = [printable(str(word)) for word in heads.first.words]
    word = heads.word or 0
    row = heads.weights[word]
    left = max(map(cell_len, words))
    if heads.place:
        yield wrapped(Text(printable(heads.place)), width)
    for place in np.argsort(-row, kind="stable")[:MAX_WORDS]:
        line = Text(f"{words[word]} → {padded(words[place], left)} ")
        line.append(bar(float(row[place])), style=COLOURS["weights"])
        line.append(f" {shown(float(row[place]))}")
        yield line


def _total(total: Total, width: int) -> Iterator[Text]:
    """Draw the bar of each number, and that of all together."""
    labels = [printable(label) for label, _ in total.lines]
    left = max(map(cell_len, labels))
    most = max(abs(value) for _, value in total.lines) or 1.0
    longest = max(min(BAR_LENGTH, width - left - GAP - 8), 1)
    last = len(labels) - 1
    for place, (label, (_, value)) in enumerate(zip(labels, total.lines, strict=True)):
        line = Text(padded(label, left) + " " * GAP)
        colour = COLOURS["output" if place == last else "score"]
        line.append("−" * (value < 0) + bar(abs(value) / most, longest), style=colour)
        line.append(f" {shown(value)}")
        yield line


BARS: dict[type, Callable[[Any, int], Iterator[Text]]] = {Flow: _flow, Heads: _heads, Total: _total}
