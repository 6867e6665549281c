"""Attention in the terminal: a heat map, one word's weights."""

from typing import Any

from rich.cells import cell_len
from rich.text import Text

from qkvsearch.cli.render import GAP, terminal_width, to_table
from qkvsearch.terminal import printable
from qkvsearch.text.encoded_text import AttentionMap, Focus

# Symbols by weight, each step a fifth, so that a map needs no colour.
SHADES = " ░▒▓█"
HIDDEN = "·"
# The width of a cell in characters.
CELL = 5
# Words listed for each word of a text that is too long for a map.
MAX_WORDS = 4
# Words listed for one word.
MAX_ATTENDED = 10
BAR = 20


def heat_map(attention_map: AttentionMap) -> str:
    """Return a map: rows attend to columns; of a long text, what each word attends to most."""
    tokens = [printable(token) for token in attention_map.tokens]
    if not tokens:
        return ""
    label = max(map(cell_len, tokens))
    caption = f"{head_name(attention_map)}row attends to column; rows add up to 100 %"
    room = (terminal_width() - label) // len(tokens) - GAP
    if room >= CELL:
        columns = [("", "left"), *((token[:room], "right") for token in tokens)]
        cells = zip(tokens, attention_map.weights, attention_map.mask, strict=True)
        rows = [[token, *map(_cell, weights, visible)] for token, weights, visible in cells]
        return to_table(columns, rows, caption)
    return _most_attended(attention_map)


def focus_table(focus: Focus) -> str:
    """Return what a word attends to most, with the heads, and its weights in the chosen head."""
    selected = focus.selected
    in_layers = selected.layer is not None
    columns = [(f"{selected.query} attends to", "left"), ("weight", "right")]
    if in_layers:
        columns += [("layer", "right"), ("head", "right")]
    rows = [
        [pair.key, f"{pair.weight:.1%}", *((pair.layer, pair.head) if in_layers else ())]
        for pair in focus.attended[:MAX_ATTENDED]
    ]
    caption = "maximum over heads; layers and heads count from 0" if in_layers else ""
    listed = to_table(columns, rows, caption)
    if not in_layers:
        return listed
    weights = zip(focus.words, focus.row, strict=True)
    bars = [[word, f"{weight:.1%}", "█" * round(BAR * weight)] for word, weight in weights]
    heading = f"{selected.query} in layer {selected.layer}, head {selected.head}"
    return f"{listed}\n{to_table([(heading, 'left'), ('weight', 'right'), ('', 'left')], bars)}"


def head_name(attention_map: AttentionMap) -> str:
    """Return layer and head as the start of a caption; "" without layers."""
    if attention_map.layer is None:
        return ""
    head = "mean over heads" if attention_map.head is None else f"head {attention_map.head}"
    return f"layer {attention_map.layer}, {head}: "


def _most_attended(attention_map: AttentionMap) -> str:
    rows = []
    for token, weights in zip(attention_map.tokens, attention_map.weights, strict=True):
        best = (-weights).argsort(kind="stable")[:MAX_WORDS]
        words = [f"{attention_map.tokens[j]} {weights[j]:.0%}" for j in best if weights[j]]
        rows.append([token, ", ".join(words)])
    caption = head_name(attention_map).removesuffix(": ")
    return to_table([("word", "left"), ("attends most to", "wrap")], rows, caption)


def _style(weight: float) -> str:
    return f"rgb(90,{140 + round(60 * weight)},{40 + round(215 * float(weight))})"


def shade(weight: float) -> str:
    """Return the symbol of a weight, clipped to 0 to 1."""
    return SHADES[max(0, min(int(weight * len(SHADES)), len(SHADES) - 1))]


def _cell(weight: float, visible: bool) -> Any:
    if not visible:
        return Text(HIDDEN, style="dim")
    return Text(f"{shade(weight)}{weight:4.0%}", style=_style(weight))
