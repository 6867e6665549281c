"""Tables from anywhere to frames of text: told apart by what is in them, not by their names."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from qkvsearch.data.files.databases import SQLITE, is_url, read_sqlite, read_url
from qkvsearch.data.files.delimited import read_delimited
from qkvsearch.data.files.frames import as_text, check_width, without_long_cells
from qkvsearch.data.files.json_rows import looks_like_json, read_json_rows
from qkvsearch.data.files.unpacking import ZIP, Place, unpacked
from qkvsearch.data.files.workbooks import read_workbook
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, need
from qkvsearch.limits import CELL, ROWS

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
TAB_SUFFIXES = (".tsv", ".tab")
BYTE_ORDER_MARKS = {
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
NO_TABLES = {
    b"\xd0\xcf\x11\xe0": "a workbook of an old Excel; save it as .xlsx or CSV",
    b"%PDF": "a PDF, not a table",
    b"\x89PNG": "a picture, not a table",
    b"\xff\xd8\xff": "a picture, not a table",
    b"7z\xbc\xaf": "a 7z archive; unpack it first",
    b"Rar!": "a rar archive; unpack it first",
}


def read_table(
    source: str | Path,
    *,
    delimiter: str | None = None,
    names: Sequence[str] | None = None,
    encoding: str | None = None,
) -> tuple[pd.DataFrame, ReadReport]:
    """All columns as text, so that the id 007 stays 007; blank cells are missing. The index counts
    the rows of the file from 1, its header included.

    source: a path; "-", standard input; `archive.zip#orders.csv`, `book.xlsx#Sheet2`,
    `shop.db#orders` or `shop.db#SELECT …`; or the address of a database, with `#` and a table or a
    SELECT. `delimiter` and `encoding` are guessed where not given; `names` are the columns of a
    file without a header. Lists inside cells become `a|b|c`. Raises `DataError` naming the file
    where it is missing, empty or not a table.
    """
    if is_url(str(source)):
        frame, report = read_url(str(source))
        return without_long_cells(frame, report), report
    with unpacked(source) as place:
        start = place.start()
        frame, report = _read_by_kind(place, start) or _read_text(
            place, start, delimiter, names, encoding
        )
        if place.path.stat().st_size > CELL.most:
            frame = without_long_cells(frame, report)
        ROWS.check(len(frame), place.label)
    return frame, report


def _read_by_kind(place: Place, start: bytes) -> tuple[pd.DataFrame, ReadReport] | None:
    """What says by its first bytes what it is; None for text."""
    if not start:
        raise DataError(f"{place.label}: the file is empty")
    for mark, what in NO_TABLES.items():
        if start.startswith(mark):
            raise DataError(f"{place.label}: {what}")
    if start.startswith(SQLITE):
        return read_sqlite(place.label, place.path, place.part)
    if start.startswith(ZIP):
        return read_workbook(place.label, place.path, place.part)
    if place.part:
        raise DataError(
            f"{place.label}: no archive, spreadsheet or database, so there is no part "
            f"#{place.part} in it"
        )
    if start.startswith(b"PAR1") or place.suffix == ".parquet":
        return _read_parquet(place)
    return None


def _read_parquet(place: Place) -> tuple[pd.DataFrame, ReadReport]:
    parquet = need("pyarrow.parquet", "parquet", f"{place.label}: reading Parquet", error=DataError)
    try:
        # A file of a few bytes may say that it has any number of rows.
        ROWS.check(parquet.read_metadata(place.path).num_rows, place.label)
        frame = pd.read_parquet(place.path)
    except DataError:
        raise
    except (OSError, ValueError, NotImplementedError) as error:
        raise DataError(f"{place.label}: not a Parquet file: {error}") from None
    check_width(len(frame.columns), place.label)
    texts = as_text(frame)
    return texts.set_axis(range(1, len(texts) + 1)), ReadReport(place.name, read=len(texts))


def _read_text(
    place: Place,
    start: bytes,
    delimiter: str | None,
    names: Sequence[str] | None,
    encoding: str | None,
) -> tuple[pd.DataFrame, ReadReport]:
    text, repaired = _open_text(place.path, start, encoding)
    with text:
        told = delimiter is not None or names is not None
        if place.suffix in JSON_SUFFIXES or (not told and looks_like_json(text)):
            frame, report = read_json_rows(place.label, place.name, text)
        else:
            delimiter = delimiter or ("\t" if place.suffix in TAB_SUFFIXES else None)
            frame, report = read_delimited(place.label, place.name, text, delimiter, names)
    report.repaired = repaired
    return frame, report


def _open_text(path: Path, start: bytes, encoding: str | None) -> tuple[io.TextIOBase, int]:
    """The decoded text, and how many lines were not valid in the file's main encoding.

    Tools export UTF-8, UTF-16 or the Windows code page. Files joined from several exports mix
    them, so each line that is not UTF-8 is read as Windows-1252.
    """
    encoding = encoding or wide_encoding(start)
    if encoding is not None:
        return path.open(encoding=encoding, errors="replace", newline=""), 0
    try:
        with path.open(encoding="utf-8") as file_text:
            while file_text.read(1 << 20):
                pass
        return path.open(encoding="utf-8-sig", newline=""), 0
    except UnicodeDecodeError:
        lines: list[str] = []
        repaired = 0
        for line in path.read_bytes().split(b"\n"):
            try:
                lines.append(line.decode("utf-8-sig" if not lines else "utf-8"))
            except UnicodeDecodeError:
                repaired += 1
                lines.append(line.decode("cp1252", errors="replace"))
        return io.StringIO("\n".join(lines), newline=""), repaired


def wide_encoding(start: bytes) -> str | None:
    """Of a text in two or four bytes a letter: by its mark, or by where its zeros are."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if start.startswith(mark):
            return encoding
    low, high = start[::2].count(0), start[1::2].count(0)
    most = len(start) // 4
    if max(low, high) <= most or min(low, high) > 0:
        return None
    return "utf-16-be" if low > high else "utf-16-le"
