"""Sheets of a spreadsheet (.xlsx) to a frame."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, time
from pathlib import Path
from typing import Any

from qkvsearch._utils.limits import check_unpacked
from qkvsearch.data.files.frames import (
    Piece,
    begins_with_number,
    cells_size,
    check_names,
    check_width,
    distinct,
    header_row,
    note_above,
    picked,
    text_of_rows,
)
from qkvsearch.data.files.unpacking import Place
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, need, quantity


def read_workbook(place: Place) -> Piece:
    """Read the sheet that `place.part` names, or the only one that has rows. Raises `DataError`."""
    label = place.label
    openpyxl = need("openpyxl", "xlsx", f"{label}: reading a spreadsheet", error=DataError)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a sheet has beside its cells
            book = openpyxl.load_workbook(
                place.path, read_only=True, data_only=True, keep_links=False
            )
            with closing(book):
                sheet = _picked(book, place)
                rows = _rows(sheet, place)
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
    if too_long:
        report.warnings.append(
            f"{report.file}: {quantity(len(too_long), 'row')} skipped, the first of them row "
            f"{too_long[0]:,}, with cells to the right of the last named column; name that column"
        )
    return frame.drop(index=too_long), report


def _picked(book: Any, place: Place) -> Any:
    """The sheet of that name, or the only one that has rows, or the first where none has any."""
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    for sheet in sheets.values():
        sheet.reset_dimensions()  # which some programs write wrong
    if place.part:
        return sheets[picked(place.part, list(sheets), "sheet", place.label)]
    full = [name for name, sheet in sheets.items() if any(True for _ in _filled(sheet))]
    return sheets[picked("", full or list(sheets)[:1], "sheet", place.label)]


def _filled(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """The rows that have a cell, without empty ones at the end, with their numbers."""
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        cells = [_plain(cell) for cell in row]
        while cells and cells[-1] is None:
            del cells[-1]
        if cells:
            yield number, cells


def _rows(sheet: Any, place: Place) -> list[tuple[int, list[Any]]]:
    """All such rows. Raises `DataError` for too many cells."""
    rows, size = [], 0
    for number, cells in _filled(sheet):
        check_width(len(cells), place.label)
        size += cells_size(cells)
        rows.append((number, cells))
        if len(rows) % 1_000 == 0:
            check_unpacked(size, place.size, place.label)
    check_unpacked(size, place.size, place.label)
    return rows


def _plain(cell: Any) -> Any:
    """A day, which a spreadsheet keeps as its midnight, as a day."""
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date()
    return None if cell == "" else cell
