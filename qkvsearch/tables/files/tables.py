"""Tables of any format to frames of text, the format by the first bytes or else the suffix."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from qkvsearch._utils.limits import LOG_ROWS, ROWS, Limit
from qkvsearch.errors import DataError
from qkvsearch.tables.files.databases import SQLITE
from qkvsearch.tables.files.delimited import DELIMITED
from qkvsearch.tables.files.encodings import open_text
from qkvsearch.tables.files.file_format import TextOptions, add_pieces
from qkvsearch.tables.files.frames import Piece
from qkvsearch.tables.files.json_rows import JSON
from qkvsearch.tables.files.parquet import PARQUET
from qkvsearch.tables.files.unpacking import TableFile, unpacked
from qkvsearch.tables.files.workbooks import WORKBOOK
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.table import Table, TableEncoder

# The formats of files, in the order in which they are tried. Any other text is CSV.
BINARY_FORMATS = (PARQUET, SQLITE, WORKBOOK)
TEXT_FORMATS = (JSON, DELIMITED)
# How files begin that have no table in them, and what they are.
NO_TABLES = {
    b"\xd0\xcf\x11\xe0": "a workbook of an old Excel; save it as .xlsx or CSV",
    b"%PDF": "a PDF, not a table",
    b"\x89PNG": "a picture, not a table",
    b"\xff\xd8\xff": "a picture, not a table",
    b"7z\xbc\xaf": "a 7z archive; unpack it first",
    b"Rar!": "a rar archive; unpack it first",
    b"BZh": "packed as .bz2; unpack it, or pack it as .gz",
    b"\xfd7zXZ": "packed as .xz; unpack it, or pack it as .gz",
    b"\x28\xb5\x2f\xfd": "packed as .zst; unpack it, or pack it as .gz",
    b"ARROW1": "an Arrow or Feather file; save it as Parquet or CSV",
    b"FEA1": "a Feather file; save it as Parquet or CSV",
    **dict.fromkeys((b"\x80%c" % n for n in range(2, 6)), "a pickle; save it as Parquet or CSV"),
}


def read_table(source: str | Path, **options: Any) -> tuple[pd.DataFrame, ReadReport]:
    """Read a table as text, so that the id 007 stays 007; blank cells are missing. The index is the
    number of the row in the file, counted from 1 with the header.

    source: a path; "-", standard input; `archive.zip#orders.csv`, `book.xlsx#Sheet2` or
    `shop.db#orders`. options: delimiter and encoding, detected by default; and names, the columns
    of a file without a header.
    Lists inside cells become `a|b|c`. Raises `DataError` that names the file.
    """
    encoder = TableEncoder()
    report = read_into(encoder, source, ROWS, **options)
    return encoder.table().frame(), report


def read_encoded(source: str | Path, **options: Any) -> tuple[Table, ReadReport]:
    """Read a table that may be larger than memory."""
    encoder = TableEncoder()
    report = read_into(encoder, source, LOG_ROWS, **options)
    return encoder.table(), report


def read_into(
    encoder: TableEncoder,
    source: str | Path,
    limit: Limit,
    delimiter: str | None = None,
    names: Sequence[str] | None = None,
    encoding: str | None = None,
) -> ReadReport:
    """Add a table to an encoder, batch by batch. Raises `DataError`."""
    options = TextOptions(delimiter, names, encoding)
    with unpacked(source) as file:
        start = file.start()
        if not start:
            raise DataError(f"{file.label}: the file is empty")
        for file_format in BINARY_FORMATS:
            if file_format.fits(file, start):
                report = file_format.add(file, limit, encoder)
                encoder.warn_of_lost(report)
                return report
        _refuse_others(file, start)
        return add_pieces(_text_pieces(file, start, options), file, limit, encoder)


def _refuse_others(file: TableFile, start: bytes) -> None:
    """Raise `DataError` for a file that is no text either, and for a part of a text."""
    for mark, what in NO_TABLES.items():
        if start.startswith(mark):
            raise DataError(f"{file.label}: {what}")
    if re.match(rb"(?i)(\xef\xbb\xbf)?\s*<(!doctype|\?xml|html|table)\b", start):
        raise DataError(f"{file.label}: HTML or XML, not a table; save it as .xlsx or CSV")
    if file.fragment:
        raise DataError(
            f"{file.label}: no archive, spreadsheet or database, so there is no part "
            f"#{file.fragment} in it"
        )


def _text_pieces(file: TableFile, start: bytes, options: TextOptions) -> Iterator[Piece]:
    """Read a text in the first of the formats that fits."""
    decoded = open_text(file.path, start, options.encoding)
    with decoded.text as text:
        file_format = next(each for each in TEXT_FORMATS if each.fits(file, text, options))
        for number, (frame, report) in enumerate(file_format.read(file, text, options)):
            report.repaired, report.encoding = decoded.repaired, decoded.encoding
            if number == 0 and decoded.warning:
                report.warnings.append(f"{file.name}: {decoded.warning}")
            yield frame, report
