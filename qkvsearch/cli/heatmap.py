"""Attention in the terminal: a heat map."""

from typing import Any

from rich.cells import cell_len
from rich.text import Text

from qkvsearch.cli.text_table import GAP, to_table
from qkvsearch.cli.wrapping import terminal_width
from qkvsearch.terminal import printable
from qkvsearch.text.encoded_text import AttentionMap

# Symbols by weight, each step a fifth, so that a map needs no colour.
SHADES = " ░▒▓█"
HIDDEN = "·"
# The width of a cell in characters.
CELL = 5
# Words listed for each word of a text that is too long for a map.
MAX_WORDS = 4


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


def head_name(attention_map: AttentionMap) -> str:
    """Return layer and head as the start of a caption, or what attention without layers is."""
    if attention_map.layer is None:
        return "attention without learned matrices (Q = K = V = X): "
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
