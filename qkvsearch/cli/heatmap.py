"""Attention in the terminal: heat maps, all heads side by side, where a word looks."""

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from qkvsearch.cli.render import GAP, abreast, terminal_width, to_table
from qkvsearch.terminal import printable
from qkvsearch.text.encoded_text import AttentionMap, Comparison, Focus

# Darkness by symbol, so that the map reads without colour too; each step is a fifth.
SHADES = " ░▒▓█"
# Of a map of symbols alone: most weights are small, and each step says more.
STEPS = (0.05, 0.15, 0.35, 0.6)
STEPS_SAID = "░ 5 %, ▒ 15 %, ▓ 35 %, █ 60 % or more"
COSINES_SAID = "cosine of a word with itself in the other text, after each number of layers"
HIDDEN = "·"
# Characters that a cell takes.
CELL = 5
NARROW_CELL, SYMBOL_CELL = 3, 2
# Words shown for each of a text that is too long for a map.
SHOWN = 4
# Of the words that one word attends to, at most this many are listed.
LISTED = 10
BAR = 20


def heat_map(attention_map: AttentionMap) -> str:
    """Rows attend, columns are attended to; a hidden pair shows a dot. A text too long for that
    shows what each of its words attends to most.
    """
    tokens = [printable(token) for token in attention_map.tokens]
    if not tokens:
        return ""
    label = max(map(cell_len, tokens))
    caption = f"{place(attention_map)}row attends to column; rows add up to 100 %"
    room = (terminal_width() - label) // len(tokens) - GAP
    if room >= CELL:
        columns = [("", "left"), *((token[:room], "right") for token in tokens)]
        return to_table(columns, _rows(attention_map, _cell), caption)
    # A head's map is worth showing even where only numbers, or shades, fit.
    left = terminal_width() - label - len(str(len(tokens) - 1)) - 2 * GAP
    if attention_map.layer is not None and left >= len(tokens) * (NARROW_CELL + 1):
        return _numbered(attention_map, NARROW_CELL, " ", caption)
    if attention_map.layer is not None and left >= len(tokens) * SYMBOL_CELL:
        return _numbered(attention_map, SYMBOL_CELL, "", f"{caption}\n{STEPS_SAID}")
    return _most_attended(attention_map)


def small_multiples(maps: Sequence[AttentionMap]) -> str:
    """Every head's map in symbols, one a token, as many beside each other as fit. A
    text too long for that shows each head's largest weight.
    """
    tokens = [printable(token) for token in maps[0].tokens]
    if not tokens:
        return ""
    width = max(len(tokens), *(len(_name(one)) for one in maps))
    left = terminal_width() - max(map(cell_len, tokens)) - GAP
    n_beside = (left + GAP) // (width + GAP)
    if not n_beside:
        return _strongest(maps)
    rows: list[list[Any]] = []
    for start in range(0, len(maps), n_beside):
        band = maps[start : start + n_beside]
        rows.append(["", Text("  ".join(f"{_name(one):{width}}" for one in band), style="bold")])
        for i, token in enumerate(tokens):
            line = Text()
            for one in band:
                for weight, visible in zip(one.weights[i], one.mask[i], strict=True):
                    line.append_text(_symbol(weight, visible, 1))
                line.append(" " * (width - len(tokens) + GAP))
            rows.append([token, line])
        rows.append(["", ""])
    caption = f"5.7: layer 5, head 7; row attends to column, in the same order\n{STEPS_SAID}"
    return to_table([("", "left"), ("", "left")], rows[:-1], caption)


def focus_table(focus: Focus) -> str:
    """What a word attends to most, each in the head where that is most; and all that it attends to
    in the head that was chosen.
    """
    selected = focus.selected
    in_layers = selected.layer is not None
    columns = [(f"{selected.query} attends to", "left"), ("weight", "right")]
    if in_layers:
        columns += [("layer", "right"), ("head", "right")]
    rows = [
        [look.key, f"{look.weight:.1%}", *((look.layer, look.head) if in_layers else ())]
        for look in focus.attended[:LISTED]
    ]
    caption = "the most that any head gives it; layers and heads count from 0" if in_layers else ""
    listed = to_table(columns, rows, caption)
    if not in_layers:
        return listed
    weights = zip(focus.words, focus.row, strict=True)
    bars = [[word, f"{weight:.1%}", "█" * round(BAR * weight)] for word, weight in weights]
    heading = f"{selected.query} in layer {selected.layer}, head {selected.head}"
    return f"{listed}\n{to_table([(heading, 'left'), ('weight', 'right'), ('', 'left')], bars)}"


def cosine_table(comparison: Comparison) -> str:
    """A row a depth, a column a word; words that do not fit stand in a table below."""
    names = [printable(word) for word in comparison.words]
    widths = [max(cell_len(name), CELL) for name in names]
    tables = []
    for part in abreast(widths, terminal_width() - len("layers") - GAP):
        columns = [("layers", "right"), *((name, "right") for name in names[part])]
        rows = [
            [depth, *(f"{cosine:.3f}" for cosine in cosines[part])]
            for depth, cosines in enumerate(comparison.cosines)
        ]
        tables.append(to_table(columns, rows, COSINES_SAID if part.stop == len(names) else ""))
    return "\n".join(tables)


def place(attention_map: AttentionMap) -> str:
    """Which layer and head it is, as the beginning of a sentence; nothing where there are none."""
    if attention_map.layer is None:
        return ""
    head = "mean over heads" if attention_map.head is None else f"head {attention_map.head}"
    return f"layer {attention_map.layer}, {head}: "


def _rows(attention_map: AttentionMap, cell: Any) -> list[list[Any]]:
    shown = zip(attention_map.tokens, attention_map.weights, attention_map.mask, strict=True)
    return [
        [token, *(cell(weight, keep) for weight, keep in zip(weights, visible, strict=True))]
        for token, weights, visible in shown
    ]


def _numbered(attention_map: AttentionMap, width: int, gap: str, caption: str) -> str:
    """A map whose columns bear the rows' numbers, in cells too narrow for words."""
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
        best = (-weights).argsort(kind="stable")[:SHOWN]
        seen = [f"{attention_map.tokens[j]} {weights[j]:.0%}" for j in best if weights[j]]
        rows.append([token, ", ".join(seen)])
    caption = place(attention_map).removesuffix(": ")
    return to_table([("word", "left"), ("attends most to", "wrap")], rows, caption)


def _strongest(maps: Sequence[AttentionMap]) -> str:
    rows = []
    for one in maps:
        i, j = divmod(int(one.weights.argmax()), len(one.tokens))
        look = f"{one.tokens[i]} attends to {one.tokens[j]}"
        rows.append([one.layer, one.head, look, f"{one.weights[i, j]:.0%}"])
    columns = [("layer", "right"), ("head", "right"), ("strongest", "wrap"), ("weight", "right")]
    return to_table(columns, rows)


def _name(attention_map: AttentionMap) -> str:
    return f"{attention_map.layer}.{attention_map.head}"


def _style(weight: float) -> str:
    return f"rgb(90,{140 + round(60 * weight)},{40 + round(215 * float(weight))})"


def shade(weight: float) -> str:
    """A weight as a symbol; what is below 0 or above 1 is shown as those are."""
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
