"""What a file format is: how its files are recognized, and how they are read."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from qkvsearch._utils.limits import CELL_BYTES, Limit, check_unpacked
from qkvsearch.tables.files.unpacking import TableFile
from qkvsearch.tables.frames import (
    Piece,
    text_lengths,
    without_headers,
    without_long_cells,
)
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.table import TableBuilder


class TextOptions(NamedTuple):
    """How a caller says that a text is read. Each is found out where it is None.

    names: the columns of a file without a header.
    """

    delimiter: str | None = None
    names: Sequence[str] | None = None
    encoding: str | None = None


@dataclass(frozen=True)
class BinaryFormat:
    """A format that the first bytes of a file tell, or its suffix.

    recognized_by, notes: for the documentation. fits: whether a file with these first bytes has
    it. add: adds the rows of a file to a table, batch by batch, no more than the limit. Raises
    `DataError`.
    """

    name: str
    recognized_by: str
    notes: str
    fits: Callable[[TableFile, bytes], bool]
    add: Callable[[TableFile, Limit, TableBuilder], ReadReport]


@dataclass(frozen=True)
class TextFormat:
    """A format of decoded text.

    fits: whether a text has it; leaves the text at its beginning. read: reads it batch by batch.
    Raises `DataError`.
    """

    name: str
    recognized_by: str
    notes: str
    fits: Callable[[TableFile, io.TextIOBase, TextOptions], bool]
    read: Callable[[TableFile, io.TextIOBase, TextOptions], Iterable[Piece]]


def add_pieces(
    pieces: Iterable[Piece], file: TableFile, limit: Limit, encoder: TableBuilder
) -> ReadReport:
    """Add at least one piece to a table, without the rows that have too long cells. Raises
    `DataError` for too many rows, and for a table much larger than its file.
    """
    names: set[str] = set()
    n_rows = n_characters = 0
    for frame, report in pieces:
        names.update(frame.columns)
        n_rows += len(frame)
        lengths = text_lengths(frame)
        n_characters += int(lengths.sum())
        limit.check(encoder.n_rows + len(frame), file.label)
        size = n_characters + CELL_BYTES * max(n_rows, report.n_lines) * len(names)
        check_unpacked(size, file.size, file.label)
        encoder.add(without_headers(without_long_cells(frame, lengths, report), report))
    return report
