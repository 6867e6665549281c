"""Sheets of spreadsheets (.xlsx) to frames."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, time
from pathlib import Path
from typing import Any

from qkvsearch._utils.limits import SHEET_ROWS, check_unpacked
from qkvsearch.errors import DataError, need, quantity
from qkvsearch.tables.files.file_format import BinaryFormat, add_pieces
from qkvsearch.tables.files.frames import (
    Piece,
    begins_with_number,
    cells_size,
    check_names,
    check_width,
    distinct,
    header_row,
    note_above,
    pick_name,
    text_of_rows,
)
from qkvsearch.tables.files.unpacking import ZIP, TableFile
from qkvsearch.tables.files.workbook_cells import SheetCheck
from qkvsearch.tables.report import ReadReport
from qkvsearch.terminal import shorten

# The type of the part with the texts that cells share.
SHARED_TEXTS = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"


def read_workbook(file: TableFile) -> Piece:
    """Read the named sheet, or the only one that has rows. Raises `DataError`."""
    label = file.label
    library, task = "openpyxl.reader.excel", f"{label}: reading a spreadsheet"
    excel = need(library, "xlsx", task, error=DataError)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about what openpyxl does not read, such as images
            reader = excel.ExcelReader(file.path, read_only=True, data_only=True, keep_links=False)
            reader.read_chartsheet = lambda *_: None  # the library fails where one is empty
            reader.read()
            with closing(reader.wb):
                _check_sheets(reader, label)
                sheet = _pick_sheet(reader, file)
                rows = _rows(sheet, file)
                n_uncomputed = _checked(sheet, reader, label).n_uncomputed
                _check_shared_texts(reader, label)
    except DataError:
        raise
    except Exception as error:  # a damaged file fails wherever the library first notices
        raise DataError(f"{label}: not a spreadsheet, or damaged: {error}") from None
    if not rows:
        raise DataError(f"{label}: no cell has anything in it")
    name = sheet.title
    report = ReadReport(f"{Path(label.partition('#')[0]).name}#{name}")
    n_filled = [len(row) for _, row in rows]
    n_above = header_row([max(n_filled)] * len(rows), n_filled)
    if begins_with_number(rows[n_above][1]):
        n_above = 0
    above = [str(cell) for _, row in rows[:n_above] for cell in row if cell is not None]
    note_above(report, n_above, " ".join(above))
    (_, header), *rows = rows[n_above:]
    width = len(header)
    check_names(distinct(header), label)
    cells = [[*row[:width], *[None] * (width - len(row))] for _, row in rows]
    frame = text_of_rows(cells, [number for number, _ in rows], header, report)
    too_long = [number for number, row in rows if len(row) > width]
    report.read = len(rows)
    report.skip("with too many columns", too_long)
    if n_uncomputed:
        report.warnings.append(
            f"{report.file}: {quantity(n_uncomputed, 'cell')} with a formula but no stored value "
            "read as empty: open and save the file in a spreadsheet program"
        )
    if too_long:
        report.warnings.append(
            f"{report.file}: {quantity(len(too_long), 'row')} skipped, the first of them row "
            f"{too_long[0]:,}, with cells to the right of the last named column; name that column"
        )
    return frame.drop(index=too_long), report


def _check_sheets(reader: Any, label: str) -> None:
    """Raise `DataError` for two sheets of one title, and for a sheet that the library leaves out
    because its part is not in the file.
    """
    titles = set()
    for entry, part in reader.parser.find_sheets():
        name = shorten(entry.name)
        if part.target not in reader.valid_files:
            raise DataError(
                f"{label}: not a spreadsheet, or damaged: the rows of sheet {name!r} are missing"
            )
        if entry.name in titles:
            raise DataError(
                f"{label}: not a spreadsheet, or damaged: two sheets have the title {name!r}; "
                "rename one of them in a spreadsheet program, or save each as CSV"
            )
        titles.add(entry.name)


def _pick_sheet(reader: Any, file: TableFile) -> Any:
    """Return the named sheet, or else the only one that has rows."""
    sheets = {sheet.title: sheet for sheet in reader.wb.worksheets}
    for sheet in sheets.values():
        sheet.reset_dimensions()  # some programs write them wrong
    if file.fragment:
        return sheets[pick_name(file.fragment, list(sheets), "sheet", file.label)]
    with_rows = []
    for name, sheet in sheets.items():
        if any(True for _ in _filled_rows(sheet, file)):
            with_rows.append(name)
        else:
            _checked(sheet, reader, file.label)  # it may look empty because it is damaged
    return sheets[pick_name("", with_rows or list(sheets)[:1], "sheet", file.label)]


def _filled_rows(sheet: Any, file: TableFile) -> Iterator[tuple[int, list[Any]]]:
    """Yield rows that are not blank, by their numbers, up to the last filled cell. Raises
    `DataError` for too many cells: openpyxl returns rows and cells that the file leaves out, too.
    """
    n_cells = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        n_cells += len(row)
        if number % 1_000 == 0:
            SHEET_ROWS.check(number, file.label)
            check_unpacked(n_cells, file.size, file.label)
        cells = [_plain(cell) for cell in row]
        while cells and cells[-1] is None:
            del cells[-1]
        if cells:
            yield number, cells


def _rows(sheet: Any, file: TableFile) -> list[tuple[int, list[Any]]]:
    """Return all rows that are not blank. Raises `DataError` for too many cells."""
    rows, size = [], 0
    for number, cells in _filled_rows(sheet, file):
        check_width(len(cells), file.label)
        size += cells_size(cells)
        rows.append((number, cells))
        if len(rows) % 1_000 == 0:
            check_unpacked(size, file.size, file.label)
    check_unpacked(size, file.size, file.label)
    return rows


def _checked(sheet: Any, reader: Any, label: str) -> SheetCheck:
    """Check the XML of a sheet. Raises `DataError`."""
    targets = {entry.name: part.target for entry, part in reader.parser.find_sheets()}
    check = SheetCheck(label)
    with reader.archive.open(targets[sheet.title]) as part:
        check.read(part)
    return check


def _check_shared_texts(reader: Any, label: str) -> None:
    """Check the texts that cells share. Raises `DataError`."""
    part = reader.package.find(SHARED_TEXTS)
    if part is not None:
        with reader.archive.open(part.PartName.removeprefix("/")) as content:
            SheetCheck(label).read(content)


def _plain(cell: Any) -> Any:
    """Return midnight as a day, as which a spreadsheet stores it, and an empty text as None."""
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date()
    return None if cell == "" else cell


WORKBOOK = BinaryFormat(
    name="spreadsheet, `.xlsx`",
    recognized_by="its contents",
    notes="`book.xlsx#Sheet2` if several sheets have rows; a formula counts by its stored value, "
    "and one without is a warning; needs `pip install 'qkvsearch[xlsx]'`",
    fits=lambda file, start: start.startswith(ZIP),
    add=lambda file, limit, encoder: add_pieces([read_workbook(file)], file, limit, encoder),
)
