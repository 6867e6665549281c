"""Sheets of .xls and .ods, which python-calamine reads, to frames.

Workbooks of .xlsx are read by openpyxl, which tells what python-calamine does not: a formula
without a value, an error, how a number is shown, and a damaged sheet. Of .xls and .ods, errors and
percentages are found in the file itself (`old_excel`, `open_documents`).
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any

from qkvsearch._utils.limits import check_unpacked
from qkvsearch.errors import DataError, need, quantity
from qkvsearch.tables.files.file_format import BinaryFormat, add_pieces
from qkvsearch.tables.files.old_excel import OLE, sheets_of_excel
from qkvsearch.tables.files.open_documents import (
    CONTENT,
    is_open_document,
    sheets_of_open_document,
)
from qkvsearch.tables.files.sheet_facts import SheetFacts, check_size
from qkvsearch.tables.files.unpacking import ZIP, TableFile
from qkvsearch.tables.files.workbook_values import in_hours
from qkvsearch.tables.files.workbooks import only_sheet, sheet_table
from qkvsearch.tables.frames import Piece, cells_size, check_width, pick_name

# A length of time as LibreOffice writes it: PT30H00M00S.
LENGTH = re.compile(r"(-?)PT(\d+)H(\d+)M(\d+)(?:[.,]\d+)?S")


def read_sheet(file: TableFile) -> Piece:
    """Read the named sheet, or the only one that has rows. Raises `DataError`."""
    with _opened(file) as (book, facts):
        names = book.sheet_names
        if file.fragment:
            name = pick_name(file.fragment, names, "sheet", file.label)
        else:
            with_rows = [name for name in names if facts[name].n_rows]
            name = only_sheet(with_rows or names[:1], file.label)
        rows = _rows(book.get_sheet_by_name(name), facts[name], file)
    frame, report, _ = sheet_table(rows, file.label, name)
    if facts[name].n_errors:
        report.warnings.append(
            f"{report.file}: {quantity(facts[name].n_errors, 'cell')} with an error read as empty: "
            "open the file in a spreadsheet program, and mend their formulas"
        )
    if facts[name].n_merged:
        report.warnings.append(
            f"{report.file}: {quantity(facts[name].n_merged, 'range')} of merged cells, with a "
            "value in the first cell alone; the others read as empty: unmerge them, and fill each"
        )
    return frame, report


def other_sheet_names(file: TableFile) -> list[str]:
    """Return the names of the sheets that have rows and are not hidden. Raises `DataError`."""
    with _opened(file) as (book, facts):
        visible = [each.name for each in book.sheets_metadata if str(each.visible) == VISIBLE]
        names = [name for name in visible if facts[name].n_rows]
    if not names:
        raise DataError(f"{file.label}: no sheet has rows, but for hidden ones")
    return names


VISIBLE = "SheetVisibleEnum.Visible"


@contextmanager
def _opened(file: TableFile) -> Iterator[tuple[Any, dict[str, SheetFacts]]]:
    """Open a workbook whose size is checked. Yield it with the facts about its sheets, by name.
    Raises `DataError` for whatever is wrong with it.
    """
    label = file.label
    task = f"{label}: reading a spreadsheet"
    library = need("python_calamine", "xlsx", task, error=DataError)
    sheets = _facts(file)
    check_size(sheets, file.size, label)
    try:
        book = library.CalamineWorkbook.from_path(str(file.path))
        names = book.sheet_names
        if len(names) != len(sheets) or len(set(names)) < len(names):
            raise DataError(f"{label}: not a spreadsheet, or damaged: its sheets differ in number")
        yield book, dict(zip(names, sheets, strict=True))
        book.close()
    except DataError:
        raise
    except Exception as error:  # a damaged file fails wherever the library first notices
        raise DataError(f"{label}: not a spreadsheet, or damaged: {error}") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of the library's Rust, and no `Exception`
            raise
        raise DataError(f"{label}: not a spreadsheet, or damaged") from None


def _facts(file: TableFile) -> list[SheetFacts]:
    if file.start().startswith(OLE):
        return sheets_of_excel(file.path.read_bytes(), file.label)
    try:
        with zipfile.ZipFile(file.path) as archive, archive.open(CONTENT) as content:
            return sheets_of_open_document(content, file.size, file.label)
    except (OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile) as error:
        raise DataError(f"{file.label}: not a spreadsheet, or damaged: {error}") from None


def _rows(sheet: Any, facts: SheetFacts, file: TableFile) -> list[tuple[int, list[Any]]]:
    """Return the rows that are not blank, by their numbers, up to the last filled cell. Raises
    `DataError` for too many cells.
    """
    first_row, first_column = sheet.start or (0, 0)
    rows = []
    size = 0
    for row, values in enumerate(sheet.to_python(), first_row):
        cells = [_plain(value) for value in values]
        while cells and cells[-1] is None:
            del cells[-1]
        if not cells:
            continue
        for place, cell in enumerate(cells):
            if (row, first_column + place) in facts.percent and isinstance(cell, int | float):
                # In decimals, since 0.07 * 100 is 7.000000000000001.
                cells[place] = f"{(Decimal(repr(cell)) * 100).normalize():f}%"
        check_width(len(cells), file.label)
        size += cells_size(cells)
        rows.append((row + 1, cells))
        if len(rows) % 1_000 == 0:
            check_unpacked(size, file.size, file.label)
    return rows


def _plain(value: Any) -> Any:
    """Return a cell as a program writes it to CSV, and an empty one as None."""
    if isinstance(value, str):
        length = LENGTH.fullmatch(value)
        if length is None:
            return value or None
        sign, hours, minutes, seconds = length.groups()
        return f"{sign}{int(hours)}:{int(minutes):02}:{int(seconds):02}"
    if isinstance(value, datetime) and value.time() == time():
        return value.date()
    if isinstance(value, timedelta):
        return in_hours(value)
    return value


def _fits(file: TableFile, start: bytes) -> bool:
    return start.startswith(OLE) or (start.startswith(ZIP) and is_open_document(file.path))


OTHER_WORKBOOK = BinaryFormat(
    name="spreadsheet, `.xls` or `.ods`",
    recognized_by="its contents",
    notes="as `.xlsx`, but that a cell with an error reads as empty, with a warning; needs `pip "
    "install 'qkvsearch[xlsx]'`",
    fits=_fits,
    add=lambda file, limit, encoder: add_pieces([read_sheet(file)], file, limit, encoder),
)
