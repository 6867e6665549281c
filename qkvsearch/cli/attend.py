"""`qkvsearch attend`: a text's own attention, as a heat map in the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.render import Output, output_options, terminal_width, to_table

if TYPE_CHECKING:
    from qkvsearch.embeddings.context import AttentionMap

# Darkness by symbol, so that the map reads without colour too; each step is a fifth.
SHADES = " ░▒▓█"
# Characters that a cell takes, and the gap beside it.
CELL, GAP = 5, 2
# Words shown for each of a text that is too long for a map.
SHOWN = 4
FIELDS = ("query_position", "query", "key_position", "key", "weight", "visible")


@click.command(short_help="Show how much each word of a text looks at each other.")
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--mask",
    type=click.Choice(["none", "padding", "causal"]),
    default="none",
    show_default=True,
    help="Whom a word may not look at: nobody's word, <PAD>, the words after it.",
)
@output_options
def command(text: tuple[str, ...], mask: str, output: Output) -> None:
    """Show how much each word of a text looks at each other; `-` reads it from stdin.

    A row is the word that looks, and its weights add up to 100 %. Words come from the catalogue:
    stop words and words it does not have are left out.

    \b
    Examples:
      qkvsearch attend "the bank of the river"
      qkvsearch attend "deep learning with attention <PAD>" --mask padding
    """
    run = settings()
    sentence = sys.stdin.read() if text == ("-",) else " ".join(text)
    attention_map = run.open(sample="videos").attend(sentence, mask)
    if not attention_map.tokens:
        run.say("Nothing to attend to: none of these words is in the catalogue.")
    elif attention_map.left_out:
        run.say(f"Left out: {', '.join(attention_map.left_out)}")
    output.write(attention_map.to_records(), lambda: heat_map(attention_map), FIELDS)


def heat_map(attention_map: AttentionMap) -> str:
    """Rows look, columns are looked at; a hidden pair shows a dot. A text too long for that shows
    what each of its words looks at most.
    """
    tokens = attention_map.tokens
    if not tokens:
        return ""
    room = (terminal_width() - max(map(len, tokens))) // len(tokens) - GAP
    if room < CELL:
        return _most_looked_at(attention_map)
    columns = [("", "left"), *((token[:room], "right") for token in tokens)]
    shown = zip(tokens, attention_map.weights, attention_map.mask, strict=True)
    rows = [
        [token, *(_cell(weight, keep) for weight, keep in zip(weights, visible, strict=True))]
        for token, weights, visible in shown
    ]
    return to_table(columns, rows, "row looks at column; rows add up to 100 %")


def _most_looked_at(attention_map: AttentionMap) -> str:
    rows = []
    for token, weights in zip(attention_map.tokens, attention_map.weights, strict=True):
        best = (-weights).argsort(kind="stable")[:SHOWN]
        seen = [f"{attention_map.tokens[j]} {weights[j]:.0%}" for j in best if weights[j]]
        rows.append([token, ", ".join(seen)])
    return to_table([("word", "left"), ("looks most at", "wrap")], rows)


def _cell(weight: float, visible: bool) -> Any:
    from rich.text import Text

    if not visible:
        return Text("·", style="dim")
    shade = SHADES[min(int(weight * len(SHADES)), len(SHADES) - 1)]
    blue = 40 + round(215 * float(weight))
    return Text(f"{shade}{weight:4.0%}", style=f"rgb(90,{140 + round(60 * weight)},{blue})")
