"""Matrices and tables in the terminal: aligned, in parts where they are wide, weights as a map."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from qkvsearch.cli.heatmap import HIDDEN, SHADES, shade
from qkvsearch.cli.text_table import GAP, abreast, side_by_side
from qkvsearch.cli.wrapping import unbroken, wrapped
from qkvsearch.lessons.exports.document import ROLE_NAMES
from qkvsearch.lessons.messages import NEARLY_0, digits, mark, say, shown
from qkvsearch.lessons.parts import Matrix, ShownTable
from qkvsearch.terminal import printable

# A row's label takes this part of the terminal at most, a third.
LABEL_SHARE = 3
# A column's label is folded when it is longer.
HEADING = 14
# Cells that are written out in symbols, one below another; the others follow the same way.
WRITTEN = 9
# Light and dark enough for either background; without colour the words say the same.
COLOURS = {
    "input": "rgb(70,190,90)",
    "weight": "default",
    "key": "rgb(230,130,20)",
    "query": "rgb(225,65,65)",
    "value": "rgb(165,100,225)",
    "score": "rgb(65,135,245)",
    "weights": "rgb(25,165,178)",
    "weighted": "rgb(195,160,0)",
    "output": "rgb(0,135,60)",
}
# Nearer to a whole number than this, one is whole: what is left comes of rounding.
ROUNDING = 1e-9
# What the symbols of a trace mean, explained beside the first matrix that has them.
NOTATION = {
    "1·": mark(
        "a1: the first number of a; k12, q12, v12: row 1, column 2 of the matrix for keys, "
        "queries, values."
    ),
    "_Q·": mark("a_Q·b_K: the query of a times the key of b, number by number, added up."),
    "S_": mark("S_ab: the weight that a gives to b; b_V: the value of b."),
}


def matrix_view(matrix: Matrix, width: int) -> Iterator[Text]:
    """Yield its name and role, then as many columns as the width holds, then its symbols."""
    colour = COLOURS[matrix.role]
    title = Text(printable(matrix.name), style=f"bold {colour}")
    role = say(ROLE_NAMES[matrix.role])
    if role.casefold() not in title.plain.casefold():
        title.append(say(" ({role})", role=role), style=f"not bold {colour}")
    yield wrapped(title, width)
    labels = [_label(row, width // LABEL_SHARE) for row in matrix.rows]
    headings = [_label(column, HEADING) for column in matrix.columns]
    cells = _cells(matrix)
    yield from _grids(labels, headings, cells, width)
    yield from _written(matrix, width)


def legends(matrix: Matrix) -> Iterator[str]:
    """Yield what the signs in this matrix mean."""
    if matrix.role == "weights":
        steps = [f"{s} {shown(i / len(SHADES))}" for i, s in enumerate(SHADES) if i]
        yield say("The darker, the more weight: from {steps}.", steps="  ".join(steps))
    if matrix.visible is not None and not matrix.visible.all():
        yield say("{sign} hidden by the mask.", sign=HIDDEN)
    symbols = "" if matrix.symbols is None else " ".join(map(str, matrix.symbols.flat))
    for sign, meaning in NOTATION.items():
        if sign in symbols:
            yield say(meaning)


def aligned(array: np.ndarray) -> np.ndarray:
    """Write numbers (rows, columns) so that decimal points line up when set flush right.

    >>> aligned(np.array([[1.0, 0.25, 0.0], [-np.inf, 0.5, 0.0]])).tolist()
    [['1', '0.25', '0'], ['−∞', '0.50', '0']]
    >>> aligned(np.array([[0.5], [0.0014]]))[:, 0].tolist()
    ['0.50  ', '0.0014']
    """
    texts = np.array([[shown(value) for value in row] for row in array], dtype=object)
    points = [len(t) - t.index(".") - 1 for t in texts.flat if "." in t and "e" not in t]
    # A small number has more; zeros that fill the others up would seem to be known.
    usual = min(max(points, default=0), digits())
    for j, column in enumerate(texts.T):
        decimals = max((len(t.partition(".")[2]) for t in column if "e" not in t), default=0)
        has_point = any("." in text for text in column)
        for i, text in enumerate(column if has_point else ()):
            texts[i, j] = _padded(text, float(array[i, j]), usual, max(decimals, usual))
    return texts.reshape(np.shape(array))


def _padded(text: str, value: float, usual: int, decimals: int) -> str:
    """Pad a number with zeros and spaces after its point; a whole number keeps its position."""
    if "e" in text or not np.isfinite(value):
        return text
    if "." not in text and (abs(value - round(value)) < ROUNDING or text == NEARLY_0):
        return text + " " * (decimals + 1)
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest:0<{usual}}".ljust(len(whole) + 1 + decimals)


def _cells(matrix: Matrix) -> list[list[Text]]:
    """Return numbers in the role's colour; weights after their shade, hidden cells after a dot."""
    is_map = matrix.role == "weights"
    visible = matrix.visible
    has_hidden = visible is not None and not np.all(visible)
    with matrix.in_its_decimals():
        written = aligned(matrix.array)
    lines = []
    for i, texts in enumerate(written):
        line = []
        for j, text in enumerate(texts):
            if has_hidden and visible is not None and not visible[i, j]:
                line.append(Text(f"{HIDDEN} {text}", style="dim"))
            elif is_map:
                share = _share(float(matrix.array[i, j]))
                line.append(Text(f"{shade(share)} {text}", style=_tint(share)))
            else:
                line.append(Text(text, style=COLOURS[matrix.role]))
        lines.append(line)
    return lines


def _share(weight: float) -> float:
    """Clip a weight to 0 to 1; NaN is 0."""
    return min(max(weight, 0.0), 1.0) if np.isfinite(weight) else 0.0


def _tint(share: float) -> str:
    """Return a colour, brighter for more."""
    return f"rgb({90 - round(65 * share)},{125 + round(40 * share)},{135 + round(43 * share)})"


# --- symbols ---


def _written(matrix: Matrix, width: int) -> Iterator[Text]:
    """Yield one symbol below another, as a_Q·b_K = 3; of many the first ones."""
    if matrix.symbols is None:
        return
    if matrix.symbols.ndim == 1:
        pairs = [*zip(matrix.rows, map(str, matrix.symbols), strict=True)]
    else:
        flat = zip(matrix.symbols.flat, matrix.array.flat, strict=True)
        pairs = [(str(s), shown(x)) for s, x in flat if str(s) != shown(x)]
    for left, right in pairs[:WRITTEN]:
        yield wrapped(Text(f"  {left} = {right}", style="dim"), width, indent=6)
    if len(pairs) > WRITTEN:
        yield Text(say("  … and so on, {n} in all.", n=len(pairs)), style="dim")


# --- the grid ---


def _label(text: str, width: int) -> Text:
    """Fold a long label; cut a word that is too long between letters."""
    return wrapped(Text(printable(" ".join(str(text).split()))), max(width, 4))


def _wide(text: Text) -> int:
    return max((cell_len(line) for line in text.plain.split("\n")), default=0)


def _parts(
    labels: Sequence[Text], headings: Sequence[Text], cells: list[list[Text]], width: int
) -> list[list[tuple[int, int]]]:
    """Return the columns that are side by side: the index and the width of each."""
    needed = [
        max([_wide(heading), *(_wide(line[j]) for line in cells)])
        for j, heading in enumerate(headings)
    ]
    room = width - max(map(_wide, labels), default=0) - GAP
    return [list(enumerate(needed))[part] for part in abreast(needed, room)]


def _grids(
    labels: Sequence[Text], headings: Sequence[Text], cells: list[list[Text]], width: int
) -> Iterator[Text]:
    """Yield the matrix, in parts one below another where it is wider than the terminal."""
    label_width = max(map(_wide, labels), default=0)
    for part in _parts(labels, headings, cells, width):
        widths = [label_width, *(needed for _, needed in part)]
        yield grid_line([Text(), *(headings[j] for j, _ in part)], widths, "bold")
        for label, line in zip(labels, cells, strict=True):
            yield grid_line([label, *(line[j] for j, _ in part)], widths)


def grid_line(
    cells: Sequence[Text],
    widths: Sequence[int],
    style: str = "",
    layouts: Sequence[str] | None = None,
) -> Text:
    """Return a row of a grid, as many lines high as its highest cell.

    layouts: "left" or "right" for each cell; by default those of a label and of numbers after it.
    """
    if layouts is None:
        layouts = ["left"] + ["right"] * (len(cells) - 1)
    split = [list(cell.split("\n", allow_blank=True)) for cell in cells]
    lines = side_by_side(split, widths, layouts)
    return Text("\n", style=style).join(map(Text.assemble, lines))


# --- tables ---


def table_view(table: ShownTable, width: int) -> Iterator[Text]:
    """Yield the rows, in parts one below another where words would be cut; each part begins with
    the first column. Numbers are flush right.
    """
    values = [[row[j] for row in table.rows] for j in range(len(table.columns))]
    columns = [_Column.of(*pair) for pair in zip(table.columns, values, strict=True)]
    first, *others = columns
    groups = abreast([column.narrow for column in others], width - first.narrow - GAP)
    parts = [[first, *others[group]] for group in groups] or [[first]]
    for part in parts:
        widths = _widths(part, width)
        layouts = ["right" if column.is_number else "left" for column in part]
        for place in range(len(table.rows) + 1):
            is_heading = place == 0
            cells = []
            for column, column_width in zip(part, widths, strict=True):
                cell = Text(column.cells[place])
                if is_heading or not column.is_number:
                    cell = wrapped(cell, column_width)
                cells.append(cell)
            yield grid_line(cells, widths, "bold" if is_heading else "", layouts)


@dataclass(frozen=True)
class _Column:
    """A heading and its cells, with the width of the longest, and that of the longest word."""

    cells: Sequence[str]
    is_number: bool
    wide: int
    narrow: int

    @classmethod
    def of(cls, name: str, values: Sequence[str | float]) -> "_Column":
        is_number = all(not isinstance(value, str) for value in values)
        if is_number:
            texts = aligned(np.array(values, dtype=float)[:, None])[:, 0].tolist()
            words = [*unbroken(name), *texts]
        else:
            texts = [shown(value) for value in values]
            words = unbroken(" ".join([name, *texts]))
        cells = [printable(text) for text in (name, *texts)]
        return cls(cells, is_number, max(map(cell_len, cells)), max(map(cell_len, words)))


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Return the columns' widths; the widest give way as far as their words allow."""
    widths = [column.wide for column in columns]
    while sum(widths) + GAP * (len(widths) - 1) > width:
        spare = [w if w > one.narrow else 0 for one, w in zip(columns, widths, strict=True)]
        # Where no word gives way any more, words are cut.
        chosen = spare if any(spare) else widths
        widths[chosen.index(max(chosen))] -= 1
    return widths
