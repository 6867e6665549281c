"""Tables of any format to frames of text, the format by the first bytes or else the suffix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from qkvsearch._utils.limits import CELL_BYTES, LOG_ROWS, ROWS, Limit, check_unpacked
from qkvsearch.errors import DataError
from qkvsearch.tables.files.databases import SQLITE, read_sqlite
from qkvsearch.tables.files.delimited import read_delimited
from qkvsearch.tables.files.encoded import EncodedTable, TableEncoder
from qkvsearch.tables.files.encodings import open_text
from qkvsearch.tables.files.frames import (
    Piece,
    text_lengths,
    without_headers,
    without_long_cells,
)
from qkvsearch.tables.files.json_rows import looks_like_json, read_json_rows
from qkvsearch.tables.files.parquet import MARK, read_parquet
from qkvsearch.tables.files.unpacking import ZIP, TableFile, unpacked
from qkvsearch.tables.files.workbooks import read_workbook
from qkvsearch.tables.report import ReadReport

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
TAB_SUFFIXES = (".tsv", ".tab")
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


def read_encoded(source: str | Path, **options: Any) -> tuple[EncodedTable, ReadReport]:
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
    with unpacked(source) as file:
        start = file.start()
        if start.startswith(MARK) or (start and file.suffix == ".parquet"):
            report = read_parquet(file, limit, encoder)
        elif pieces := _by_format(file, start):
            report = _add(pieces, limit, file, encoder)
        else:
            pieces = _read_text(file, start, delimiter, names, encoding)
            return _add(pieces, limit, file, encoder)
    encoder.warn_of_lost(report)
    return report


def _add(
    pieces: Iterable[Piece], limit: Limit, file: TableFile, encoder: TableEncoder
) -> ReadReport:
    """Add pieces to a table, without the rows that have too long cells. Raises `DataError` for too
    many rows, and for a table much larger than its file.
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


def _by_format(file: TableFile, start: bytes) -> Iterable[Piece] | None:
    """Read a format that the first bytes tell; None for text."""
    if not start:
        raise DataError(f"{file.label}: the file is empty")
    for mark, what in NO_TABLES.items():
        if start.startswith(mark):
            raise DataError(f"{file.label}: {what}")
    if re.match(rb"(?i)(\xef\xbb\xbf)?\s*<(!doctype|\?xml|html|table)\b", start):
        raise DataError(f"{file.label}: HTML or XML, not a table; save it as .xlsx or CSV")
    if start.startswith(SQLITE):
        return read_sqlite(file)
    if start.startswith(ZIP):
        return [read_workbook(file)]
    if file.fragment:
        raise DataError(
            f"{file.label}: no archive, spreadsheet or database, so there is no part "
            f"#{file.fragment} in it"
        )
    return None


# --- text ---


def _read_text(
    file: TableFile,
    start: bytes,
    delimiter: str | None,
    names: Sequence[str] | None,
    encoding: str | None,
) -> Iterator[Piece]:
    decoded = open_text(file.path, start, encoding)
    with decoded.text as text:
        is_delimited = delimiter is not None or names is not None
        if file.suffix in JSON_SUFFIXES or (not is_delimited and looks_like_json(text)):
            pieces = read_json_rows(file, text)
        else:
            delimiter = delimiter or ("\t" if file.suffix in TAB_SUFFIXES else None)
            pieces = read_delimited(file.label, file.name, text, delimiter, names)
        for number, (frame, report) in enumerate(pieces):
            report.repaired, report.encoding = decoded.repaired, decoded.encoding
            if number == 0 and decoded.warning:
                report.warnings.append(f"{file.name}: {decoded.warning}")
            yield frame, report
