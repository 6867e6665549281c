"""Attention in the terminal: the sentence in shades, once for each word that attends.

Without colours it is a heat map in which every weight is a percentage, and where that is too wide
the sentence with percentages.
"""

from collections.abc import Iterator
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from qkvsearch.cli.text_table import GAP, captioned, has_colours, rendered, to_table
from qkvsearch.cli.wrapping import terminal_width, wrapped
from qkvsearch.terminal import printable
from qkvsearch.text.encoded_text import AttentionMap

# Symbols by weight, each step a fifth, so that a map needs no colour.
SHADES = " ░▒▓█"
HIDDEN = "·"
# The width of a cell in characters.
CELL = 5
# The shade of a word by the weight that it gets at least, in colours that every terminal has.
STEPS = (
    (0.4, "black on bright_cyan"),
    (0.2, "black on cyan"),
    (0.1, "bright_white on blue"),
    (0.05, "bright_white on bright_black"),
    (0.0, "dim"),
)
# A word in shades has its percentage from this weight on.
MIN_NAMED = 0.1
MASKED = "dim strike"
# The word that attends stands before the sentence, in so many characters at most.
MAX_LABEL = 16


def heat_map(attention_map: AttentionMap) -> str:
    """Return what each word attends to: the sentence in shades, or weights as percentages."""
    tokens = [printable(token) for token in attention_map.tokens]
    if not tokens:
        return ""
    if has_colours():
        return _sentences(attention_map, tokens, in_shades=True)
    label = max(map(cell_len, tokens))
    room = (terminal_width() - label) // len(tokens) - GAP
    if room < CELL:
        return _sentences(attention_map, tokens, in_shades=False)
    columns = [("", "left"), *((token[:room], "right") for token in tokens)]
    cells = zip(tokens, attention_map.weights, attention_map.mask, strict=True)
    rows = [[token, *map(_cell, weights, visible)] for token, weights, visible in cells]
    has_empty_rows = not attention_map.mask.any(axis=-1).all()
    sums = "a row that may attend to nothing is empty" if has_empty_rows else "rows add up to 100 %"
    caption = f"{head_name(attention_map)}row attends to column; {sums}"
    return to_table(columns, rows, caption)


def _sentences(attention_map: AttentionMap, tokens: list[str], in_shades: bool) -> str:
    """Return the sentence once for each word that attends. in_shades: a word is the darker or
    lighter the more weight it gets; otherwise the weight stands after the word.
    """
    room = min(max(map(cell_len, tokens)), MAX_LABEL)
    lines: list[str | Text] = []
    rows = zip(tokens, attention_map.weights, attention_map.mask, strict=True)
    for position, (token, weights, mask) in enumerate(rows):
        label = set_cell_size(token, room) if cell_len(token) > room else token
        start = f"{' ' * (room - cell_len(label))}{label} → "
        line = Text(start)
        for key, (word, weight, visible) in enumerate(zip(tokens, weights, mask, strict=True)):
            is_named = not in_shades or (visible and weight >= MIN_NAMED)
            style = _shade(weight, visible) if in_shades else ""
            line.append(word, f"{style} underline" if in_shades and key == position else style)
            line.append(f" {_percent(weight, visible)}" if is_named else "", style)
            line.append(" ")
        lines.append(wrapped(line, terminal_width(), indent=cell_len(start)))
    head = head_name(attention_map).removesuffix(": ")
    lines += captioned(head)
    if in_shades:
        lines.append(wrapped(Text(" ").join(_legend()), terminal_width()))
    return rendered(lines)


def _percent(weight: float, visible: bool) -> str:
    return f"{weight:.0%}" if visible else HIDDEN


def _shade(weight: float, visible: bool) -> str:
    """Return the style of a word that gets this weight."""
    if not visible:
        return MASKED
    return next(style for least, style in STEPS if weight >= least)


def _legend() -> Iterator[Text]:
    """Yield what each shade means."""
    for least, style in STEPS[:-1]:
        yield Text(f" {least:.0%} or more ", style)
    yield Text("less", STEPS[-1][1])


def head_name(attention_map: AttentionMap) -> str:
    """Return layer and head, counted from 1, as the start of a caption, or what attention without
    layers is.
    """
    if attention_map.layer is None:
        return "attention without learned matrices (Q = K = V = X): "
    head = "mean over heads" if attention_map.head is None else f"head {attention_map.head + 1}"
    return f"layer {attention_map.layer + 1}, {head}: "


def _style(weight: float) -> str:
    return f"rgb(90,{140 + round(60 * weight)},{40 + round(215 * float(weight))})"


def shade(weight: float) -> str:
    """Return the symbol of a weight, clipped to 0 to 1."""
    return SHADES[max(0, min(int(weight * len(SHADES)), len(SHADES) - 1))]


def _cell(weight: float, visible: bool) -> Any:
    if not visible:
        return Text(HIDDEN, style="dim")
    return Text(f"{shade(weight)}{weight:4.0%}", style=_style(weight))
