"""Tables from anywhere to frames of text: told apart by what is in them, not by their names."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd

from qkvsearch._utils.limits import CELL_BYTES, LOG_ROWS, ROWS, Limit, check_unpacked
from qkvsearch.data.files.databases import SQLITE, is_url, read_sqlite, read_url
from qkvsearch.data.files.delimited import read_delimited
from qkvsearch.data.files.encoded import EncodedTable, TableEncoder
from qkvsearch.data.files.frames import Piece, text_lengths, without_long_cells
from qkvsearch.data.files.json_rows import looks_like_json, read_json_rows
from qkvsearch.data.files.parquet import MARK, ArrowPiece, read_parquet
from qkvsearch.data.files.scratch import scratch_file
from qkvsearch.data.files.unpacking import ZIP, Place, unpacked
from qkvsearch.data.files.workbooks import read_workbook
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError

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
    frames: list[pd.DataFrame] = []
    for piece, read in _pieces(source, ROWS, delimiter, names, encoding):
        frames.append(piece if isinstance(piece, pd.DataFrame) else piece.frame())
        report = read
    return frames[0] if len(frames) == 1 else pd.concat(frames), report


def read_encoded(
    source: str | Path,
    *,
    delimiter: str | None = None,
    names: Sequence[str] | None = None,
    encoding: str | None = None,
) -> tuple[EncodedTable, ReadReport]:
    """The same cells, of a table that may be longer than memory, some rows of it at a time."""
    encoder = TableEncoder()
    for piece, read in _pieces(source, LOG_ROWS, delimiter, names, encoding):
        report = read
        if isinstance(piece, pd.DataFrame):
            encoder.add(piece)
        else:
            piece.encode(encoder)
    return encoder.table(), report


def _pieces(
    source: str | Path,
    most: Limit,
    delimiter: str | None,
    names: Sequence[str] | None,
    encoding: str | None,
) -> Iterator[tuple[pd.DataFrame | ArrowPiece, ReadReport]]:
    """At least one. Raises `DataError`."""
    if is_url(str(source)):
        yield from _within_limits(read_url(str(source)), most, None)
        return
    with unpacked(source) as place:
        start = place.start()
        if start.startswith(MARK) or (start and place.suffix == ".parquet"):
            yield from read_parquet(place, most)
            return
        pieces = _by_kind(place, start) or _read_text(place, start, delimiter, names, encoding)
        yield from _within_limits(pieces, most, place)


def _within_limits(pieces: Iterable[Piece], most: Limit, place: Place | None) -> Iterator[Piece]:
    """Pieces without rows that have too long cells. Raises `DataError` for too many rows, and for
    a table much larger than its file. place: None for a server's.
    """
    names: set[str] = set()
    n_rows = n_characters = 0
    for frame, report in pieces:
        names.update(frame.columns)
        n_rows += len(frame)
        lengths = text_lengths(frame)
        n_characters += int(lengths.sum())
        most.check(n_rows, place.label if place else report.file)
        if place is not None:
            size = n_characters + CELL_BYTES * n_rows * len(names)
            check_unpacked(size, place.size, place.label)
        yield without_long_cells(frame, lengths, report), report


def _by_kind(place: Place, start: bytes) -> Iterable[Piece] | None:
    """What says by its first bytes what it is; None for text."""
    if not start:
        raise DataError(f"{place.label}: the file is empty")
    for mark, what in NO_TABLES.items():
        if start.startswith(mark):
            raise DataError(f"{place.label}: {what}")
    if start.startswith(SQLITE):
        return read_sqlite(place)
    if start.startswith(ZIP):
        return [read_workbook(place)]
    if place.part:
        raise DataError(
            f"{place.label}: no archive, spreadsheet or database, so there is no part "
            f"#{place.part} in it"
        )
    return None


def _read_text(
    place: Place,
    start: bytes,
    delimiter: str | None,
    names: Sequence[str] | None,
    encoding: str | None,
) -> Iterator[Piece]:
    text, repaired = _open_text(place.path, start, encoding)
    with text:
        told = delimiter is not None or names is not None
        if place.suffix in JSON_SUFFIXES or (not told and looks_like_json(text)):
            pieces = read_json_rows(place, text)
        else:
            delimiter = delimiter or ("\t" if place.suffix in TAB_SUFFIXES else None)
            pieces = read_delimited(place.label, place.name, text, delimiter, names)
        for frame, report in pieces:
            report.repaired = repaired
            yield frame, report


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
        return _repaired(path)


def _repaired(path: Path) -> tuple[io.TextIOBase, int]:
    """The text in a file of its own, and how many lines were not valid UTF-8."""
    file, repaired, encoding = scratch_file(), 0, "utf-8-sig"
    with path.open("rb") as content:
        while block := content.read(1 << 20) + content.readline():
            try:
                file.write(block.decode(encoding).encode())
            except UnicodeDecodeError:
                for line in io.BytesIO(block):
                    try:
                        text = line.decode(encoding)
                    except UnicodeDecodeError:
                        repaired += 1
                        text = line.decode("cp1252", errors="replace")
                    file.write(text.encode())
                    encoding = "utf-8"
            encoding = "utf-8"
    file.seek(0)
    return io.TextIOWrapper(file, "utf-8", newline=""), repaired


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
