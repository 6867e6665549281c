"""Spreadsheets of LibreOffice (.ods): what their XML says, read before a library reads it."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO
from xml.parsers import expat

from qkvsearch._utils.limits import check_unpacked
from qkvsearch.errors import DataError
from qkvsearch.tables.files.sheet_facts import SheetFacts

CONTENT = "content.xml"
CHUNK = 1 << 20
TYPE = b"application/vnd.oasis.opendocument.spreadsheet"
_TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0 "
_OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0 "
_CALC = "urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0 "
SHEET, ROW, CELL = f"{_TABLE}table", f"{_TABLE}table-row", f"{_TABLE}table-cell"
COVERED = f"{_TABLE}covered-table-cell"
ROWS_REPEATED, COLUMNS_REPEATED = (
    f"{_TABLE}number-rows-repeated",
    f"{_TABLE}number-columns-repeated",
)
SPANNED = (f"{_TABLE}number-rows-spanned", f"{_TABLE}number-columns-spanned")
VALUE_TYPE, CALC_TYPE = f"{_OFFICE}value-type", f"{_CALC}value-type"
# The columns of a sheet at most, and about the bytes of a cell's row and column.
MAX_COLUMNS, PLACE_BYTES = 16_384, 100


def is_open_document(path: Path) -> bool:
    """Return whether an archive is a spreadsheet of LibreOffice."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read("mimetype").startswith(TYPE) and CONTENT in archive.namelist()
    except (OSError, KeyError, RuntimeError, zipfile.BadZipFile, NotImplementedError):
        return False


def sheets_of_open_document(content: IO[bytes], packed: int, label: str) -> list[SheetFacts]:
    """Return the facts about each sheet, by its XML. packed: the bytes of the file. Raises
    `DataError`.
    """
    scan = _Scan(packed, label)
    try:
        while chunk := content.read(CHUNK):
            scan.parser.Parse(chunk, False)
        scan.parser.Parse(b"", True)
    except (expat.ExpatError, ValueError) as error:
        raise DataError(f"{label}: not a spreadsheet, or damaged: {error}") from None
    return scan.sheets


class _Scan:
    """The elements of all sheets, one after another."""

    def __init__(self, packed: int, label: str) -> None:
        self._packed = packed
        self._label = label
        self._n_percent = 0
        self.sheets: list[SheetFacts] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self._depth = 0  # of tables: one within a cell is no sheet
        self._row = self._column = 0
        self._n_repeated = 1  # of the row
        self._last_column = -1  # the last one of the row that is not empty
        self._percent: list[int] = []

    def _begin(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == SHEET:
            self._depth += 1
            if self._depth == 1:
                self.sheets.append(SheetFacts())
                self._row = 0
        elif self._depth != 1:
            return
        elif name == ROW:
            self._n_repeated = max(1, int(attributes.get(ROWS_REPEATED, 1)))
            self._column, self._last_column, self._percent = 0, -1, []
        elif name in (CELL, COVERED):
            self._add_cell(attributes)

    def _add_cell(self, attributes: Mapping[str, str]) -> None:
        n_cells = max(1, int(attributes.get(COLUMNS_REPEATED, 1)))
        kind = attributes.get(VALUE_TYPE)
        if kind is not None:
            self._last_column = self._column + n_cells - 1
        if kind == "percentage":
            self._percent += range(self._column, min(self._column + n_cells, MAX_COLUMNS))
        sheet = self.sheets[-1]
        sheet.n_errors += attributes.get(CALC_TYPE) == "error"
        is_merged = any(int(attributes.get(spanned, 1)) > 1 for spanned in SPANNED)
        sheet.n_merged += is_merged and self._row > 0
        self._column += n_cells

    def _end(self, name: str) -> None:
        if name == SHEET:
            self._depth -= 1
        elif name == ROW and self._depth == 1:
            if self._last_column >= 0:
                self.sheets[-1].add(self._row + self._n_repeated - 1, self._last_column)
                self._add_percent()
            self._row += self._n_repeated

    def _add_percent(self) -> None:
        """Keep which cells of a row, and of those that repeat it, are percentages."""
        self._n_percent += self._n_repeated * len(self._percent)
        check_unpacked(PLACE_BYTES * self._n_percent, self._packed, self._label)
        for column in self._percent:
            rows = range(self._row, self._row + self._n_repeated)
            self.sheets[-1].percent.update((row, column) for row in rows)
