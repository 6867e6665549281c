"""Attention in the terminal: heat maps, all heads side by side, the weights of one word."""

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from qkvsearch.cli.render import GAP, abreast, terminal_width, to_table
from qkvsearch.terminal import printable
from qkvsearch.text.encoded_text import AttentionMap, Comparison, Focus

# Symbols by weight, each step a fifth, so that a map needs no colour.
SHADES = " ░▒▓█"
# The weights at which a map of symbols alone changes symbols: most weights are small.
STEPS = (0.05, 0.15, 0.35, 0.6)
STEPS_CAPTION = "░ 5 %, ▒ 15 %, ▓ 35 %, █ 60 % or more"
COSINES_CAPTION = "cosine of a word with itself in the other text, after each number of layers"
HIDDEN = "·"
# Widths of cells in characters: with number and symbol, with one of them, with a symbol.
CELL = 5
NARROW_CELL, SYMBOL_CELL = 3, 2
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
        return to_table(columns, _rows(attention_map, _cell), caption)
    # In less space, a head's map shows only numbers or symbols.
    left = terminal_width() - label - len(str(len(tokens) - 1)) - 2 * GAP
    if attention_map.layer is not None and left >= len(tokens) * (NARROW_CELL + 1):
        return _numbered(attention_map, NARROW_CELL, " ", caption)
    if attention_map.layer is not None and left >= len(tokens) * SYMBOL_CELL:
        return _numbered(attention_map, SYMBOL_CELL, "", f"{caption}\n{STEPS_CAPTION}")
    return _most_attended(attention_map)


def small_multiples(maps: Sequence[AttentionMap]) -> str:
    """Return all heads' maps in symbols, side by side; of a long text each largest weight."""
    tokens = [printable(token) for token in maps[0].tokens]
    if not tokens:
        return ""
    width = max(len(tokens), *(len(_short_name(map_)) for map_ in maps))
    left = terminal_width() - max(map(cell_len, tokens)) - GAP
    n_beside = (left + GAP) // (width + GAP)
    if not n_beside:
        return _strongest(maps)
    rows: list[list[Any]] = []
    for start in range(0, len(maps), n_beside):
        band = maps[start : start + n_beside]
        rows.append(
            ["", Text("  ".join(f"{_short_name(map_):{width}}" for map_ in band), style="bold")]
        )
        for i, token in enumerate(tokens):
            line = Text()
            for map_ in band:
                for weight, visible in zip(map_.weights[i], map_.mask[i], strict=True):
                    line.append_text(_symbol(weight, visible, 1))
                line.append(" " * (width - len(tokens) + GAP))
            rows.append([token, line])
        rows.append(["", ""])
    caption = f"5.7: layer 5, head 7; row attends to column, in the same order\n{STEPS_CAPTION}"
    return to_table([("", "left"), ("", "left")], rows[:-1], caption)


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


def cosine_table(comparison: Comparison) -> str:
    """Return a row for each depth and a column for each word, in as many tables as needed."""
    names = [printable(word) for word in comparison.words]
    widths = [max(cell_len(name), CELL) for name in names]
    tables = []
    for group in abreast(widths, terminal_width() - len("layers") - GAP):
        columns = [("layers", "right"), *((name, "right") for name in names[group])]
        rows = [
            [depth, *(f"{cosine:.3f}" for cosine in cosines[group])]
            for depth, cosines in enumerate(comparison.cosines)
        ]
        tables.append(to_table(columns, rows, COSINES_CAPTION if group.stop == len(names) else ""))
    return "\n".join(tables)


def head_name(attention_map: AttentionMap) -> str:
    """Return layer and head as the start of a caption; "" without layers."""
    if attention_map.layer is None:
        return ""
    head = "mean over heads" if attention_map.head is None else f"head {attention_map.head}"
    return f"layer {attention_map.layer}, {head}: "


def _rows(attention_map: AttentionMap, cell: Any) -> list[list[Any]]:
    rows = zip(attention_map.tokens, attention_map.weights, attention_map.mask, strict=True)
    return [[token, *map(cell, weights, visible)] for token, weights, visible in rows]


def _numbered(attention_map: AttentionMap, width: int, gap: str, caption: str) -> str:
    """Return a map with numbered columns, for cells too narrow for words."""
    n = len(attention_map.tokens)
    cell = _narrow_cell if width == NARROW_CELL else _symbol
    header = gap.join(f"{j if gap else j % 10:>{width}}" for j in range(n))
    rows = [
        [str(i), token, Text(gap).join(cells)]
        for i, (token, *cells) in enumerate(_rows(attention_map, cell))
    ]
    return to_table([("", "right"), ("", "left"), (header, "left")], rows, caption)


def _most_attended(attention_map: AttentionMap) -> str:
    rows = []
    for token, weights in zip(attention_map.tokens, attention_map.weights, strict=True):
        best = (-weights).argsort(kind="stable")[:MAX_WORDS]
        words = [f"{attention_map.tokens[j]} {weights[j]:.0%}" for j in best if weights[j]]
        rows.append([token, ", ".join(words)])
    caption = head_name(attention_map).removesuffix(": ")
    return to_table([("word", "left"), ("attends most to", "wrap")], rows, caption)


def _strongest(maps: Sequence[AttentionMap]) -> str:
    rows = []
    for map_ in maps:
        i, j = divmod(int(map_.weights.argmax()), len(map_.tokens))
        pair = f"{map_.tokens[i]} attends to {map_.tokens[j]}"
        rows.append([map_.layer, map_.head, pair, f"{map_.weights[i, j]:.0%}"])
    columns = [("layer", "right"), ("head", "right"), ("strongest", "wrap"), ("weight", "right")]
    return to_table(columns, rows)


def _short_name(attention_map: AttentionMap) -> str:
    return f"{attention_map.layer}.{attention_map.head}"


def _style(weight: float) -> str:
    return f"rgb(90,{140 + round(60 * weight)},{40 + round(215 * float(weight))})"


def shade(weight: float) -> str:
    """Return the symbol of a weight, clipped to 0 to 1."""
    return SHADES[max(0, min(int(weight * len(SHADES)), len(SHADES) - 1))]


def _cell(weight: float, visible: bool) -> Any:
    if not visible:
        return Text(HIDDEN, style="dim")
    return Text(f"{shade(weight)}{weight:4.0%}", style=_style(weight))


def _narrow_cell(weight: float, visible: bool) -> Any:
    if not visible:
        return Text(f"{HIDDEN:>{NARROW_CELL}}", style="dim")
    percent = f"{100 * weight:.0f}"
    return Text(percent if len(percent) > 2 else f"{shade(weight)}{percent:>2}", _style(weight))


def _symbol(weight: float, visible: bool, width: int = SYMBOL_CELL) -> Any:
    if not visible:
        return Text(HIDDEN * width, style="dim")
    return Text(SHADES[sum(weight >= step for step in STEPS)] * width, style=_style(weight))
