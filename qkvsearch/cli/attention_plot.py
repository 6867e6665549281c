"""Attention in a file: a picture (PNG, SVG) by matplotlib, or an HTML page."""

import io
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from qkvsearch._utils.files import write_file
from qkvsearch.errors import QkvError, need
from qkvsearch.lessons.markup import Html, element, grid, joined
from qkvsearch.terminal import printable
from qkvsearch.text.encoded_text import AttentionMap, Comparison

# Fonts in order of preference; a later one draws the letters that earlier ones lack.
FONTS = (
    "DejaVu Sans", "Noto Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "PingFang SC",
    "Hiragino Sans", "Microsoft YaHei", "Malgun Gothic", "Arial Unicode MS", "Unifont",
)  # fmt: skip
COLOURS = "Blues"
# Inches for a token, in one map and in one of several; pixels per inch.
CELL, SMALL_CELL = 0.42, 0.13
MARGIN, DOTS = 1.8, 120
# The weight from which numbers are white.
LIGHT_ON = 0.73
# The most tokens with numbers in cells, and with labels.
MAX_NUMBERED, MAX_LABELLED = 40, 120
# The longest side of a picture that viewers can open.
MAX_INCHES = 100
MAX_COLUMNS = 12


def write_maps(path: Path, maps: Sequence[AttentionMap], title: str) -> None:
    """Write one map, or several side by side, in the format of the file's suffix.

    Raises `QkvError` if the file cannot be written, or matplotlib is not installed.
    """
    _write(path, maps_page, _draw_maps, maps, title)


def write_comparison(path: Path, comparison: Comparison, title: str) -> None:
    """Write a curve over the layers for each word. Raises as `write_maps`."""
    _write(path, comparison_page, _draw_lines, comparison, title)


def _write(path: Path, page: Any, draw: Any, content: Any, title: str) -> None:
    if path.suffix.lower() == ".html":
        write_file(path, page(content, title).encode("utf-8", "replace"))
        return
    title = printable(" ".join(title.split()))
    write_file(path, drawn(path, lambda figure: draw(figure, content, title), title))


def drawn(path: Path, draw: Any, title: str, instead: str = ".html needs nothing") -> bytes:
    """Return the bytes of a picture, the same for the same numbers. draw: called with the figure.

    Raises `QkvError` with the advice `instead` if matplotlib is not installed.
    """
    names = ("matplotlib", "matplotlib.figure", "matplotlib.font_manager")
    try:
        matplotlib, figures, fonts = (
            need(name, "plot", f"{path}: drawing", f" ({instead})") for name in names
        )
    except ValueError as error:
        raise QkvError(
            f"{path}: matplotlib cannot read its settings (matplotlibrc): {error}"
        ) from None
    installed = set(fonts.fontManager.get_font_names())
    kind = path.suffix.lower()[1:]
    metadata = {"Title": title} | ({"Date": None} if kind == "svg" else {})
    options = {
        "font.family": [name for name in FONTS if name in installed] or ["sans-serif"],
        "svg.fonttype": "none",
        "svg.hashsalt": "qkvsearch",
    }
    buffer = io.BytesIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A `matplotlibrc` in the current folder could make LaTeX run code.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(options)
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = figures.Figure(layout="constrained")
        draw(figure)
        figure.savefig(buffer, format=kind, dpi=DOTS, metadata=metadata)
    return buffer.getvalue()


def _draw_maps(figure: Any, maps: Sequence[AttentionMap], title: str) -> None:
    n = max(len(maps[0].tokens), 1)
    if len(maps) == 1:
        side = min(MARGIN + CELL * n, MAX_INCHES)
        figure.set_size_inches(max(side, 4), max(side, 4))
        _draw_map(figure.add_subplot(), maps[0], labelled=n <= MAX_LABELLED)
    else:
        n_columns = min(len({map_.head for map_ in maps}), MAX_COLUMNS)
        side = max(SMALL_CELL * n, 1.2)
        all_axes = side_by_side(figure, len(maps), n_columns, (side, side + 0.3), (1, 1))
        for axes, map_ in zip(all_axes, maps, strict=True):
            _draw_map(axes, map_, labelled=False)
    figure.suptitle(title, parse_math=False, wrap=True)


def side_by_side(
    figure: Any, n: int, n_columns: int, each: tuple[float, float], more: tuple[float, float]
) -> list[Any]:
    """Return axes for n drawings of `each` inches, and `more` around them."""
    n_rows = -(-n // n_columns)
    width, height = n_columns * each[0] + more[0], n_rows * each[1] + more[1]
    shrink = min(1, MAX_INCHES / max(width, height))
    figure.set_size_inches(width * shrink, height * shrink)
    all_axes = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
    for axes in all_axes[n:]:
        axes.set_visible(False)
    return all_axes[:n]


def draw_matrix(
    axes: Any,
    values: np.ma.MaskedArray,
    labels: tuple[Sequence[str], Sequence[str]] | None,
    written: Callable[[float], str],
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    turned: int = 90,
    size: int = 8,
) -> None:
    """Draw a matrix: larger values are darker, masked ones grey.

    labels: of rows and columns; None for no labels and no numbers. written: formats the number in a
    cell. turned: the angle of column labels in degrees. size: the font size of numbers.
    """
    low, high = limits
    axes.set_facecolor("0.85")
    if values.size:
        axes.imshow(values, cmap=COLOURS, vmin=low, vmax=high, interpolation="nearest")
    if labels is None:
        axes.set_xticks([])
        axes.set_yticks([])
        return
    rows, columns = (list(map(printable, names)) for names in labels)
    axes.set_xticks(range(len(columns)), columns, rotation=turned, parse_math=False)
    axes.set_yticks(range(len(rows)), rows, parse_math=False)
    visible = (~np.ma.getmaskarray(values)).nonzero()
    for i, j in zip(*visible, strict=True) if max(values.shape) <= MAX_NUMBERED else ():
        value = float(values.data[i, j])
        is_dark = high > low and (value - low) / (high - low) > LIGHT_ON
        colour = "white" if is_dark else "black"
        axes.text(j, i, written(value), ha="center", va="center", color=colour, fontsize=size)


def _draw_map(axes: Any, map_: AttentionMap, *, labelled: bool) -> None:
    """Draw a map: rows attend to columns, masked pairs are grey."""
    values = np.ma.masked_array(map_.weights, ~map_.mask)
    labels = (map_.tokens, map_.tokens) if labelled else None
    draw_matrix(axes, values, labels, lambda weight: f"{100 * weight:.0f}")
    where = [] if map_.layer is None else [f"layer {map_.layer}"]
    where += [] if map_.head is None else [f"head {map_.head}"]
    axes.set_title(", ".join(where), fontsize=10 if labelled else 7)
    if labelled:
        axes.set_xlabel("is attended to")
        axes.set_ylabel("attends")


def _draw_lines(figure: Any, comparison: Comparison, title: str) -> None:
    figure.set_size_inches(7, 4.5)
    axes = figure.add_subplot()
    depths = range(len(comparison.cosines))
    for i, word in enumerate(comparison.words):
        (line,) = axes.plot(depths, comparison.cosines[:, i], marker="o")
        last = (depths[-1], comparison.cosines[-1, i])
        axes.annotate(
            printable(word), last, xytext=(6, 0), textcoords="offset points", va="center",
            color=line.get_color(), parse_math=False,
        )  # fmt: skip
    axes.set_xticks(list(depths))
    axes.set_xlabel("layers of attention that the word went through")
    axes.set_ylabel("cosine with itself in the other text")
    axes.margins(x=0.1)
    axes.set_title(title, parse_math=False, wrap=True)


# --- pages ---

PAGE = Path(__file__).with_name("attention_page.html")
HOW_MAPS = (
    "Rows attend to columns; numbers are percent, and each row adds up to 100. Darker cells have "
    "more weight; a dot is a masked pair."
)
HOW_COSINES = (
    "The cosine of each word with itself in the other text: before any attention (0), and after "
    "each layer. 1 is the same meaning."
)
# How much red, green and blue a cell loses at the largest share.
INK = (247, 155, 77)
# The share from which letters are white.
INK_LIGHT_ON = 0.86


def maps_page(maps: Sequence[AttentionMap], title: str) -> str:
    """Return a page with a table for each map, with numbers and colours."""
    tables = "".join(_map_table(map_) for map_ in maps)
    return _page(title, HOW_MAPS, tables, "1rem" if len(maps) == 1 else ".7rem")


def comparison_page(comparison: Comparison, title: str) -> str:
    """Return a page with a row for each word and a column for each depth."""
    depths = [str(depth) for depth in range(len(comparison.cosines))]
    rows = (
        (word, [_coloured(max(float(x), 0.0), f"{x:.3f}") for x in comparison.cosines[:, i]])
        for i, word in enumerate(comparison.words)
    )
    caption = "Cosine after each number of layers"
    return _page(title, HOW_COSINES, _table(caption, "word", depths, rows), "1rem")


def _page(title: str, how: str, tables: str, size: str) -> str:
    heading = joined([printable(" ".join(title.split())) or "Attention"])
    page = Template(PAGE.read_text(encoding="utf-8"))
    return page.substitute(title=heading, how=how, tables=tables, size=size)


def _map_table(map_: AttentionMap) -> str:
    where = [] if map_.layer is None else [f"layer {map_.layer}"]
    if map_.layer is not None:
        where.append("mean over heads" if map_.head is None else f"head {map_.head}")
    rows = (
        (token, [_cell(*pair) for pair in zip(weights, visible, strict=True)])
        for token, weights, visible in zip(map_.tokens, map_.weights, map_.mask, strict=True)
    )
    caption = ", ".join(where).capitalize() or "Attention"
    return _table(caption, "attends \\ is attended to", map_.tokens, rows)


def _table(
    caption: str, corner: str, columns: Sequence[str], rows: Iterable[tuple[str, list[Html]]]
) -> Html:
    """Return a table in a region that scrolls, by keyboard too."""
    headings = [corner, *map(printable, columns)]
    named_rows = ((printable(name), cells) for name, cells in rows)
    table = grid(element("caption", caption), headings, named_rows, aria_describedby="how")
    return element("div", table, class_="scroll", role="region", tabindex="0", aria_label=caption)


def _cell(weight: float, visible: bool) -> Html:
    if not visible:
        return element("td", "·", class_="hidden", aria_label="hidden")
    return _coloured(float(weight), f"{100 * weight:.0f}")


def _coloured(share: float, text: str) -> Html:
    """Return a cell that is darker for a larger share, 0 to 1."""
    red, green, blue = (round(255 - share * ink) for ink in INK)
    letters = "#fff" if share > INK_LIGHT_ON else "#000"
    return element("td", text, style=f"background:rgb({red},{green},{blue});color:{letters}")
