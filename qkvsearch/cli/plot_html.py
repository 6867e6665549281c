"""Attention as a web page: tables with a caption, headings and numbers, in one file that loads
nothing from anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from qkvsearch.cli.render import printable
from qkvsearch.lessons.exports.page.markup import Html, element, grid, joined

if TYPE_CHECKING:
    from qkvsearch.texts.encoded_text import Comparison
    from qkvsearch.texts.self_attention import AttentionMap

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font: 1rem/1.4 system-ui, sans-serif; margin: 1.5rem; color: #111; background: #fff }}
main {{ display: flex; flex-wrap: wrap; gap: 1.5rem }}
.scroll {{ overflow-x: auto; max-width: 100% }}
table {{ border-collapse: collapse; font-size: {size} }}
caption {{ text-align: left; font-weight: 600; padding-bottom: .3rem }}
th, td {{ padding: .15rem .35rem; border: 1px solid #ddd }}
td {{ text-align: right; font-variant-numeric: tabular-nums }}
th {{ font-weight: 500; background: #f4f4f4 }}
tbody th {{ text-align: right; position: sticky; left: 0 }}
td.hidden {{ background: #ddd; color: #444 }}
</style>
</head>
<body>
<h1>{title}</h1>
<p id="how">{how}</p>
<main>
{tables}</main>
</body>
</html>
"""
HOW_MAPS = (
    "A row is the word that attends, a column what it attends to; numbers are percent, and a row "
    "adds up to 100. The darker a cell, the more; a dot is a pair that the mask hides."
)
HOW_COSINES = (
    "The cosine of each word with itself in the other text: before any attention (0), and after "
    "each number of layers. 1 is the same meaning."
)
# A cell's blue, from white, as red, green and blue lose of it.
INK = (247, 155, 77)
# The share from which letters are read better in white.
LIGHT_ON = 0.86


def maps_page(maps: Sequence[AttentionMap], title: str) -> str:
    """A table a map, with a number in each cell and its colour beside."""
    tables = "".join(_map_table(one) for one in maps)
    return _page(title, HOW_MAPS, tables, "1rem" if len(maps) == 1 else ".7rem")


def comparison_page(comparison: Comparison, title: str) -> str:
    """A row a word, a column a depth."""
    depths = [str(depth) for depth in range(len(comparison.cosines))]
    rows = (
        (word, [_coloured(max(float(x), 0.0), f"{x:.3f}") for x in comparison.cosines[:, i]])
        for i, word in enumerate(comparison.words)
    )
    caption = "Cosine after each number of layers"
    return _page(title, HOW_COSINES, _table(caption, "word", depths, rows), "1rem")


def _page(title: str, how: str, tables: str, size: str) -> str:
    shown = joined([printable(" ".join(title.split())) or "Attention"])
    return PAGE.format(title=shown, how=how, tables=tables, size=size)


def _map_table(one: AttentionMap) -> str:
    where = [] if one.layer is None else [f"layer {one.layer}"]
    if one.layer is not None:
        where.append("mean over heads" if one.head is None else f"head {one.head}")
    rows = (
        (token, [_cell(*pair) for pair in zip(weights, visible, strict=True)])
        for token, weights, visible in zip(one.tokens, one.weights, one.mask, strict=True)
    )
    caption = ", ".join(where).capitalize() or "Attention"
    return _table(caption, "attends \\ is attended to", one.tokens, rows)


def _table(
    caption: str, corner: str, columns: Sequence[str], rows: Iterable[tuple[str, list[Html]]]
) -> Html:
    """A region that scrolls, by keyboard too, with a table whose cells know their headings."""
    headings = [corner, *map(printable, columns)]
    named = ((printable(name), cells) for name, cells in rows)
    table = grid(element("caption", caption), headings, named, aria_describedby="how")
    return element("div", table, class_="scroll", role="region", tabindex="0", aria_label=caption)


def _cell(weight: float, visible: bool) -> Html:
    if not visible:
        return element("td", "·", class_="hidden", aria_label="hidden")
    return _coloured(float(weight), f"{100 * weight:.0f}")


def _coloured(share: float, text: str) -> Html:
    """A cell as dark as `share`, from 0 to 1, in letters that stand out from it."""
    red, green, blue = (round(255 - share * ink) for ink in INK)
    letters = "#fff" if share > LIGHT_ON else "#000"
    return element("td", text, style=f"background:rgb({red},{green},{blue});color:{letters}")
