"""Matrices and tables in the terminal: aligned, in parts where they are wide, weights as a map."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from qkvsearch.cli.heatmap import HIDDEN, SHADES, shade
from qkvsearch.cli.lesson.wrapping import ATOM, MAX_COLUMNS, wrapped
from qkvsearch.cli.render import GAP, abreast
from qkvsearch.lessons.exports.document import ROLE_NAMES
from qkvsearch.lessons.messages import NEARLY_0, digits, mark, say, shown
from qkvsearch.lessons.parts import Matrix, Table
from qkvsearch.terminal import printable

# A row's label takes a third of the terminal at most.
LABEL_SHARE = 3
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
    labels = [Text(printable(" ".join(str(row).split()))) for row in matrix.rows]
    columns = [_Column.of("", labels, False, width // LABEL_SHARE)]
    for heading, *cells in zip(matrix.columns, *_cells(matrix), strict=True):
        columns.append(_Column.of(str(heading), cells, True))
    yield from _grids(columns, width)
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
    is_map, visible = matrix.role == "weights", matrix.visible
    has_hidden = visible is not None and not np.all(visible)
    lines = []
    for i, texts in enumerate(aligned(matrix.array)):
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


def table_view(table: Table, width: int) -> Iterator[Text]:
    """Yield the rows of a table."""
    columns = []
    for heading, *values in zip(table.columns, *table.rows, strict=True):
        is_number = all(not isinstance(value, str) for value in values)
        if is_number:
            texts = aligned(np.array(values, dtype=float)[:, None])[:, 0].tolist()
        else:
            texts = [printable(shown(value)) for value in values]
        columns.append(_Column.of(heading, list(map(Text, texts)), is_number))
    yield from _grids(columns, width)


@dataclass(frozen=True)
class _Column:
    """A heading and its cells, with the width of the longest, and that of the longest word."""

    cells: Sequence[Text]
    is_number: bool
    wide: int
    narrow: int

    @classmethod
    def of(
        cls, name: str, cells: Sequence[Text], is_number: bool, room: int = MAX_COLUMNS
    ) -> "_Column":
        """Return a column of at most `room` characters. Numbers stay whole."""
        heading = Text(printable(" ".join(name.split())), style="bold")
        texts = [cell.plain for cell in cells]
        words = ATOM.findall(heading.plain)
        words += texts if is_number else ATOM.findall(" ".join(texts))
        wide = max(map(cell_len, [heading.plain, *texts]))
        narrow = max(map(cell_len, words), default=0)
        return cls([heading, *cells], is_number, min(wide, room), min(narrow, room))

    def lines(self, row: int, width: int) -> list[Text]:
        """Return the lines of a cell: of words flush left, of a number flush right."""
        cell = self.cells[row]
        lines = wrapped(cell, width).split("\n") if not (row and self.is_number) else [cell]
        for line in lines:
            space = max(width - cell_len(line.plain), 0)
            line.pad_left(space) if self.is_number else line.pad_right(space)
        return list(lines)


def _grids(columns: Sequence[_Column], width: int) -> Iterator[Text]:
    """Yield the rows, in parts one below another where words would be cut; each part begins with
    the first column.
    """
    first, *others = columns
    groups = abreast([column.narrow for column in others], width - first.narrow - GAP)
    for part in [[first, *others[group]] for group in groups] or [[first]]:
        widths = _widths(part, width)
        for row in range(len(first.cells)):
            cells = [column.lines(row, w) for column, w in zip(part, widths, strict=True)]
            blanks = [Text(" " * w) for w in widths]
            lines = [
                Text(" " * GAP).join(
                    cell[k] if k < len(cell) else blank
                    for cell, blank in zip(cells, blanks, strict=True)
                )
                for k in range(max(map(len, cells)))
            ]
            for line in lines:
                line.rstrip()
            yield Text("\n").join(lines)


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Return the columns' widths; the widest give way as far as their words allow."""
    widths = [column.wide for column in columns]
    while sum(widths) + GAP * (len(widths) - 1) > width:
        spare = [w if w > one.narrow else 0 for one, w in zip(columns, widths, strict=True)]
        # Where no word gives way any more, words are cut.
        chosen = spare if any(spare) else widths
        widths[chosen.index(max(chosen))] -= 1
    return widths
