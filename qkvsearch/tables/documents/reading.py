"""Documents to a table: a row a file."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from qkvsearch._utils.limits import CELL_BYTES, UNPACKED, Limit
from qkvsearch.errors import Count, DataError, quantity
from qkvsearch.tables.documents.document import Document, DocumentFormat
from qkvsearch.tables.documents.document_files import (
    FORMAT_OF,
    DocumentFiles,
    format_of,
    left_out_note,
    stem,
)
from qkvsearch.tables.documents.subtitles import UNREADABLE_TIMES
from qkvsearch.tables.files.encodings import open_text, wide_encoding
from qkvsearch.tables.files.kinds import refuse_other_kinds
from qkvsearch.tables.files.unpacking import unpacked
from qkvsearch.tables.frames import batched, distinct, text_of_rows
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.table import TableBuilder

TEXT, TIMES = "text", "text_times"
# Columns of a table of documents. A key of the front matter with such a name gets a number.
OWN = ("id", TEXT, TIMES)
# How many files that cannot be read are named.
MAX_NAMED = 5
CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)


class DocumentReader:
    """Reads documents, and counts those that cannot be read and what was guessed.

    encoding: of all files; None where it is detected.
    """

    def __init__(self, encoding: str | None) -> None:
        self.encoding = encoding
        self.failed: list[str] = []
        self._notes: Counter[str] = Counter()
        self._encodings: Counter[str] = Counter()
        self._doubts: list[str] = []

    def read(self, path: Path) -> Document | None:
        """Return a document, or None where it cannot be read."""
        try:
            format_ = format_of(path)
            if format_ is None:
                raise DataError(f"not one of {', '.join(FORMAT_OF)}")
            document = format_.read(self._text(path, format_))
            if not document.text and not document.columns:
                raise DataError("there is no text in it")
        except DataError as error:
            reason = str(error).removeprefix(f"{path}: ")
            self.failed.append(f"{path}: {reason}")
            return None
        self._notes += document.notes
        if not document.text:
            self._notes["files with front matter and no text"] += 1
        for doubt in document.doubts:
            self.doubt(path, doubt)
        if n := Count(document.notes[UNREADABLE_TIMES]):
            self._doubts.append(
                f"{path}: {n} {n:time|times} cannot be read, and what is said then counts as said "
                "before"
            )
        return document

    def doubt(self, path: Path, what: str) -> None:
        """Warn of a file."""
        self._doubts.append(f"{path}: {what}")

    def _text(self, path: Path, format_: DocumentFormat) -> str:
        """Return the text of a file. Raises `DataError`."""
        with unpacked(path) as file:
            start = file.start()
            if not start.strip():
                raise DataError("the file is empty")
            refuse_other_kinds(start, str(path))
            if b"\0" in start and not (self.encoding or wide_encoding(start)):
                raise DataError("not a text")
            UNPACKED.check(file.path.stat().st_size, str(path))
            decoded = open_text(file.path, start, self.encoding or _declared(start, format_))
            with decoded.text as content:
                text = content.read()
        if decoded.repaired:
            self._encodings[decoded.encoding] += 1
        if decoded.warning:
            self._doubts.append(f"{path}: {decoded.warning}")
        return text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")

    def report(self, report: ReadReport) -> None:
        """Report what was guessed and left out, and the files that cannot be read."""
        for what, count in self._notes.items():
            if count:
                report.notes.append(f"{what}: {count:,}")
        for encoding, count in self._encodings.items():
            report.notes.append(f"{quantity(count, 'file')} decoded as {encoding}")
        for warnings, what in ((self.failed, "cannot be read"), (self._doubts, "are doubtful")):
            report.warnings += warnings[:MAX_NAMED]
            if n_more := len(warnings[MAX_NAMED:]):
                report.warnings.append(f"{quantity(n_more, 'more file')} {what}")


def _declared(start: bytes, format_: DocumentFormat) -> str | None:
    """Return the encoding that a page declares, unless it is UTF-8 or none that is known."""
    match = CHARSET.search(start) if format_.extra == "html" else None
    if match is None:
        return None
    name = match[1].decode("ascii").lower()
    name = {"gb2312": "gb18030", "gbk": "gb18030", "iso-8859-1": "cp1252"}.get(name, name)
    try:
        "".encode(name)
    except LookupError:
        return None
    return None if name.replace("_", "-") in ("utf-8", "utf8") else name


def require_libraries(paths: Iterable[Path]) -> None:
    """Raise `DataError` that names the extra, where files need a library that is missing."""
    first = {format_: path for path in reversed(list(paths)) if (format_ := format_of(path))}
    for format_, path in first.items():
        format_.require_libraries(str(path))


# --- a row a file ---


def add_documents(
    encoder: TableBuilder, files: DocumentFiles, limit: Limit, encoding: str | None
) -> ReadReport:
    """Add a row for each file to a table. Raises `DataError` where none can be read, and where a
    library is missing.
    """
    limit.check(encoder.n_rows + len(files.paths), files.label)
    require_libraries(files.paths)
    report = ReadReport(files.label, read=len(files.paths), unit="file", types={TEXT: "text"})
    report.possible_ids = dict(zip(files.ids(), files.possible_ids(), strict=True))
    reader = DocumentReader(encoding)
    for numbers, rows in batched(_rows(files, reader, report)):
        if rows:
            encoder.add(_frame(rows, numbers, report))
    if len(reader.failed) == len(files.paths):
        what = "" if len(files.paths) == 1 else f"{files.label}: no file of it can be read: "
        raise DataError(f"{what}{'; '.join(reader.failed[:MAX_NAMED])}")
    report.skip("that cannot be read", len(reader.failed))
    report.notes += files.notes
    if note := left_out_note(files.left_out):
        report.notes.append(note)
    reader.report(report)
    return report


def _rows(
    files: DocumentFiles, reader: DocumentReader, report: ReadReport
) -> Iterator[tuple[int, dict[str, Any], int]]:
    """Yield the row of each file that can be read, with its number and its size in bytes. Report
    the ids of the others.
    """
    for number, (path, id_) in enumerate(zip(files.paths, files.ids(), strict=True), 1):
        document = reader.read(path)
        if document is None:
            report.unread_ids.append(id_)
            continue
        columns = dict(document.columns)
        titles = [columns.pop(key) for key in list(columns) if key.casefold() == "title"]
        if len(titles) > 1:
            reader.doubt(path, "its front matter has several titles, and the first one counts")
        title = (titles[0] if titles else "") or document.title or stem(path)
        row = {"id": id_, "title": title}
        row |= {f"{key}.1" if key in OWN else key: value for key, value in columns.items()}
        row |= cells_of(document)
        yield number, row, sum(CELL_BYTES + len(str(cell)) for cell in row.values())


def _frame(
    rows: Sequence[dict[str, Any]], numbers: Sequence[int], report: ReadReport
) -> pd.DataFrame:
    """Return rows as text, the texts behind the columns of the front matter."""
    keys = dict.fromkeys(key for row in rows for key in row)
    names = [key for key in keys if key not in (TEXT, TIMES)]
    names += [key for key in (TEXT, TIMES) if key in keys]
    cells = [[row.get(name) for name in names] for row in rows]
    return text_of_rows(cells, numbers, distinct(names), report)


def cells_of(document: Document) -> dict[str, str]:
    """Return the cells of a text and its times."""
    cells = {TEXT: document.text}
    if document.times:
        cells[TIMES] = json.dumps(document.times, separators=(",", ":"))
    return cells
