"""Sheets of spreadsheets (.xlsx) to frames."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence, Set
from contextlib import closing, contextmanager
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from qkvsearch._utils.limits import SHEET_ROWS, check_unpacked
from qkvsearch.errors import DataError, listed_names, need, quantity
from qkvsearch.tables.files.file_format import BinaryFormat, add_pieces
from qkvsearch.tables.files.unpacking import ZIP, TableFile
from qkvsearch.tables.files.workbook_cells import SheetCheck
from qkvsearch.tables.files.workbook_values import (
    in_hours,
    merged_below,
    percent_styles,
    unescaped,
    with_percent,
)
from qkvsearch.tables.frames import (
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
from qkvsearch.tables.report import TOO_MANY_COLUMNS, ReadReport
from qkvsearch.terminal import shorten

# The state of a sheet that is not hidden.
VISIBLE = "visible"
# The type of the part with the texts that cells share.
SHARED_TEXTS = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"


@contextmanager
def _opened(file: TableFile) -> Iterator[tuple[Any, SheetChecks]]:
    """Open a workbook with openpyxl. Yield its reader, and the checks of its sheets. Raises
    `DataError` for whatever is wrong with it.
    """
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
                yield reader, SheetChecks(reader, label)
    except DataError:
        raise
    except Exception as error:  # a damaged file fails wherever the library first notices
        raise DataError(f"{label}: not a spreadsheet, or damaged: {error}") from None


def sheet_names(file: TableFile) -> list[str]:
    """Return the names of the sheets that have rows and are not hidden. Raises `DataError`."""
    with _opened(file) as (reader, checks):
        names = [
            sheet.title
            for sheet in _sheets_with_rows(reader, file, checks)
            if sheet.sheet_state == VISIBLE
        ]
    if not names:
        raise DataError(f"{file.label}: no sheet has rows, but for hidden ones")
    return names


def sheet_table(
    rows: list[tuple[int, list[Any]]], label: str, sheet: str
) -> tuple[pd.DataFrame, ReadReport, int]:
    """Return the rows of a sheet as text, the report on them, and the number of the header. rows:
    those that are not blank, by their numbers, up to the last filled cell. Raises `DataError`.
    """
    if not rows:
        raise DataError(f"{label}: no cell has anything in it")
    report = ReadReport(f"{Path(label.partition('#')[0]).name}#{sheet}")
    n_filled = [len(row) for _, row in rows]
    n_above = header_row([max(n_filled)] * len(rows), n_filled)
    if begins_with_number(rows[n_above][1]):
        n_above = 0
    above = [str(cell) for _, row in rows[:n_above] for cell in row if cell is not None]
    note_above(report, n_above, " ".join(above))
    (header_number, header), *rows = rows[n_above:]
    width = len(header)
    check_names(distinct(header), label)
    cells = [[*row[:width], *[None] * (width - len(row))] for _, row in rows]
    frame = text_of_rows(cells, [number for number, _ in rows], header, report)
    too_long = [number for number, row in rows if len(row) > width]
    report.read = len(rows)
    report.skip(TOO_MANY_COLUMNS, too_long)
    if too_long:
        report.warnings.append(
            f"{report.file}: {quantity(len(too_long), 'row')} skipped, the first of them row "
            f"{too_long[0]:,}, with cells to the right of the last named column; name that column"
        )
    return frame.drop(index=too_long), report, header_number


def read_workbook(file: TableFile) -> Piece:
    """Read the named sheet, or the only one that has rows. Raises `DataError`."""
    label = file.label
    with _opened(file) as (reader, checks):
        sheet = _pick_sheet(reader, file, checks)
        check = checks.of(sheet)
        rows = _rows(sheet, file, percent_styles(reader.wb))
    frame, report, header_number = sheet_table(rows, label, sheet.title)
    if check.n_uncomputed:
        formulas = quantity(check.n_uncomputed, "cell")
        report.warnings.append(
            f"{report.file}: {formulas} with a formula but no stored value read as empty: "
            "open and save the file in a spreadsheet program"
        )
    if merged := merged_below(check.merged, header_number):
        report.warnings.append(
            f"{report.file}: {quantity(len(merged), 'range')} of merged cells, the first of them "
            f"{merged[0]}, with a value in the first cell alone; the others read as empty: "
            "unmerge them, and fill each"
        )
    return frame, report


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


def _pick_sheet(reader: Any, file: TableFile, checks: SheetChecks) -> Any:
    """Return the named sheet, or else the only one that has rows."""
    sheets = {sheet.title: sheet for sheet in reader.wb.worksheets}
    if file.fragment:
        sheet = sheets[pick_name(file.fragment, list(sheets), "sheet", file.label)]
        sheet.reset_dimensions()  # some programs write them wrong
        return sheet
    with_rows = [sheet.title for sheet in _sheets_with_rows(reader, file, checks)]
    return sheets[only_sheet(with_rows or list(sheets)[:1], file.label)]


def only_sheet(names: Sequence[str], label: str) -> str:
    """Return the only sheet with rows. Raises `DataError` for several."""
    if len(names) > 1:
        raise DataError(
            f"{label}: {len(names):,} sheets are in it; say which, such as {label}#{names[0]}, or "
            f"join all of them by their ids: {label}#* (sheets: {listed_names(names)})"
        )
    return pick_name("", names, "sheet", label)


def _sheets_with_rows(reader: Any, file: TableFile, checks: SheetChecks) -> list[Any]:
    with_rows = []
    for sheet in reader.wb.worksheets:
        sheet.reset_dimensions()  # some programs write them wrong
        checks.of(sheet)  # it may look empty because it is damaged
        if any(True for _ in _filled_rows(sheet, file)):
            with_rows.append(sheet)
    return with_rows


def _filled_rows(
    sheet: Any, file: TableFile, percent: Set[int] = frozenset()
) -> Iterator[tuple[int, list[Any]]]:
    """Yield rows that are not blank, by their numbers, up to the last filled cell. Raises
    `DataError` for too many cells: openpyxl returns rows and cells that the file leaves out, too.

    percent: the styles of cells that are percentages.
    """
    n_cells = 0
    # The styles are read where they matter: with them, reading takes longer.
    for number, row in enumerate(sheet.iter_rows(values_only=not percent), 1):
        n_cells += len(row)
        if number % 1_000 == 0:
            SHEET_ROWS.check(number, file.label)
            check_unpacked(n_cells, file.size, file.label)
        if percent:
            row = [with_percent(cell, percent) for cell in row]
        cells = [_plain(cell) for cell in row]
        while cells and cells[-1] is None:
            del cells[-1]
        if cells:
            yield number, cells


def _rows(sheet: Any, file: TableFile, percent: Set[int]) -> list[tuple[int, list[Any]]]:
    """Return all rows that are not blank. Raises `DataError` for too many cells."""
    rows, size = [], 0
    for number, cells in _filled_rows(sheet, file, percent):
        check_width(len(cells), file.label)
        size += cells_size(cells)
        rows.append((number, cells))
        if len(rows) % 1_000 == 0:
            check_unpacked(size, file.size, file.label)
    check_unpacked(size, file.size, file.label)
    return rows


class SheetChecks:
    """Checks of the XML of a workbook, each made once, before openpyxl reads the sheet."""

    def __init__(self, reader: Any, label: str) -> None:
        self._reader = reader
        self._label = label
        self._parts = {entry.name: part.target for entry, part in reader.parser.find_sheets()}
        self._checks: dict[str, SheetCheck] = {}
        self._n_texts = self._count_texts()

    def of(self, sheet: Any) -> SheetCheck:
        """Return what the check of a sheet found. Raises `DataError` for a damaged one."""
        if sheet.title not in self._checks:
            check = SheetCheck(self._label, self._n_texts)
            with self._reader.archive.open(self._parts[sheet.title]) as part:
                check.read(part)
            self._checks[sheet.title] = check
        return self._checks[sheet.title]

    def _count_texts(self) -> int:
        """Check the texts that cells share, and return their number. Raises `DataError`."""
        part = self._reader.package.find(SHARED_TEXTS)
        if part is None:
            return 0
        check = SheetCheck(self._label)
        with self._reader.archive.open(part.PartName.removeprefix("/")) as content:
            check.read(content)
        return check.n_shared


def _plain(cell: Any) -> Any:
    """Return a cell as a program writes it to CSV: midnight as a day, as which a spreadsheet stores
    it, a length of time in hours, a text without escaped characters, and an empty one as None.
    """
    if isinstance(cell, str):
        return unescaped(cell) or None
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date()
    if isinstance(cell, timedelta):
        return in_hours(cell)
    return cell


WORKBOOK = BinaryFormat(
    name="spreadsheet, `.xlsx`",
    recognized_by="its contents",
    notes="`book.xlsx#Sheet2` if several sheets have rows; a formula counts by its stored value, "
    "and one without is a warning; a percentage is 10 where 10% is shown, as in CSV; merged cells "
    "below the header are a warning, since only the first has a value; `book.xlsx#*` joins all "
    "sheets; not Strict Open XML or `.xlsb`; needs `pip install 'qkvsearch[xlsx]'`",
    fits=lambda file, start: start.startswith(ZIP),
    add=lambda file, limit, encoder: add_pieces([read_workbook(file)], file, limit, encoder),
)
