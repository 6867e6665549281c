"""Tables as text, no wider than the terminal.

A table is a list of columns, each a heading and a layout, and rows of cells. A column with the
layout "left" or "right" is as wide as its widest cell. One with the layout "wrap" becomes narrower
where the window is narrow. Where the longest words do not fit side by side, each row becomes a list
with a line for each cell.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from qkvsearch.cli.wrapping import cell_width, terminal_width, wrapped, wrapped_lines
from qkvsearch.terminal import printable

if TYPE_CHECKING:
    from rich.text import Text

# Spaces between the columns of a table.
GAP = 2
# A column that is narrowed by force keeps so many characters.
MIN_CELL = 4
# A longer word, such as a path, may be broken to fit into its column.
MAX_WORD = 20

TableColumns = Sequence[tuple[str, str]]
TableRows = Sequence[Sequence[Any]]


def to_table(columns: TableColumns, rows: TableRows, caption: str = "") -> str:
    """Return a table as wide as the terminal at most, with a caption below it."""
    if is_too_narrow(columns, rows):
        lines = [line for row in rows for line in lines_of_row(columns, row)]
    else:
        lines = table_lines(columns, rows, fitting_widths(columns, rows))
    return rendered([*lines, *captioned(caption)])


def table_lines(columns: TableColumns, rows: TableRows, widths: Sequence[int]) -> list[str | Text]:
    """Return the lines of a table with columns of these widths."""
    lines = heading_lines(columns, widths)
    for row in rows:
        lines += row_lines(columns, row, widths)
    return lines


def heading_lines(columns: TableColumns, widths: Sequence[int]) -> list[str | Text]:
    """Return the lines of the headings; none for a table without."""
    if not any(name for name, _ in columns):
        return []
    names = [styled(printable(name), "bold") for name, _ in columns]
    cells = [wrapped_lines(name, width) for name, width in zip(names, widths, strict=True)]
    return side_by_side(cells, widths, [layout for _, layout in columns], at_bottom=True)


def row_lines(columns: TableColumns, row: Sequence[Any], widths: Sequence[int]) -> list[str | Text]:
    """Return the lines of a row. Cells that are texts of Rich keep their styles."""
    cells = [_cell_lines(cell, width) for cell, width in zip(row, widths, strict=True)]
    return side_by_side(cells, widths, [layout for _, layout in columns])


def _cell_lines(cell: Any, width: int) -> Sequence[str | Text]:
    if has_styles(cell):
        return wrapped_lines(cell, width)
    return wrapped_lines(printable(str(cell)), width)


def side_by_side(
    cells: Sequence[Sequence[str | Text]],
    widths: Sequence[int],
    layouts: Sequence[str],
    *,
    at_bottom: bool = False,
) -> list[str | Text]:
    """Return a row of a table, as many lines high as its highest cell.

    cells: the lines of each cell. at_bottom: whether lower cells stand at the bottom of the row.
    """
    height = max(map(len, cells))
    lines = []
    for number in range(height):
        pieces: list[str | Text] = []
        for cell, width, layout in zip(cells, widths, layouts, strict=True):
            if pieces:
                pieces.append(" " * GAP)
            index = number - (height - len(cell)) if at_bottom else number
            piece = cell[index] if 0 <= index < len(cell) else ""
            space = " " * (width - cell_width(str(piece)))
            pieces += [space, piece] if layout == "right" else [piece, space]
        lines.append(_joined(pieces))
    return lines


def _joined(pieces: list[str | Text]) -> str | Text:
    """Return the pieces as one line, without spaces at its end."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(map(str, pieces)).rstrip()
    from rich.text import Text

    line = Text.assemble(*pieces)
    line.rstrip()
    return line


def padded(cell: str, width: int, layout: str = "left") -> str:
    """Fill a cell with spaces up to the width of its column."""
    space = " " * (width - cell_width(cell))
    return f"{space}{cell}" if layout == "right" else f"{cell}{space}"


def captioned(caption: str) -> list[str | Text]:
    """Return the lines below a table: its caption, or none."""
    if not caption:
        return []
    return [wrapped(styled(printable(caption), "dim"), terminal_width())]


def lines_of_row(columns: TableColumns, row: Sequence[Any]) -> list[str | Text]:
    """Return a line for each cell of a row that is not empty: its heading and the whole cell."""
    lines: list[str | Text] = []
    for i, ((name, _), cell) in enumerate(zip(columns, row, strict=True)):
        text = printable(" ".join(str(cell).split()))
        if not text:
            continue
        heading = f"{printable(name)}: " if name else ""
        line = styled(f"{heading}{text}", "bold") if i == 0 else f"  {heading}{text}"
        lines.append(wrapped(line, terminal_width(), indent=4))
    return lines


# --- styles ---


def styled(text: str, style: str) -> str | Text:
    """Return a text with a style if stdout is a terminal, else the text."""
    if not sys.stdout.isatty():
        return text
    from rich.text import Text

    return Text(text, style=style)


def has_colours() -> bool:
    """Return whether stdout is a terminal that shows colours, and NO_COLOR is not set."""
    if not sys.stdout.isatty():
        return False
    from rich.console import Console

    console = Console(force_terminal=True)
    return console.color_system is not None and not console.no_color


def has_styles(cell: Any) -> bool:
    """Return whether a cell is a text of Rich. Without Rich imported, there is none."""
    rich_text = sys.modules.get("rich.text")
    return rich_text is not None and isinstance(cell, rich_text.Text)


def rendered(lines: Iterable[str | Text]) -> str:
    """Return lines as one text, in colour if stdout is a terminal with colours."""
    lines = list(lines)
    is_terminal = sys.stdout.isatty()
    if not is_terminal and not any(map(has_styles, lines)):
        return "".join(f"{line}\n" for line in lines)
    from rich.console import Console
    from rich.text import Text

    text = io.StringIO()
    console = Console(
        file=text, width=terminal_width(), force_terminal=is_terminal, highlight=False
    )
    for line in lines:
        console.print(Text(line) if isinstance(line, str) else line)
    return "".join(f"{_without_padding(line)}\n" for line in text.getvalue().splitlines())


def _without_padding(line: str) -> str:
    """Return a line without the spaces at its end, styled or not."""
    return re.sub(r"[ ]+((?:\x1b\[[\d;]*m)*)$", r"\1", line)


# --- widths ---


def room_for(n_columns: int) -> int:
    """Return how many characters the cells of a row have together."""
    return terminal_width() - GAP * (n_columns - 1)


def is_too_narrow(columns: TableColumns, rows: TableRows) -> bool:
    """Return whether the window is too narrow for the longest words of a table with headings."""
    has_headings = any(name for name, _ in columns)
    return has_headings and sum(_least_widths(columns, rows)) > room_for(len(columns))


def fitting_widths(columns: TableColumns, rows: TableRows) -> list[int]:
    """Return the widths of columns that fit into the window side by side."""
    room = room_for(len(columns))
    widest = [min(width, max(room, 1)) for width in widest_cells(columns, rows)]
    widths = list(widest)
    flexible = [i for i, (_, layout) in enumerate(columns) if layout == "wrap"]
    # As long as possible no word is broken.
    narrow(widths, flexible, room, _least_widths(columns, rows))
    narrow(widths, flexible, room)
    if sum(widths) > room:  # all columns give way, not only those to wrap
        widths = list(widest)
        narrow(widths, range(len(columns)), room, [1] * len(columns))
    return widths


def widest_cells(columns: TableColumns, rows: TableRows) -> list[int]:
    """Return the width of the widest line in each column, its heading included."""
    widths = []
    for i, (name, _) in enumerate(columns):
        cells = [printable(name), *(printable(str(row[i])) for row in rows)]
        lines = [line for cell in cells for line in cell.split("\n")]
        widths.append(max(map(cell_width, lines)))
    return widths


def _least_widths(columns: TableColumns, rows: TableRows) -> list[int]:
    """Return how narrow each column may become: as its longest word for "wrap", else not at all."""
    widths = widest_cells(columns, rows)
    for i, (name, layout) in enumerate(columns):
        if layout == "wrap":
            cells = [printable(name), *(printable(str(row[i])) for row in rows)]
            words = [word for cell in cells for word in cell.split()]
            longest = max(map(cell_width, words), default=0)
            widths[i] = min(longest, MAX_WORD)
    return widths


def narrow(
    widths: list[int], flexible: Sequence[int], room: int, least: Sequence[int] | None = None
) -> None:
    """Reduce the widest of the flexible columns, in place, until all columns fit.

    least: how narrow each column may become, by default `MIN_CELL`.

    >>> widths = [6, 40, 30]
    >>> narrow(widths, [1, 2], 40)
    >>> widths
    [6, 17, 17]
    """
    if least is None:
        least = [MIN_CELL] * len(widths)
    while sum(widths) > room:
        reducible = [i for i in flexible if widths[i] > least[i]]
        if not reducible:
            return
        widths[max(reducible, key=lambda i: widths[i])] -= 1


def abreast(widths: Sequence[int], room: int) -> Iterator[slice]:
    """Divide columns into groups that fit side by side, at least one column in each.

    >>> [group.stop - group.start for group in abreast([4, 4, 4, 30, 1], room=10)]
    [2, 1, 1, 1]
    """
    start = 0
    used = 0
    for i, width in enumerate(widths):
        if i > start and used + width > room:
            yield slice(start, i)
            start = i
            used = 0
        used += width + GAP
    if widths:
        yield slice(start, len(widths))
