"""A table in the terminal: points of numbers below one another, words folded between words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qkvsearch.cli.lesson.matrix import aligned, grid_line
from qkvsearch.cli.lesson.wrapping import ATOM, wrapped
from qkvsearch.cli.render import GAP, abreast, printable
from qkvsearch.lessons.messages import shown
from qkvsearch.lessons.parts import Table

if TYPE_CHECKING:
    from rich.text import Text

# No column is narrower where it has more to hold: two Chinese characters.
NARROWEST = 4


@dataclass(frozen=True)
class _Column:
    """A heading over cells, numbers flush right. wide: on a line each; narrow: with no word cut."""

    cells: Sequence[str]
    is_number: bool
    wide: int
    narrow: int

    @classmethod
    def of(cls, name: str, values: Sequence[str | float]) -> _Column:
        from rich.cells import cell_len

        is_number = all(not isinstance(value, str) for value in values)
        if is_number:
            texts = aligned(np.array(values, dtype=float)[:, None])[:, 0].tolist()
        else:
            texts = [shown(value) for value in values]
        cells = [printable(text) for text in (name, *texts)]
        wide = max(map(cell_len, cells))
        pieces = ATOM.findall(" ".join(cells[:1] if is_number else cells))
        pieces += cells[1:] if is_number else []
        return cls(cells, is_number, wide, max(min(wide, NARROWEST), *map(cell_len, pieces)))

    def folded(self, place: int, width: int) -> Text:
        """A cell, the heading's place is 0."""
        from rich.text import Text

        text = Text(self.cells[place])
        return text if place and self.is_number else wrapped(text, width)


def table_view(table: Table, width: int) -> Iterator[Text]:
    """The rows, in parts one below another where words would have to be cut; each part begins with
    the first column.
    """
    values = [[row[j] for row in table.rows] for j in range(len(table.columns))]
    columns = [_Column.of(*pair) for pair in zip(table.columns, values, strict=True)]
    for part in _parts(columns, width):
        widths = _widths(part, width)
        for place in range(len(table.rows) + 1):
            cells = [column.folded(place, w) for column, w in zip(part, widths, strict=True)]
            style = "" if place else "bold"
            yield grid_line(cells, widths, style, [not column.is_number for column in part])


def _parts(columns: Sequence[_Column], width: int) -> Iterator[list[_Column]]:
    """Columns that stand side by side, the first one at the head of each part."""
    first, *others = columns
    room = width - first.narrow - GAP
    for part in abreast([one.narrow for one in others], room):
        yield [first, *others[part]]
    if not others:
        yield [first]


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """As wide as they would be, but for the widest, which give way as far as their words allow."""
    widths = [column.wide for column in columns]
    while _total(widths) > width:
        spare = [w if w > one.narrow else 0 for one, w in zip(columns, widths, strict=True)]
        # Where no word gives way any more, words are cut.
        chosen = spare if any(spare) else widths
        widths[chosen.index(max(chosen))] -= 1
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)
