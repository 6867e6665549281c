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
from qkvsearch.tables.files.json_rows import JSON
from qkvsearch.tables.files.kinds import refuse_other_kinds
from qkvsearch.tables.files.other_workbooks import OTHER_WORKBOOK, other_sheet_names
from qkvsearch.tables.files.parquet import PARQUET
from qkvsearch.tables.files.unpacking import TableFile, unpacked
from qkvsearch.tables.files.workbooks import WORKBOOK, sheet_names
from qkvsearch.tables.frames import Piece
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.table import Table, TableBuilder

# The formats of files, in the order in which they are tried. Any other text is CSV.
BINARY_FORMATS = (PARQUET, SQLITE, OTHER_WORKBOOK, WORKBOOK)
TEXT_FORMATS = (JSON, DELIMITED)
# A file that begins with a byte order mark was joined to another one.
MARKS_LEFT_OUT = "{n} byte order {n:mark|marks} within the file left out"


def read_table(source: str | Path, **options: Any) -> tuple[pd.DataFrame, ReadReport]:
    """Read a table as text, so that the id 007 stays 007; blank cells are missing. The index is the
    number of the row in the file, counted from 1 with the header.

    source: a path; "-", standard input; `archive.zip#orders.csv`, `book.xlsx#Sheet2` or
    `shop.db#orders`. options: delimiter and encoding, detected by default; and names, the columns
    of a file without a header.
    Lists inside cells become `a|b|c`. Raises `DataError` that names the file.
    """
    encoder = TableBuilder()
    report = read_into(encoder, source, ROWS, **options)
    return encoder.table().frame(), report


def read_encoded(source: str | Path, **options: Any) -> tuple[Table, ReadReport]:
    """Read a table that may be larger than memory."""
    encoder = TableBuilder()
    report = read_into(encoder, source, LOG_ROWS, **options)
    return encoder.table(), report


def read_into(
    encoder: TableBuilder,
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


def sheets_of(path: str | Path) -> list[str]:
    """Return the sheets of a workbook that have rows and are not hidden. Raises `DataError`."""
    with unpacked(path) as file:
        start = file.start()
        if OTHER_WORKBOOK.fits(file, start):
            return other_sheet_names(file)
        if WORKBOOK.fits(file, start):
            return sheet_names(file)
        raise DataError(f"{file.label}: no workbook, so there are no sheets to join (#*)")


def _refuse_others(file: TableFile, start: bytes) -> None:
    """Raise `DataError` for a file that is no text either, and for a part of a text."""
    refuse_other_kinds(start, file.label)
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
            if number == 0:
                report.note(decoded.n_marks, MARKS_LEFT_OUT)
            yield frame, report
